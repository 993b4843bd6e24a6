"""Kinds of task by name."""

from typing import Final

from bid_ros.core.errors import TaskError
from bid_ros.core.registry import Registry, collect
from bid_ros.core.task import Task
from bid_ros.robots.gripper import GripperThresholds
from bid_ros.tasks.base import Demonstrator, EpisodeSetup, Score, Stage, TaskDescriptor

TASKS: Final[Registry[TaskDescriptor]] = Registry(
    "kind of task", "bid_ros.tasks", lambda: collect(__package__, "TASK"), TaskError
)


def kind_of(task: Task) -> TaskDescriptor:
    """Return the kind that a task file names, with what the file says of it itself.

    Raises:
        TaskError: there is no such kind, or the objects of the file find no room.
    """
    kind = TASKS.find(task.kind)
    return kind if kind.of is None else kind.of(task)


def setup_of(task: Task) -> EpisodeSetup:
    """Return how an episode of a task begins; TaskError if there is no such kind of task."""
    widest = task.limits.gripper_max
    return kind_of(task).setup or EpisodeSetup(widest, 0.9 * widest, None, "set up the scene")


def build_score(task: Task) -> Score:
    """Return the judge of a task's episodes in the twin; TaskError if there is no such kind of task."""
    return kind_of(task).score()


def build_stage(task: Task, thresholds: GripperThresholds) -> Stage:
    """Return the stage of a task's rehearsals.

    Args:
        task: the task.
        thresholds: of the gripper, from the robot's configuration file.

    Raises:
        TaskError: the task cannot be rehearsed, or there is no such kind of task.
        CameraError: no offscreen rendering works here.
    """
    stage = kind_of(task).stage
    if stage is None:
        raise TaskError(f"task '{task.name}' of kind '{task.kind}' cannot be rehearsed; run it in its twin: bid up")
    height, width = task.cameras[0].shape[:2]
    return stage(width, height, [camera.name for camera in task.cameras], thresholds)


def find_demonstrator(task: Task) -> Demonstrator:
    """Return how a task is demonstrated by a script.

    Raises:
        TaskError: nobody knows how, or there is no such kind of task.
    """
    found = kind_of(task).demonstrator
    if found is None:
        raise TaskError(f"task '{task.name}' of kind '{task.kind}' has no scripted teleoperator")
    return found
