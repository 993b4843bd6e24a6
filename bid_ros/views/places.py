"""Where chunks put the tool: at the commanded position, or where forward kinematics of commanded joints put it."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.joint_chunks import tool_task
from bid_ros.core.task import Task
from bid_ros.robots.registry import task_arm

Array = NDArray[np.float64]


class ToolPlaces:
    """Finds the tool along the chunks of one system.

    A system that commands joints may have a policy that predicts poses. Its decisions are of poses, its chunks of
    joints: the width of a row tells them apart.

    Args:
        task: of the system.
        arm: kinematics, of a task that commands joints. None: its chunks of joints cannot be drawn.
    """

    def __init__(self, task: Task, arm: ArmModel | None = None) -> None:
        poses = tool_task(task)
        self._columns, self._width = poses.columns("position"), poses.action_dim
        self._joints, self._joints_width, self._arm = task.columns("joints"), task.action_dim, arm

    def knows(self, width: int) -> bool:
        """Whether the tool is known along rows of ``width`` values."""
        if self._joints is not None and width == self._joints_width:
            return self._arm is not None
        return self._columns is not None and width == self._width

    def of(self, rows: ArrayLike) -> Array:
        """Return the tool's positions ``(..., 3)`` in m, base frame, along rows ``(..., D)`` that are known."""
        values = np.asarray(rows, dtype=np.float64)
        if self._joints is not None and self._arm is not None and values.shape[-1] == self._joints_width:
            return self._arm.forward(values[..., self._joints])[0]
        places: Array = values[..., self._columns]
        return places


def tool_places(task: Task, robot: Path, twin: bool) -> ToolPlaces:
    """Return where chunks of a task put the tool.

    Args:
        task: of the system.
        robot: path of its ``robot.yaml``. If there is none, the robot's own numbers hold.
        twin: its section ``twin`` holds.

    Raises:
        BidError: as :func:`bid_ros.robots.registry.task_arm`.
    """
    config: Any = robot if robot.is_file() else ""
    return ToolPlaces(task, task_arm(task, config, twin))
