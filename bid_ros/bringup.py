"""What a system is: which nodes with which parameters. Launch files and ``bid up`` both start from here."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from bid_ros.checks import check_range
from bid_ros.errors import BidError
from bid_ros.paths import share

FRANKA_PORTS: Final = (1337, 1338)  # robot and gripper, fixed by the libfranka protocol


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
        moving: speed of the cup in m/s (twin), 0 = static.
        episodes, seed: how many episodes and the first seed.
        rviz: start RViz (where it is installed). record: write a bag. out: folder for everything the run writes.
        bundle: folder of the policy bundle.
        teleop: labels ``clean``/``diverse`` of scripted demonstrations; empty = the policy acts.
    """

    robot_ip: str = ""
    decoder: str = "bid"
    samples: int = 16
    action_horizon: int = 1
    moving: float = 0.03
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
            check_range("", name, getattr(self, name), low, high, BidError)


def franka_place(arguments: UpArguments) -> list[NodeSpec]:
    """Dynamic placing on a Franka arm or its twin."""
    twin = not arguments.robot_ip
    task = str(share("config", "franka_place.yaml"))
    cameras = "franka_place_cameras_twin.yaml" if twin else "franka_place_cameras.yaml"
    bundle = arguments.bundle or ("" if arguments.teleop else str(share("models", "franka_place")))
    out = Path(arguments.out).resolve()
    acting = "teleop" if arguments.teleop else "policy"
    specs = []
    address = arguments.robot_ip or free_twin_address()
    if twin:
        specs.append(NodeSpec("twin", "twin_node", {"address": address}))
    arm = {
        "task": task,
        "arm": "franka",
        "arm_config": str(share("config", "franka_arm.yaml")),
        "robot_ip": address,
        "twin": twin,
        "connect_wait_s": 30.0 if twin else 0.0,
        "required": [acting, "safety"],
    }
    specs += [
        NodeSpec("camera", "camera_node", {"task": task, "cameras": str(share("config", cameras))}),
        NodeSpec("safety", "safety_node", {"task": task, "required": ["camera", acting, "arm"]}),
        NodeSpec("arm", "arm_node", arm),
    ]
    if arguments.teleop:
        specs.append(NodeSpec("teleop", "teleop_node", {"task": task}))
    else:
        policy = {
            "task": task,
            "bundle": bundle,
            "decoder": arguments.decoder,
            "samples": arguments.samples,
            "action_horizon": arguments.action_horizon,
            "seed": arguments.seed,
        }
        specs.append(NodeSpec("policy", "policy_node", policy))
    if arguments.record:
        specs.append(NodeSpec("recorder", "recorder_node", {"task": task, "bag": str(out / "bag")}))
    if arguments.rviz:
        specs.append(NodeSpec("monitor", "monitor_node", {"task": task, "cameras": str(share("config", cameras))}))
    specs.append(NodeSpec("episode", "episode_node", _episode(arguments, task, bundle, out, twin)))
    return [_with_file(spec) for spec in specs]


def free_twin_address() -> str:
    """Return a loopback address on which nobody serves a Franka yet, so that twins can run side by side.

    Raises:
        BidError: the first hundred are all taken.
    """
    for last in range(1, 101):
        address = f"127.0.0.{last}"
        try:
            for port in FRANKA_PORTS:
                with socket.create_server((address, port)):
                    pass
        except OSError:
            continue
        return address
    raise BidError("127.0.0.1 to 127.0.0.100 all serve a robot already; end another twin first")


def _episode(arguments: UpArguments, task: str, bundle: str, out: Path, twin: bool) -> dict[str, Any]:
    return {
        "task": task,
        "bundle": bundle,
        "episodes": arguments.episodes,
        "seed": arguments.seed,
        "labels": list(arguments.teleop) or [arguments.decoder],
        "moving": float(arguments.moving),
        "twin": twin,
        "out": str(out),
        "decoder": "" if arguments.teleop else arguments.decoder,
        "samples": 0 if arguments.teleop else arguments.samples,
        "action_horizon": arguments.action_horizon,
        "record_rest": 1.0 if arguments.teleop else 0.0,
    }


def _with_file(spec: NodeSpec) -> NodeSpec:
    """Lay the system's parameter file under the parameters that the arguments set."""
    content = yaml.safe_load(share("config", "franka_place_nodes.yaml").read_text())
    from_file = content.get(spec.name, {}).get("ros__parameters", {})
    return NodeSpec(spec.name, spec.executable, {**from_file, **spec.parameters})


SYSTEMS: Final[Mapping[str, Callable[[UpArguments], list[NodeSpec]]]] = {"franka_place": franka_place}


def describe(system: str, arguments: UpArguments) -> list[NodeSpec]:
    """Return the nodes of a system.

    Raises:
        BidError: no such system.
    """
    if system not in SYSTEMS:
        raise BidError(f"system '{system}' does not exist; valid are {', '.join(SYSTEMS)}")
    return SYSTEMS[system](arguments)


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
    values["OPENBLAS_NUM_THREADS"] = "1"
    if twin:
        values["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    return values
