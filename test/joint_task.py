"""Tasks that command joints, and chunks for them, for several tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.control.arm_model import ArmModel
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.feature import Feature
from bid_ros.core.limits import Limits
from bid_ros.core.task import Task, load_task
from bid_ros.robots.registry import task_arm

ROOT: Final = Path(__file__).resolve().parent.parent
# Postures in rad that put the tool inside the workspaces of the shipped tasks, pointing straight down.
HOME: Final = {
    "franka": np.array([0.0, -0.28278114, 0.0, -2.40004545, 0.0, 2.11726431, np.pi / 4]),
    "ur": np.array([3.0, -1.7, 2.0, -1.87, -1.57, 0.0]),
}
SYSTEMS: Final = {"franka": "franka_place", "ur": "ur5_pick"}


def joint_task(robot: str, **limits: object) -> Task:
    """Return the shipped task of a robot with its joints and gripper as the action, and limits replaced."""
    task = load_task(ROOT / "config" / SYSTEMS[robot] / "task.yaml")
    action = (Feature("joint_positions", "joints", (len(HOME[robot]),)), Feature("gripper_width", "gripper"))
    return replace(task, name=f"{task.name}_joints", action=action, limits=replace(task.limits, **limits))


def around_home(robot: str, **limits: object) -> Task:
    """Return the same, with a workspace of 0.4 m around the tool at home."""
    task = joint_task(robot, **limits)
    place = model_of(task).forward(HOME[robot])[0]
    box: dict[str, object] = {"workspace_min": tuple(place - 0.4), "workspace_max": tuple(place + 0.4), "max_tilt": 3.0}
    kept: Limits = replace(task.limits, **box)
    return replace(task, limits=kept, start=None)


def model_of(task: Task) -> ArmModel:
    """Return the model of a task's arm."""
    model = task_arm(task)
    assert model is not None
    return model


def joint_chunk(task: Task, joints: ArrayLike, width: float = 0.04, **fields: object) -> ActionChunk:
    """Return a chunk of joints ``(H, joints)`` rad, with the gripper at ``width`` m."""
    rows: NDArray[np.float64] = np.asarray(joints, dtype=np.float64)
    actions = np.concatenate([rows, np.full((len(rows), 1), width)], axis=1)
    given: dict[str, object] = {"stamp_ns": 1_000_000_000_000, "dt_ns": task.dt_ns, "frame_id": task.base_frame}
    return ActionChunk(actions=actions, **{**given, **fields})  # type: ignore[arg-type]
