"""Dynamic placing on a Franka arm, or on its twin when no robot_ip is given."""

from launch.actions import DeclareLaunchArgument, OpaqueFunction, RegisterEventHandler, SetEnvironmentVariable, Shutdown
from launch.event_handlers import OnProcessExit
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from bid_ros.bringup import UpArguments, describe, environment, rviz_layout
from bid_ros.errors import BidError
from launch import LaunchContext, LaunchDescription

ARGUMENTS = {
    "robot_ip": ("", "address of the robot; empty starts the twin"),
    "decoder": ("bid", "how chunks are chosen; docs/decoding.md lists the names"),
    "samples": ("16", "strong samples a decision"),
    "action_horizon": ("1", "actions executed a decision; 15 = open loop"),
    "bundle": ("", "folder of the policy bundle; empty = the one shipped for the system"),
    "moving": ("0.03", "speed of the twin's cup in m/s, 0 = static"),
    "episodes": ("3", "number of episodes"),
    "seed": ("0", "seed of the first episode"),
    "rviz": ("false", "start RViz"),
    "record": ("true", "write a bag"),
    "out": ("out", "folder for run.json and the bag"),
}


def _number(name: str, text: str) -> None:
    try:
        float(text) if name == "moving" else int(text)
    except ValueError:
        raise BidError(f"{name} is '{text}'; valid is a {'number' if name == 'moving' else 'whole number'}") from None


def _switch(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise BidError(f"{name} is '{text}'; valid are true and false")
    return text.lower() == "true"


def _nodes(context: LaunchContext) -> list[object]:
    text = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    for name in ("samples", "action_horizon", "episodes", "seed", "moving"):
        _number(name, text[name])
    arguments = UpArguments(
        robot_ip=text["robot_ip"],
        decoder=text["decoder"],
        samples=int(text["samples"]),
        action_horizon=int(text["action_horizon"]),
        bundle=text["bundle"],
        moving=float(text["moving"]),
        episodes=int(text["episodes"]),
        seed=int(text["seed"]),
        rviz=_switch("rviz", text["rviz"]),
        record=_switch("record", text["record"]),
        out=text["out"],
    )
    specs = describe("franka_place", arguments)
    nodes = [
        Node(
            package="bid_ros",
            executable=spec.executable,
            name=spec.name,
            parameters=[dict(spec.parameters)],
            output="screen" if spec.name == "episode" else "log",
        )
        for spec in specs
    ]
    if arguments.rviz:
        nodes.append(Node(package="rviz2", executable="rviz2", arguments=["-d", str(rviz_layout("franka_place"))]))
    # The episode runner ends the run; any other node that ends would leave an incomplete system behind.
    actions = [RegisterEventHandler(OnProcessExit(target_action=node, on_exit=[Shutdown()])) for node in nodes]
    variables = environment(twin=not arguments.robot_ip)
    del variables["BID_SUPERVISOR"]  # of `bid up`; launch ends its nodes itself
    return [*(SetEnvironmentVariable(name, value) for name, value in variables.items()), *actions, *nodes]


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments of ``bid up`` and start the nodes that ``bringup.describe`` names."""
    declared = [
        DeclareLaunchArgument(name, default_value=value, description=text) for name, (value, text) in ARGUMENTS.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=_nodes)])
