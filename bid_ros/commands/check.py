"""``bid check``: read and measure everything a system needs, and move nothing."""

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from bid_ros.commands.arguments import SYSTEM_HELP, add_run_arguments, run_arguments
from bid_ros.core.errors import BidError
from bid_ros.core.task import Task
from bid_ros.robots.registry import ROBOTS, load_arm_config
from bid_ros.system.check.finding import CheckFinding, tried
from bid_ros.system.description import NodeSpec, describe
from bid_ros.system.folder import System, find_system
from bid_ros.system.run import RunArguments
from bid_ros.system.security import check_security

# Arguments of a run that change what there is to check.
CHECKED = ("robot_ip", "driver", "decoder", "decision_rate", "bundle", "out", "namespace", "parameters")


def add_parser(verbs: Any) -> None:
    """Add ``check``."""
    parser = verbs.add_parser(
        "check",
        help="check a system's files, cameras, robot and computer",
        description="Read every file of a system, watch its cameras for some seconds, see whether the robot listens, "
        "and measure this computer. Nothing moves. One line each: ok, warn or fail, what was measured, what to do. "
        "Exit status: 0 nothing failed, 1 something did, 2 bad input.",
    )
    parser.add_argument("system", help=SYSTEM_HELP)
    add_run_arguments(parser, CHECKED, printed="the findings as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check; return 1 if anything fails."""
    system, arguments = find_system(options.system), run_arguments(options)
    found: list[CheckFinding] = []
    for finding in _findings(system, arguments):
        found.append(finding)
        if not options.json:
            print(_line(finding), flush=True)
    fails = sum(item.state == "fail" for item in found)
    if options.json:
        about = {"system": str(system.folder), "robot_ip": arguments.robot_ip, "fails": fails}
        print(json.dumps({**about, "findings": [asdict(item) for item in found]}))
    return 1 if fails else 0


def _line(finding: CheckFinding) -> str:
    advice = f"  -> {finding.advice}" if finding.advice else ""
    return f"{finding.state:<5} {finding.what:<20} {finding.measured}{advice}"


def _findings(system: System, arguments: RunArguments) -> Iterator[CheckFinding]:
    from bid_ros.system.check.computer import computer_findings
    from bid_ros.system.check.folder import folder_findings
    from bid_ros.system.check.host import host_findings

    said: set[str] = set()
    for found in folder_findings(system, arguments):
        said.add(found.measured)
        yield found
    drivers: tuple[str, ...] = ()
    ros = _ros()
    yield ros
    # What is wrong with a file was said above; what depends on it cannot be measured.
    with suppress(BidError):
        library = ROBOTS.find(system.task.robot).library
        drivers = (library,) if library else ()
        hardware = _hardware(system, arguments, ros.state == "ok")
        # The twin of a task whose kind or objects cannot be says the sentence of the task file again.
        yield from (found for found in hardware if found.state == "ok" or found.measured not in said)
    yield from computer_findings(bool(arguments.robot_ip), drivers, Path(arguments.out).resolve())
    if arguments.robot_ip:
        yield from host_findings(arguments.robot_ip)


def _ros() -> CheckFinding:
    try:
        from bid_ros.nodes.camera_probe import middleware
    except ImportError as error:
        return CheckFinding("ROS", "fail", str(error), "install ROS 2 Jazzy and bid_msgs, and source the workspace")
    try:
        check_security()
    except BidError as error:
        return CheckFinding("ROS", "fail", str(error), "bid secure says how keys are made")
    where = f"ROS_DOMAIN_ID {os.environ.get('ROS_DOMAIN_ID', '0')}"
    return CheckFinding("ROS", "ok", f"{os.environ.get('ROS_DISTRO', 'no ROS_DISTRO')}, {middleware()}, {where}")


def _hardware(system: System, arguments: RunArguments, ros: bool) -> Iterator[CheckFinding]:
    from bid_ros.cameras.config import load_cameras
    from bid_ros.cameras.registry import BY_NODE
    from bid_ros.system.check.cameras import decision_rate_hz, device_findings, judge_camera, judge_vector
    from bid_ros.system.check.hardware import payload_finding, robot_finding, twin_findings

    task, file, twin = system.task, system.file("cameras.yaml"), not arguments.robot_ip
    if twin:
        yield from twin_findings(task, _rendered(task, file))
    elif ROBOTS.find(task.robot).over_ros:
        if ros:
            yield _robot_over_ros(system, arguments)
    else:
        config = load_arm_config(system.file("robot.yaml"), arguments.robot_ip, False, task.robot)
        found = robot_finding(task.robot, config)
        yield found
        payload = payload_finding(task.robot, config) if found.state != "fail" else None
        yield from [payload] if payload is not None else []
    cameras = load_cameras(file, [camera.name for camera in task.cameras], twin).values()
    decisions_hz = decision_rate_hz(system, arguments)
    devices = [item for item in cameras if item.source not in BY_NODE]
    yield from device_findings(devices, task, file.parent, decisions_hz)
    topics = [item for item in cameras if item.source == "topic"]
    if ros:
        from bid_ros.nodes.camera_probe import vectors_of, watch_topics

        vectors = vectors_of(task)
        seen = watch_topics(topics, task, arguments.namespace) if topics or vectors else {}
        yield from (judge_camera(item, task, seen[item.name], decisions_hz) for item in topics)
        yield from (judge_vector(item, seen[item.name], twin) for item in vectors)
        nodes, advice = describe(system, replace(arguments, unstaged=True)), f"correct {system.folder / 'nodes.yaml'}"
        yield tried("parameters", lambda: f"{_parameters(nodes)} of {len(nodes)} nodes", advice)


def _rendered(task: Task, file: Path) -> list[str]:
    """Return the names of the cameras that the twin renders: all where the file, as was said above, is not valid."""
    from bid_ros.cameras.config import load_cameras

    names = [camera.name for camera in task.cameras]
    with suppress(BidError):
        return [name for name, item in load_cameras(file, names, twin=True).items() if item.source == "twin"]
    return names


def _robot_over_ros(system: System, arguments: RunArguments) -> CheckFinding:
    from bid_ros.nodes.robot_probe import probe_robot

    robot, address = system.task.robot, arguments.robot_ip
    config = load_arm_config(system.file("robot.yaml"), address, False, robot)
    advice = f"start the robot's ROS driver, and correct {system.folder / 'robot.yaml'}"
    return tried(f"robot {address}", lambda: probe_robot(robot, config, arguments.namespace), advice)


def _parameters(specs: Sequence[NodeSpec]) -> int:
    """Hold the parameters of all nodes against their declarations; return their number. Raises BidError."""
    from bid_ros.nodes.parameters import check_parameters

    for spec in specs:
        check_parameters(spec.name, import_module(f"bid_ros.nodes.{spec.executable}").PARAMETERS, spec.parameters)
    return sum(len(spec.parameters) for spec in specs)
