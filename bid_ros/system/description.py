"""The nodes of a system and their parameters. Launch files and ``bid up`` both start from here."""

import json
import os
import shlex
import socket
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml

from bid_ros.core.errors import BidError
from bid_ros.core.topics import check_namespace
from bid_ros.policy.decision_rate import decisions_a_step, scenes_a_second
from bid_ros.robots.registry import ROBOTS, twin_maker
from bid_ros.sim import opengl_variables
from bid_ros.system.ending import SUPERVISOR
from bid_ros.system.folder import BESIDE_BUNDLE, POLICY, PolicySettings, System
from bid_ros.system.middleware import middleware_environment
from bid_ros.system.parameters import given_parameters
from bid_ros.system.run import RunArguments
from bid_ros.system.security import enclave_arguments
from bid_ros.system.stages import check_stages
from bid_ros.teleop.base import DEVICES

REQUIRED_S: Final = 20.0  # for which the arm leaves its robot alone while the nodes that command it load
TWIN_S: Final = 30.0  # for a twin to start
ROBOT_S: Final = 300.0  # for a person to switch a robot on, which takes a minute or two to start
LARGEST_DOMAIN: Final = 232  # ROS 2's


@dataclass(frozen=True)
class NodeSpec:
    """One node of a system: its name, its module under ``bid_ros.nodes`` (also its executable), its parameters.

    ``namespace`` has a leading slash, or is empty for the root. ``remapped`` gives topics other names. ``arm`` is the
    arm that the node belongs to, in a system of several.
    """

    name: str
    executable: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    namespace: str = ""
    log_level: str = "info"
    remapped: Mapping[str, str] = field(default_factory=dict)
    arm: str = ""

    @property
    def label(self) -> str:
        """Name that no other node of the run has."""
        return f"{self.arm}.{self.name}" if self.arm else self.name


@dataclass(frozen=True)
class Run:
    """A run whose settings are resolved: an argument replaces the value of ``system.yaml``.

    Attributes:
        system, arguments: what it was resolved from.
        driver: ``policy`` or the name of a teleoperation device.
        policy: its settings, with the path of the bundle; the bundle is empty if no policy drives.
        moving: as in :class:`bid_ros.system.run.RunArguments`.
    """

    system: System
    arguments: RunArguments
    driver: str
    policy: PolicySettings
    moving: float

    @property
    def twin(self) -> bool:
        """Whether the system runs in its twin."""
        return not self.arguments.robot_ip

    @property
    def acting(self) -> str:
        """The node that drives the arm."""
        return POLICY if self.driver == POLICY else "teleop"

    @property
    def driving_nodes(self) -> tuple[str, ...]:
        """The nodes that may drive the arm, one at a time."""
        return (POLICY, "teleop") if self.arguments.takeover else (self.acting,)


def describe(system: System, arguments: RunArguments) -> list[NodeSpec]:
    """Return the nodes of a system.

    Raises:
        BidError: a file of the system is not valid, there is no policy bundle or teleoperation device of this name,
            the task has no demonstrations of a style, its twin runs already, the rate of decisions is not valid, a
            robot has not passed its stages, or the parameter file is not valid.
    """
    run = decided(system, arguments)
    system.check(run.twin)
    check_stages(system, arguments)
    specs = _nodes(run)
    given = given_parameters(arguments, {spec.name: spec.parameters for spec in specs})
    return [
        replace(
            spec,
            parameters={**system.parameters[spec.name], **spec.parameters, **given.get(spec.name, {})},
            namespace=check_namespace(arguments.namespace),
            log_level=arguments.log_level,
        )
        for spec in specs
    ]


def decided(system: System, arguments: RunArguments) -> Run:
    """Return a run whose settings are resolved. Raises BidError as :func:`describe`."""
    driver = arguments.driver or system.settings.driver
    if driver != POLICY:
        device = DEVICES.find(driver)
        device.check(system.task, arguments.styles, twin=not arguments.robot_ip)
        device.demand_fit(system.task, arguments.device_settings)
    elif arguments.styles:
        raise BidError(
            f"styles are {', '.join(arguments.styles)}, but the driver is {driver}; valid with driver: scripted"
        )
    elif arguments.takeover:
        device = DEVICES.find(arguments.takeover)
        if not device.help:
            raise BidError(f"takeover is '{arguments.takeover}', a program; valid is a device that a person holds")
        device.demand_fit(system.task, arguments.device_settings)
    elif arguments.device_settings:
        raise BidError(
            f"device_settings are '{arguments.device_settings}', but the driver is {driver}; valid with a device"
        )
    if arguments.takeover and driver != POLICY:
        raise BidError(f"takeover is '{arguments.takeover}', but the driver is {driver}; valid with driver: {POLICY}")
    if arguments.shadow and (driver != POLICY or arguments.human):
        raise BidError(f"shadow is true, but a person records or the driver is {driver}; valid with driver: {POLICY}")
    if not arguments.prepare and (driver == POLICY or arguments.human or not DEVICES.find(driver).help):
        raise BidError(f"prepare is false, but a person records or the driver is {driver}; valid with bid teleop")
    if arguments.slow != 1.0 and driver != POLICY:
        raise BidError(f"slow is {arguments.slow:g}, but the driver is {driver}; valid with driver: {POLICY}")
    given = {name: getattr(arguments, name) for name in ("decoder", "samples", "action_horizon")}
    given["decision_rate_hz"] = arguments.decision_rate
    given = {name: value for name, value in given.items() if value not in (None, "")}
    bundle = str(system.bundle(arguments.bundle)) if driver == POLICY else ""
    policy = replace(system.settings.policy, bundle=bundle, **given)
    decisions_a_step(system.task, policy.decision_rate_hz)
    moving = system.settings.twin.moving if arguments.moving is None else arguments.moving
    return Run(system, arguments, driver, policy, moving)


def _nodes(run: Run) -> list[NodeSpec]:
    system, arguments = run.system, run.arguments
    out = Path(arguments.out).resolve()
    task = {"task": str(system.file("task.yaml"))}
    joints, judged = system.joint_parameters(run.twin), system.arm_parameters(run.twin)
    cameras = {**task, "cameras": str(system.file("cameras.yaml")), "twin": run.twin}
    rate_hz = run.policy.decision_rate_hz if run.driver == POLICY else 0.0
    pairs = {"pair_rate_hz": rate_hz} if rate_hz else {}
    scenes = {"scene_rate_hz": scenes_a_second(system.task, rate_hz)} if rate_hz and run.twin else {}
    if run.twin:
        twin_maker(system.task.robot)  # a robot without one is refused
    over_ros = {"arm_config": str(system.file("robot.yaml"))} if ROBOTS.find(system.task.robot).over_ros else {}
    address = arguments.robot_ip or twin_address(arguments.namespace, ROBOTS.find(system.task.robot).ports)
    arm = {
        **task,
        "arm": system.task.robot,
        "arm_config": str(system.file("robot.yaml")),
        "robot_ip": address,
        "twin": run.twin,
        "connect_wait_s": TWIN_S if run.twin else ROBOT_S,
        "required": [*run.driving_nodes, "safety"],
        "required_wait_s": REQUIRED_S,
    }
    device = {"device": arguments.takeover or run.driver, "device_settings": arguments.device_settings}
    policy = {**judged, **_policy(run), **_of_bundle(run), "seed": arguments.seed}
    own = {POLICY: policy, "teleop": {**device, "takeover": bool(arguments.takeover), "prepared": arguments.prepare}}
    safety = {"required": ["camera", *run.driving_nodes, "arm"], "slow": arguments.slow, "shadow": arguments.shadow}
    nodes = [
        *([NodeSpec("twin", "twin_node", {**task, "address": address, **over_ros, **scenes})] if run.twin else []),
        NodeSpec("camera", "camera_node", {**cameras, **pairs}),
        NodeSpec("safety", "safety_node", {**task, **judged, **safety}),
        NodeSpec("arm", "arm_node", arm),
        *(NodeSpec(name, f"{name}_node", {**task, **joints, **own[name]}) for name in run.driving_nodes),
        *([NodeSpec("recorder", "recorder_node", {**task, **_recorder(run, out)})] if arguments.record else []),
        *([NodeSpec("monitor", "monitor_node", {**cameras, **joints})] if arguments.rviz else []),
    ]
    required = [node.name for node in nodes if node.name != "monitor"]  # no run depends on what is shown
    return [*nodes, NodeSpec("episode", "episode_node", {**task, **joints, **_episode(run), "nodes": required})]


def _policy(run: Run) -> dict[str, Any]:
    """Return the settings of the policy, without the files beside its bundle: its task and the signer's key."""
    return {name: value for name, value in vars(run.policy).items() if name not in BESIDE_BUNDLE}


def _of_bundle(run: Run) -> dict[str, Any]:
    """Return the parameters of the policy node that name files beside the bundle."""
    system = run.system
    return {**system.bundle_parameters(), **system.signer_parameters()} if run.driver == POLICY else {}


def _recorder(run: Run, out: Path) -> dict[str, Any]:
    from bid_ros.recording.compression import find_codec  # OpenCV takes a while to import

    arguments = run.arguments
    codec = arguments.image_codec or run.system.parameters["recorder"].get("image_codec", "raw")
    find_codec(str(codec))
    setup = {
        "robot": run.system.task.robot,
        "robot_ip": arguments.robot_ip,
        "twin": run.twin,
        "driver": run.driver,
        "takeover": arguments.takeover,
        "device_settings": arguments.device_settings,
        **({"policy": _policy(run)} if run.driver == POLICY else {}),
    }
    place = {"episodes": str(out / "episodes")} if arguments.human else {"bag": str(out / "bag")}
    chosen = {"image_codec": arguments.image_codec} if arguments.image_codec else {}
    return {**place, **chosen, "setup": json.dumps(setup)}


def _episode(run: Run) -> dict[str, Any]:
    policy, arguments = run.driver == POLICY, run.arguments
    return {
        **(_policy(run) if policy else {}),
        "episodes": arguments.episodes,
        "seed": arguments.seed,
        "labels": _labels(run),
        "moving": float(run.moving),
        "twin": run.twin,
        "acting": run.acting,
        "out": str(Path(arguments.out).resolve()),
        "human": arguments.human,
        "takeover": bool(arguments.takeover),
        "robot_wait_s": 0.0 if run.twin else ROBOT_S,
        "awaited": "" if policy or not DEVICES.find(run.driver).help else run.driver,
        "record_rest": 0.0 if policy or arguments.human else 1.0,
        "slow": arguments.slow,
        "prepares": arguments.prepare and not arguments.shadow and (policy or DEVICES.find(run.driver).prepared),
        "shadow": arguments.shadow,
        "timeout_s": float(arguments.timeout or run.system.task.episode_timeout / arguments.slow),
    }


def _labels(run: Run) -> list[str]:
    """Return the labels of the episodes, which cycle over them; to a script a label is the style to demonstrate."""
    if run.driver == POLICY:
        return [run.policy.decoder]
    return list(run.arguments.styles or DEVICES.find(run.driver).styles(run.system.task)) or [run.driver]


def twin_address(namespace: str, ports: Sequence[int]) -> str:
    """Return the loopback address of a system's twin. ROS domain and namespace determine it.

    So twins run side by side, and need not agree on addresses while they start.

    Raises:
        BidError: the domain is not valid, or one of ``ports`` is in use there: the system runs already.
    """
    text = os.environ.get("ROS_DOMAIN_ID") or "0"
    if not text.isdecimal() or int(text) > LARGEST_DOMAIN:
        raise BidError(f"ROS_DOMAIN_ID is '{text}'; valid is 0 to {LARGEST_DOMAIN}")
    third, fourth = divmod(zlib.crc32(check_namespace(namespace).encode()) % 65534 + 1, 256)
    address = f"127.{int(text) + 1}.{third}.{fourth}"
    for port in ports:
        try:
            with socket.create_server((address, port)):
                pass
        except OSError as error:
            raise BidError(
                f"{address} port {port} cannot serve the twin of domain {text}, namespace '{namespace or '/'}' "
                f"({error.strerror}): end the system that runs there, or choose another namespace or ROS_DOMAIN_ID"
            ) from error
    return address


def command_line(spec: NodeSpec, parameter_folder: Path) -> str:
    """Return the shell line that runs a node. It writes the parameters to a file, which stays for inspection."""
    parameter_folder.mkdir(parents=True, exist_ok=True)
    file = parameter_folder / f"{spec.label}.yaml"
    full_name = f"{spec.namespace}/{spec.name}"
    file.write_text(yaml.safe_dump({full_name: {"ros__parameters": dict(spec.parameters)}}))
    words = [sys.executable, "-m", "bid_ros.nodes", spec.executable, "--ros-args", "-r", f"__node:={spec.name}"]
    words += ["-r", f"__ns:={spec.namespace}"] if spec.namespace else []
    words += enclave_arguments(spec.name, spec.namespace)
    words += [word for name, other in spec.remapped.items() for word in ("-r", f"{name}:={other}")]
    return "exec " + shlex.join([*words, "--params-file", str(file), "--log-level", spec.log_level])


def environment(peers: Sequence[str] = (), folder: Path = Path()) -> dict[str, str]:
    """Return the environment of the nodes. Arguments and errors: those of :func:`middleware_environment`."""
    values = {SUPERVISOR: str(os.getpid()), "PYTHONUNBUFFERED": "1"}
    values |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    # Otherwise an import of MuJoCo looks for GLFW, in a process that prints a traceback when a signal comes.
    values |= opengl_variables()
    return values | middleware_environment(peers, folder)
