"""What a system is: which nodes with which parameters. Launch files and ``bid up`` both start from here."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from bid_ros.checks import check_range
from bid_ros.errors import BidError
from bid_ros.middleware import middleware_environment
from bid_ros.paths import share
from bid_ros.teleop import check_styles

FRANKA_PORTS: Final = (1337, 1338)  # robot and gripper, fixed by the libfranka protocol
# Scripts, RTDE, Dashboard and the gripper's URCap: fixed by the controller.
UR_PORTS: Final = (30001, 30002, 30003, 30004, 29999, 63352)


@dataclass(frozen=True)
class NodeSpec:
    """One node of a system: the module under ``bid_ros.nodes`` (also its executable) and its parameters."""

    name: str
    executable: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class UpArguments:
    """Arguments of every system; launch files declare the same names.

    Attributes:
        robot_ip: address of the robot; empty = the twin.
        decoder, samples, action_horizon: how chunks are chosen (empty/0 = from the system's parameter file).
        moving: speed of the cup in m/s (twin), 0 = static; None = :attr:`System.moving`.
        episodes, seed: how many episodes and the first seed.
        rviz: start RViz (where it is installed). record: write a bag. out: folder for everything the run writes.
        bundle: folder of the policy bundle.
        teleop: styles of scripted demonstrations, the episodes in them in turn; empty = the policy acts.
    """

    robot_ip: str = ""
    decoder: str = "bid"
    samples: int = 16
    action_horizon: int = 1
    moving: float | None = None
    episodes: int = 3
    seed: int = 0
    rviz: bool = False
    record: bool = True
    out: str = "out"
    bundle: str = ""
    teleop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, low, high in (
            ("samples", 1, 256),
            ("episodes", 1, 100000),
            ("moving", 0.0, 0.1),
            ("seed", 0, 2**31 - 1),
        ):
            if getattr(self, name) is not None:
                check_range("", name, getattr(self, name), low, high, BidError)


@dataclass(frozen=True)
class System:
    """What sets one system apart from another; its files in ``config`` and ``models`` carry its name.

    Attributes:
        name: of the system and of its task.
        arm: driver.
        arm_config: file in ``config``.
        ports: TCP ports that its twin serves.
        moving: speed of the cup in m/s at which the shipped policy was evaluated: what it, trained on standing cups,
            could follow in rehearsals of other seeds.
    """

    name: str
    arm: str
    arm_config: str
    ports: tuple[int, ...]
    moving: float

    def cup_speed(self, asked: float | None) -> float:
        """Return the speed of the cup in m/s that was asked for, :attr:`moving` if none was."""
        return self.moving if asked is None else asked

    def config(self, ending: str) -> str:
        """Path of the system's configuration file with this ending, such as ``_cameras.yaml``."""
        return str(share("config", f"{self.name}{ending}"))


SYSTEMS: Final[Mapping[str, System]] = {
    system.name: system
    for system in (
        System("franka_place", "franka", "franka_arm.yaml", FRANKA_PORTS, 0.03),
        System("ur5_pick", "ur", "ur_arm.yaml", UR_PORTS, 0.01),
    )
}


def describe(system: str, arguments: UpArguments) -> list[NodeSpec]:
    """Return the nodes of a system.

    Raises:
        BidError: no such system, no policy bundle is shipped for it, nobody demonstrates it in such a style, or no
            address is free for its twin.
    """
    if system not in SYSTEMS:
        raise BidError(f"system '{system}' does not exist; valid are {', '.join(SYSTEMS)}")
    check_styles(system, arguments.teleop)
    found = SYSTEMS[system]
    content = yaml.safe_load(Path(found.config("_nodes.yaml")).read_text())
    return [_with_file(spec, content) for spec in _nodes(found, arguments)]


def _nodes(system: System, arguments: UpArguments) -> list[NodeSpec]:
    twin = not arguments.robot_ip
    task, cameras = system.config(".yaml"), system.config("_cameras_twin.yaml" if twin else "_cameras.yaml")
    bundle = "" if arguments.teleop else arguments.bundle or _shipped_bundle(system.name)
    out = Path(arguments.out).resolve()
    acting = "teleop" if arguments.teleop else "policy"
    address = arguments.robot_ip or free_twin_address(system.ports)
    specs = [NodeSpec("twin", "twin_node", {"task": task, "address": address})] if twin else []
    arm = {
        "task": task,
        "arm": system.arm,
        "arm_config": str(share("config", system.arm_config)),
        "robot_ip": address,
        "twin": twin,
        "connect_wait_s": 30.0 if twin else 0.0,
        "required": [acting, "safety"],
    }
    specs += [
        NodeSpec("camera", "camera_node", {"task": task, "cameras": cameras}),
        NodeSpec("safety", "safety_node", {"task": task, "required": ["camera", acting, "arm"]}),
        NodeSpec("arm", "arm_node", arm),
        NodeSpec(acting, f"{acting}_node", {"task": task} if arguments.teleop else _policy(arguments, task, bundle)),
    ]
    if arguments.record:
        specs.append(NodeSpec("recorder", "recorder_node", {"task": task, "bag": str(out / "bag")}))
    if arguments.rviz:
        specs.append(NodeSpec("monitor", "monitor_node", {"task": task, "cameras": cameras}))
    specs.append(NodeSpec("episode", "episode_node", _episode(arguments, system, task, bundle, out, twin)))
    return specs


def free_twin_address(ports: Sequence[int]) -> str:
    """Return a loopback address at which nobody serves one of ``ports`` yet, so that twins can run side by side.

    Raises:
        BidError: the first hundred are all taken.
    """
    for last in range(1, 101):
        address = f"127.0.0.{last}"
        try:
            for port in ports:
                with socket.create_server((address, port)):
                    pass
        except OSError:
            continue
        return address
    raise BidError("127.0.0.1 to 127.0.0.100 all serve a robot already; end another twin first")


def _shipped_bundle(name: str) -> str:
    try:
        return str(share("models", name))
    except BidError as error:
        raise BidError(
            f"no policy is shipped for the system '{name}': name one with bundle, or train one (bid demos {name}, "
            f"bid dataset, bid train, bid export)"
        ) from error


def _policy(arguments: UpArguments, task: str, bundle: str) -> dict[str, Any]:
    return {
        "task": task,
        "bundle": bundle,
        "decoder": arguments.decoder,
        "samples": arguments.samples,
        "action_horizon": arguments.action_horizon,
        "seed": arguments.seed,
    }


def _episode(arguments: UpArguments, system: System, task: str, bundle: str, out: Path, twin: bool) -> dict[str, Any]:
    return {
        "task": task,
        "bundle": bundle,
        "episodes": arguments.episodes,
        "seed": arguments.seed,
        "labels": list(arguments.teleop) or [arguments.decoder],
        "moving": float(system.cup_speed(arguments.moving)),
        "twin": twin,
        "out": str(out),
        "decoder": "" if arguments.teleop else arguments.decoder,
        "samples": 0 if arguments.teleop else arguments.samples,
        "action_horizon": arguments.action_horizon,
        "record_rest": 1.0 if arguments.teleop else 0.0,
    }


def _with_file(spec: NodeSpec, content: Mapping[str, Any]) -> NodeSpec:
    """Lay the content of the system's parameter file under the parameters that the arguments set."""
    from_file = content.get(spec.name, {}).get("ros__parameters", {})
    return NodeSpec(spec.name, spec.executable, {**from_file, **spec.parameters})


def rviz_layout(system: str) -> Path:
    """Path of the RViz layout of a system."""
    return share("config", f"{system}.rviz")


def command_line(spec: NodeSpec, parameter_folder: Path) -> str:
    """Shell line that runs a node in this environment; its parameters go through a file that stays for inspection."""
    parameter_folder.mkdir(parents=True, exist_ok=True)
    file = parameter_folder / f"{spec.name}.yaml"
    file.write_text(yaml.safe_dump({spec.name: {"ros__parameters": dict(spec.parameters)}}))
    module = f"bid_ros.nodes.{spec.executable}"
    words = [sys.executable, "-m", module, "--ros-args", "-r", f"__node:={spec.name}", "--params-file", str(file)]
    return "exec " + shlex.join(words)


def environment(twin: bool) -> dict[str, str]:
    """Environment of the nodes: a twin never talks beyond this host."""
    values = {"BID_SUPERVISOR": str(os.getpid()), "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
    return {**values, "OPENBLAS_NUM_THREADS": "1", **middleware_environment(twin)}
