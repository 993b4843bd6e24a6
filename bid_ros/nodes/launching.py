"""The launch description of a system, which its launch file returns to ``ros2 launch``.

Only launch files import this module. ROS's launch is not on PyPI, so ``bid up`` starts the same nodes without it.
"""

import atexit
import logging
import os
import posixpath
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
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
from launch.event_handlers import OnProcessExit, OnShutdown
from launch.events import Shutdown as ShutdownEvent
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from bid_ros.core.errors import BidError
from bid_ros.episodes.log import end_run
from bid_ros.system.description import NodeSpec, describe, environment
from bid_ros.system.driving import ARGUMENTS, DEFAULTS, KEYBOARD, driven
from bid_ros.system.ended import Ended, note_end
from bid_ros.system.ending import END_S
from bid_ros.system.folder import System, find_system
from bid_ros.system.middleware import ignored_settings
from bid_ros.system.preparation import prepare
from bid_ros.system.replay_nodes import REPLAY, ReplayArguments, describe_replay
from bid_ros.system.run import RunArguments, argument_fields, parse_arguments
from bid_ros.system.rviz import NO_RVIZ, rviz_command
from bid_ros.system.security import enclave_arguments
from launch import LaunchContext, LaunchDescription

OF_LAUNCH = frozenset({"emulate_tty", "sigterm_timeout", "sigkill_timeout"})
PARAMETERS, PARAMS_FILE = "parameters", "params_file"  # two names of one argument: that of bid up, and that of Nav2
INTERRUPTED = 130  # exit status of a process that Ctrl-C ended


def launch_description(system: str = "", defaults: Mapping[str, Any] | None = None) -> LaunchDescription:
    """Declare the arguments of ``bid up`` and start the nodes of the system's description.

    Args:
        system: folder of a system, or name of a shipped one. Empty: the launch argument ``system`` names it.
        defaults: values of arguments that replace the declared ones.
    """
    named = [] if system else [_named()]
    declared = [*_declared(RunArguments, defaults), _params_file()]
    return LaunchDescription([*named, *declared, OpaqueFunction(function=partial(launch_actions, system=system))])


def teleop_description() -> LaunchDescription:
    """Declare the arguments of ``bid teleop``, and start a system with a person at the controls."""
    device = DeclareLaunchArgument("device", default_value=KEYBOARD, description="what the person holds")
    declared = [*_declared(RunArguments, DEFAULTS, ARGUMENTS), _params_file()]
    return LaunchDescription([_named(), device, *declared, OpaqueFunction(function=_teleop_actions)])


def launch_actions(context: LaunchContext, system: str = "") -> list[object]:
    """Return the actions that start a system with the arguments in ``context``.

    Raises:
        BidError: an argument is not valid.
    """
    found = find_system(system or LaunchConfiguration("system").perform(context))
    return _start(found, _arguments(context, None, OF_LAUNCH if system else {*OF_LAUNCH, "system"}))


def _teleop_actions(context: LaunchContext) -> list[object]:
    found = find_system(LaunchConfiguration("system").perform(context))
    given = _arguments(context, ARGUMENTS, {*OF_LAUNCH, "system", "device"})
    arguments, known = driven(given, LaunchConfiguration("device").perform(context))
    return [LogInfo(msg=known), *_start(found, arguments)]


def _arguments(context: LaunchContext, names: Collection[str] | None, own: Collection[str]) -> RunArguments:
    """Return the arguments of the run, of these names or all; ``own``: further names that the terminal may give."""
    text = _texts(context, RunArguments, names)
    # Where another launch file includes this one inside a PushRosNamespace, that comes first.
    pushed = context.launch_configurations.get("ros_namespace", "")
    text["namespace"] = posixpath.join(pushed, text["namespace"]).rstrip("/")
    file = LaunchConfiguration(PARAMS_FILE).perform(context)
    if file and text[PARAMETERS]:
        raise BidError(f"{PARAMETERS} and {PARAMS_FILE} are both given; valid is one of them: they mean the same")
    text[PARAMETERS] = text[PARAMETERS] or file
    arguments: RunArguments = parse_arguments(_given(context, {*own, PARAMS_FILE}) | text)
    return arguments


def _start(found: System, arguments: RunArguments) -> list[object]:
    """Return the actions that start the nodes of a system. Raises BidError as :func:`launch_actions`."""
    return _run(found, describe(found, arguments), arguments, "episode", arguments.peers)


def replay_description() -> LaunchDescription:
    """Declare the arguments of a replay through live nodes, and start these."""
    return LaunchDescription([_named(), *_declared(ReplayArguments), OpaqueFunction(function=replay_actions)])


def replay_actions(context: LaunchContext) -> list[object]:
    """Return the actions that replay a bag with the arguments in ``context``. Raises BidError if one is not valid."""
    text = _texts(context, ReplayArguments)
    arguments = parse_arguments(_given(context, {*OF_LAUNCH, "system"}) | text, ReplayArguments)
    system = find_system(LaunchConfiguration("system").perform(context))
    specs = describe_replay(system, arguments)
    return _run(system, specs, arguments, REPLAY, replay=specs[0])


def _run(
    system: System,
    specs: Sequence[NodeSpec],
    arguments: RunArguments | ReplayArguments,
    leader: str,
    peers: Sequence[str] = (),
    replay: NodeSpec | None = None,
) -> list[object]:
    """Return the actions that run these nodes until the ``leader`` ends; ``replay`` is a node of a replay."""
    variables = environment(peers, Path(arguments.out))
    prepare(specs, Path(arguments.out))
    nodes: list[object] = [LogInfo(msg=sentence) for sentence in ignored_settings()]
    nodes += _nodes(specs, variables, leader)
    if arguments.rviz:
        command = rviz_command(system, RunArguments(namespace=arguments.namespace), replay)
        rviz = ExecuteProcess(cmd=command, name="rviz", additional_env=variables) if command else LogInfo(msg=NO_RVIZ)
        nodes.append(rviz)
    processes = [node for node in nodes if isinstance(node, ExecuteProcess)]
    on_exit = partial(_on_exit, leader, Path(arguments.out))
    watched = [RegisterEventHandler(OnProcessExit(target_action=node, on_exit=on_exit)) for node in processes]
    return [*watched, RegisterEventHandler(OnShutdown(on_shutdown=_on_shutdown)), *nodes]


def _named() -> DeclareLaunchArgument:
    return DeclareLaunchArgument("system", description="a folder, or a shipped system's name")


def _params_file() -> DeclareLaunchArgument:
    return DeclareLaunchArgument(PARAMS_FILE, default_value="", description=f"the same as {PARAMETERS}")


def _declared(
    of: type[Any], defaults: Mapping[str, Any] | None = None, names: Collection[str] | None = None
) -> list[DeclareLaunchArgument]:
    """Declare the arguments of a dataclass, or those of ``names``; ``defaults`` replace those of the declaration."""
    shown = {item.name: item.default for item in argument_fields(of)} | dict(defaults or {})
    return [
        DeclareLaunchArgument(item.name, default_value=_text(shown[item.name]), description=item.metadata["help"])
        for item in argument_fields(of)
        if names is None or item.name in names
    ]


def _texts(context: LaunchContext, of: type[Any], names: Collection[str] | None = None) -> dict[str, str]:
    names = [item.name for item in argument_fields(of)] if names is None else names
    return {name: LaunchConfiguration(name).perform(context) for name in names}


def _nodes(specs: Sequence[NodeSpec], variables: Mapping[str, str], shown: str) -> list[object]:
    """Return the action of each node. The output of the node ``shown`` goes to the terminal."""
    return [
        Node(
            package="bid_ros",
            executable=spec.executable,
            name=spec.name,
            namespace=spec.namespace,
            ros_arguments=["--log-level", spec.log_level, *enclave_arguments(spec.name, spec.namespace)],
            # Ctrl-C in a terminal reaches the nodes too; until a node can take it, it waits.
            prefix="env --default-signal=INT --block-signal=INT",
            exec_name=spec.name,
            sigkill_timeout=str(END_S),
            parameters=[dict(spec.parameters)],
            additional_env=variables,
            remappings=list(spec.remapped.items()),
            output="screen" if spec.name == shown else "log",
        )
        for spec in specs
    ]


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


def _on_exit(leader: str, out: Path, event: ProcessExited, context: LaunchContext) -> list[object]:
    """End the run with its first process: the ``leader`` ends it, and without any other one it is incomplete.

    An error is how a launch file makes the status of ``ros2 launch`` differ from 0. Who it was is noted in the folder
    ``out`` of the run, for its results.
    """
    if context.is_shutdown:
        return []
    ended = Ended(event.process_name.rpartition("-")[0], event.returncode)
    if ended.name == leader and not event.returncode:
        return [Shutdown(reason="the run is complete")]
    if ended.name != leader or event.returncode < 0:
        note_end(out, ended)
    if ended.name == leader:
        end_run(out)  # nobody else is left who could
    raise BidError(f"{ended}, so the run ends")


def _on_shutdown(event: ShutdownEvent, _: LaunchContext) -> None:
    """Let Ctrl-C, which ends a run that is not complete, show in the exit status. Launch itself would say 0."""
    if event.due_to_sigint:
        atexit.register(_exit_interrupted)


def _exit_interrupted() -> None:
    """End this process, which is about to end, with another status: nothing but this function can change it now."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(INTERRUPTED)


def _text(default: Any) -> str:
    """Return a default as text for launch. It is empty where the system's folder decides."""
    if default in (None, ()):
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)
