"""The twin of a task's robot, in the scene of the task."""

from pathlib import Path
from typing import Any

from bid_ros.core.errors import ArmError
from bid_ros.core.extras import extra
from bid_ros.core.task import Task
from bid_ros.robots.bus import Bus
from bid_ros.robots.registry import ROBOTS, bus_of, load_arm_config, twin_maker
from bid_ros.sim.twin import Twin
from bid_ros.tasks.registry import kind_of


def build_twin(task: Task, address: str, bus: Bus | None = None, config: str | Path = "") -> Twin:
    """Return the twin of a task, not started, that will serve ``address``.

    Args:
        task: names robot and kind of task.
        address: to serve.
        bus: topics and actions, for the twin of a robot that is driven through ROS.
        config: path of the configuration file of such a robot. Empty: its twin's own.

    Raises:
        TaskError: there is no such kind of task.
        ArmError: there is no such robot, it has no twin, the twin's packages are not installed, the address is not
            one that the twin can serve, or it needs a bus.
    """
    maker, over_ros = twin_maker(task.robot), bus_of(ROBOTS.find(task.robot), bus)
    files = (load_arm_config(config, address, True, task.robot),) if over_ros and config else ()
    with extra("twin", "the twin", ArmError):
        return maker.build(kind_of(task).scene(task), address, *over_ros, *files)


def scene_model(task: Task) -> Any:
    """Return the compiled MuJoCo scene of a task's twin, with the twin's ``qpos`` and mocap layout; raises as above."""
    with extra("twin", "the twin's scene", ArmError):
        return twin_maker(task.robot).scene_model(kind_of(task).scene(task))


def picture_model(task: Task) -> Any:
    """Return the same scene as the robot looks, with the camera of :mod:`bid_ros.sim.studio`; raises as above.

    Raises:
        ArmError: also if the robot's package has no such picture.
    """
    made = twin_maker(task.robot).picture_model
    if made is None:
        raise ArmError(f"robot '{task.robot}' has no outlines for pictures; valid is a video of its cameras")
    with extra("twin", "the twin's scene", ArmError):
        return made(kind_of(task).scene(task))
