"""The launch description of a system: what its launch file returns to ``ros2 launch``.

Only launch files import this module: ROS's launch is not a Python package of the registries, so ``bid up`` starts
the same nodes without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from launch.actions import DeclareLaunchArgument, OpaqueFunction, RegisterEventHandler, SetEnvironmentVariable, Shutdown
from launch.event_handlers import OnProcessExit
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from bid_ros.bringup import UpArguments, describe, environment, rviz_layout
from bid_ros.errors import BidError
from launch import LaunchContext, LaunchDescription

ARGUMENTS: Final[Mapping[str, tuple[str, str]]] = {
    "robot_ip": ("", "address of the robot; empty starts the twin"),
    "decoder": ("bid", "how chunks are chosen; docs/decoding.md lists the names"),
    "samples": ("16", "strong samples a decision"),
    "action_horizon": ("1", "actions executed a decision; 15 = open loop"),
    "bundle": ("", "folder of the policy bundle; empty = the one shipped for the system"),
    "moving": ("", "speed of the twin's cup in m/s, 0 = static; empty = what the shipped policy was evaluated at"),
    "episodes": ("3", "number of episodes"),
    "seed": ("0", "seed of the first episode"),
    "rviz": ("false", "start RViz"),
    "record": ("true", "write a bag"),
    "out": ("out", "folder for run.json and the bag"),
}


def launch_description(system: str) -> LaunchDescription:
    """Declare the arguments of ``bid up`` and start the nodes that :func:`bid_ros.bringup.describe` names."""
    declared = [
        DeclareLaunchArgument(name, default_value=value, description=text) for name, (value, text) in ARGUMENTS.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=partial(launch_actions, system=system))])


def launch_actions(context: LaunchContext, system: str) -> list[object]:
    """Return the actions that start a system with the arguments in ``context``.

    Raises:
        BidError: an argument is not valid.
    """
    arguments = _arguments({name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS})
    nodes = [
        Node(
            package="bid_ros",
            executable=spec.executable,
            name=spec.name,
            parameters=[dict(spec.parameters)],
            output="screen" if spec.name == "episode" else "log",
        )
        for spec in describe(system, arguments)
    ]
    if arguments.rviz:
        nodes.append(Node(package="rviz2", executable="rviz2", arguments=["-d", str(rviz_layout(system))]))
    # The episode runner ends the run; any other node that ends would leave an incomplete system behind.
    actions = [RegisterEventHandler(OnProcessExit(target_action=node, on_exit=[Shutdown()])) for node in nodes]
    variables = environment(twin=not arguments.robot_ip)
    del variables["BID_SUPERVISOR"]  # of `bid up`; launch ends its nodes itself
    return [*(SetEnvironmentVariable(name, value) for name, value in variables.items()), *actions, *nodes]


def _arguments(text: Mapping[str, str]) -> UpArguments:
    return UpArguments(
        robot_ip=text["robot_ip"],
        decoder=text["decoder"],
        samples=_whole("samples", text),
        action_horizon=_whole("action_horizon", text),
        bundle=text["bundle"],
        moving=_number("moving", text) if text["moving"] else None,
        episodes=_whole("episodes", text),
        seed=_whole("seed", text),
        rviz=_switch("rviz", text),
        record=_switch("record", text),
        out=text["out"],
    )


def _whole(name: str, text: Mapping[str, str]) -> int:
    try:
        return int(text[name])
    except ValueError:
        raise BidError(f"{name} is '{text[name]}'; valid is a whole number") from None


def _number(name: str, text: Mapping[str, str]) -> float:
    try:
        return float(text[name])
    except ValueError:
        raise BidError(f"{name} is '{text[name]}'; valid is a number") from None


def _switch(name: str, text: Mapping[str, str]) -> bool:
    if text[name].lower() not in ("true", "false"):
        raise BidError(f"{name} is '{text[name]}'; valid are true and false")
    return text[name].lower() == "true"
