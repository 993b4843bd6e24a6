"""Robots by name, and their configuration files."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from bid_ros.control.arm_model import ArmModel
from bid_ros.core.errors import ArmError, TaskError
from bid_ros.core.extras import extra
from bid_ros.core.registry import Registry, collect
from bid_ros.core.settings import parse_settings, parse_with_twin, read_yaml
from bid_ros.core.task import NO_ROBOT, Task
from bid_ros.robots.base import Arm
from bid_ros.robots.bus import Bus
from bid_ros.robots.descriptor import RobotDescriptor, TwinMaker

ROBOTS: Final[Registry[RobotDescriptor]] = Registry(
    "robot", "bid_ros.robots", lambda: collect(__package__, "ROBOT"), ArmError
)
ANY_ADDRESS: Final = "any address"  # of a robot of which only kinematics and limits are asked


def build_arm(name: str, config: Any, bus: Bus | None = None) -> Arm:
    """Return the driver of the robot ``name`` for ``config``, not yet connected.

    Args:
        name: of the robot.
        config: its configuration.
        bus: topics and actions, for a robot that is driven through ROS.

    Raises:
        ArmError: no such robot, a configuration of another one, its library is not installed, or it needs a bus.
    """
    robot = ROBOTS.find(name)
    if not isinstance(config, robot.config):
        raise ArmError(f"robot '{name}' was given a {type(config).__name__}; valid is a {robot.config.__name__}")
    try:
        with extra(robot.extra, f"robot '{name}'", ArmError) if robot.extra else nullcontext():
            return robot.driver(config, *bus_of(robot, bus))
    except ImportError as error:
        raise ArmError(f"robot '{name}' needs the Python package {robot.library}: {error}") from error


def bus_of(robot: RobotDescriptor, bus: Bus | None) -> tuple[Bus, ...]:
    """Return what a driver or twin takes beside its other arguments. Raises ArmError if a bus is missing."""
    if not robot.over_ros:
        return ()
    if bus is None:
        raise ArmError(f"robot '{robot.name}' is driven through ROS; valid is a run with its nodes: bid up")
    return (bus,)


def twin_maker(name: str) -> TwinMaker:
    """Return the maker of the twin of a robot. Raises ArmError if the robot does not exist or has no twin."""
    twin = ROBOTS.find(name).twin
    if twin is None:
        raise ArmError(f"robot '{name}' has no twin; give the address of a robot")
    return twin


def check_robot(task: Task) -> None:
    """Raise TaskError if a task is of no robot: nothing may move for it, and nothing is known of joints."""
    if task.robot == NO_ROBOT:
        raise TaskError(
            f"task '{task.name}' is of no robot (robot: {NO_ROBOT}), so no arm and no twin moves for it; valid are bid "
            "train and bid evaluate, or a task of a robot"
        )


def check_joints(task: Task) -> None:
    """Raise TaskError if a task is of no robot, or observes or commands more or fewer joints than its robot has."""
    check_robot(task)
    for group, features in (("observation", task.observation), ("action", task.action)):
        for feature in features:
            joints = ROBOTS.find(task.robot).joints if feature.kind == "joints" else 0
            if joints and feature.size != joints:
                valid = f"valid is ({joints},), the joints of robot '{task.robot}'"
                raise TaskError(f"{group} '{feature.name}' has shape {feature.shape}; {valid}")


def task_arm(task: Task, config: str | Path = "", twin: bool = False) -> ArmModel | None:
    """Return kinematics and limits of the joints that a task commands; None if it commands none.

    Args:
        task: names the robot.
        config: path of the robot's configuration file, for its tool and its limits. Empty: the robot's defaults.
        twin: the file's section ``twin`` replaces fields.

    Raises:
        ArmError: nothing is known of the robot's joints, or as :func:`load_arm_config`.
        TaskError: as :func:`check_joints`.
    """
    if task.columns("joints") is None:
        return None
    check_joints(task)
    robot = ROBOTS.find(task.robot)
    if robot.arm_model is None:
        raise ArmError(f"the joints of robot '{robot.name}' are not known; valid is a task that commands a position")
    given = load_arm_config(config, ANY_ADDRESS, twin, task.robot) if config else _defaults(robot)
    return robot.arm_model(given)


def posed_arm(task: Task, config: str | Path = "", twin: bool = False) -> ArmModel | None:
    """Return kinematics and limits of the joints that follow a task's poses; None if it commands joints.

    The arguments are those of :func:`task_arm`.

    Raises:
        ArmError: nothing is known of the robot's joints.
    """
    if task.columns("joints") is not None:
        return None
    robot = ROBOTS.find(task.robot)
    if robot.arm_model is None:
        raise ArmError(f"the joints of robot '{robot.name}' are not known: it has no arm_model")
    return robot.arm_model(load_arm_config(config, ANY_ADDRESS, twin, task.robot) if config else _defaults(robot))


def _defaults(robot: RobotDescriptor) -> Any:
    """Return the robot's configuration without a file; ArmError if it has none."""
    return parse_settings(robot.config, {"address": ANY_ADDRESS}, f"robot '{robot.name}' without its robot.yaml")


def load_arm_config(path: str | Path, address: str, twin: bool, name: str) -> Any:
    """Read the configuration file of the robot ``name``; with ``twin`` its section ``twin`` replaces fields.

    Raises:
        ArmError: no such robot, or the file is missing, is not YAML, has an unknown field or an impossible value.
    """
    what = "robot file"
    content = read_yaml(path, what, ArmError)
    return parse_with_twin(ROBOTS.find(name).config, content, f"{what} {path}", twin, address=address, twin=twin)
