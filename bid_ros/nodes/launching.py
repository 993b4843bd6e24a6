"""The launch description of a system, which its launch file returns to ``ros2 launch``.

Only launch files import this module. ROS's launch is not on PyPI, so ``bid up`` starts the same nodes without it.
"""

import posixpath
import sys
from collections.abc import Collection
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    Shutdown,
)
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from bid_ros.core.errors import BidError
from bid_ros.system.description import NO_RVIZ, describe, environment, rviz_command
from bid_ros.system.ending import END_S
from bid_ros.system.folder import find_system
from bid_ros.system.preparation import prepare
from bid_ros.system.run import argument_fields, parse_arguments
from launch import LaunchContext, LaunchDescription

OF_LAUNCH = frozenset({"emulate_tty", "sigterm_timeout", "sigkill_timeout"})


def launch_description(system: str = "") -> LaunchDescription:
    """Declare the arguments of ``bid up`` and start the nodes of the system's description.

    Args:
        system: folder of a system, or name of a shipped one. Empty: the launch argument ``system`` names it.
    """
    named = [] if system else [DeclareLaunchArgument("system", description="a folder, or a shipped system's name")]
    declared = [
        DeclareLaunchArgument(item.name, default_value=_text(item.default), description=item.metadata["help"])
        for item in argument_fields()
    ]
    return LaunchDescription([*named, *declared, OpaqueFunction(function=partial(launch_actions, system=system))])


def launch_actions(context: LaunchContext, system: str = "") -> list[object]:
    """Return the actions that start a system with the arguments in ``context``.

    Raises:
        BidError: an argument is not valid.
    """
    found = find_system(system or LaunchConfiguration("system").perform(context))
    text = {item.name: LaunchConfiguration(item.name).perform(context) for item in argument_fields()}
    # Where another launch file includes this one inside a PushRosNamespace, that comes first.
    pushed = context.launch_configurations.get("ros_namespace", "")
    text["namespace"] = posixpath.join(pushed, text["namespace"]).rstrip("/")
    arguments = parse_arguments(_given(context, OF_LAUNCH if system else {*OF_LAUNCH, "system"}) | text)
    specs = describe(found, arguments)
    prepare(specs, Path(arguments.out))
    variables = environment(twin=not arguments.robot_ip)
    nodes: list[object] = [
        Node(
            package="bid_ros",
            executable=spec.executable,
            name=spec.name,
            namespace=spec.namespace,
            ros_arguments=["--log-level", spec.log_level],
            # Ctrl-C in a terminal reaches the nodes too; until a node can take it, it waits.
            prefix="env --default-signal=INT --block-signal=INT",
            exec_name=spec.name,
            sigkill_timeout=str(END_S),
            parameters=[dict(spec.parameters)],
            additional_env=variables,
            output="screen" if spec.name == "episode" else "log",
        )
        for spec in specs
    ]
    if arguments.rviz:
        command = rviz_command(found, arguments)
        rviz = partial(ExecuteProcess, cmd=command, name="rviz", additional_env=variables)
        nodes.append(rviz() if command else LogInfo(msg=NO_RVIZ))
    processes = [node for node in nodes if isinstance(node, ExecuteProcess)]
    return [*(RegisterEventHandler(OnProcessExit(target_action=node, on_exit=_on_exit)) for node in processes), *nodes]


def _given(context: LaunchContext, own: Collection[str]) -> dict[str, str]:
    """Return what the terminal gave this launch file, so that an unknown argument is found, which ROS would ignore.

    Empty where another launch file includes this one: an argument may belong to that one.

    Args:
        context: context of the launch.
        own: further names that are valid.
    """
    file = Path(context.get_locals_as_dict().get("current_launch_file_path", ""))
    by_path = file.resolve() in {Path(word).resolve() for word in sys.argv}
    if not by_path and ("bid_ros", file.name) not in pairwise(sys.argv):
        return {}
    given = dict(word.split(":=", 1) for word in context.argv)
    return {name: value for name, value in given.items() if name not in own}


def _on_exit(event: ProcessExited, context: LaunchContext) -> list[object]:
    """End the run with its first process: the episode runner ends it, and without any other one it is incomplete.

    An error is how a launch file makes the status of ``ros2 launch`` differ from 0.
    """
    if context.is_shutdown:
        return []
    name = event.process_name.rpartition("-")[0]
    if name == "episode" and not event.returncode:
        return [Shutdown(reason="the run is complete")]
    raise BidError(f"{name} ended first (status {event.returncode}), so the run ends")


def _text(default: Any) -> str:
    """Return a default as text for launch. It is empty where the system's folder decides."""
    if default in (None, ()):
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)
