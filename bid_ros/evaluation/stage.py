"""What a rehearsal plays on: the scene of a task stepped in lockstep, behind one seam."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from bid_ros.errors import TaskError
from bid_ros.task import Task

Array = NDArray[np.float64]
Pose = tuple[Array, Array]
STEP_NS: Final = 10_000_000  # of every stage


class Stage(Protocol):
    """One task's arm, gripper and scene. One thread only, as they render."""

    @property
    def measured(self) -> Pose:
        """Where the tool is: position ``(3,)`` m and quaternion ``(4,)`` xyzw, base frame."""

    @property
    def width(self) -> float:
        """Opening of the gripper, m."""

    def begin(self, seed: int, start: Array, cup_speed: float) -> None:
        """Lay out the episode of a seed, the tool at ``start`` ``(3,)`` m and pointing down, and let the cup go.

        Raises:
            TaskError: the seed or the speed is not valid.
            ArmError: the arm does not reach the start.
        """

    def images(self) -> Mapping[str, NDArray[np.uint8]]:
        """Return one ``(height, width, 3)`` rgb8 image per camera of what is now."""

    def step(self, position: Array, quaternion: Array, gripper: float | None) -> str:
        """Pass ``STEP_NS`` after which the tool is at a pose (m, xyzw); return the episode's outcome or nothing.

        Args:
            position, quaternion: ``(3,)``, ``(4,)``, base frame.
            gripper: width asked for last, m; None if none was.

        Raises:
            ArmError: the arm does not reach the pose.
        """

    def give_up(self) -> str:
        """Return the outcome of an episode whose time is over."""

    def close(self) -> None:
        """Free the renderer."""


def build_stage(task: Task) -> Stage:
    """Return the stage of a task.

    Raises:
        TaskError: if the task has none.
        CameraError: if no offscreen rendering works here.
    """
    if task.name not in STAGES:
        raise TaskError(f"the task '{task.name}' cannot be rehearsed; valid are {', '.join(STAGES)}")
    height, width = task.cameras[0].shape[:2]
    return STAGES[task.name](width, height, [camera.name for camera in task.cameras])


# Imported on demand: nobody needs the libraries of a robot they do not have.
def _placing(*arguments: Any) -> Stage:
    from bid_ros.evaluation.placing_stage import PlacingStage

    return PlacingStage(*arguments)


def _picking(*arguments: Any) -> Stage:
    from bid_ros.evaluation.picking_stage import PickingStage

    return PickingStage(*arguments)


STAGES: Final[Mapping[str, Callable[..., Stage]]] = {"franka_place": _placing, "ur5_pick": _picking}
