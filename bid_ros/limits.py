"""What the arm of a task may be asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from bid_ros.checks import check_positive
from bid_ros.errors import TaskError


@dataclass(frozen=True)
class Limits:
    """What the arm may be asked for. On by default; every chunk is held to all of them.

    Attributes:
        workspace_min, workspace_max: corners of the box the tool may be sent to, m, in the task's frame.
        max_speed, max_acceleration, max_jerk: of the tool, m/s, m/s^2, m/s^3.
        max_turn_rate, max_turn_acceleration: of the tool, rad/s, rad/s^2.
        max_tilt: largest angle in rad between the tool's approach axis and straight down.
        gripper_min, gripper_max: opening width, m.
        max_jump: largest distance in m between the measured tool and the action for *now*.
        max_chunk_age: s a chunk's stamp may lie in the past on arrival; max_chunk_lead: s it may lie ahead.
    """

    workspace_min: tuple[float, float, float]
    workspace_max: tuple[float, float, float]
    max_speed: float = 0.5
    max_acceleration: float = 3.0
    max_jerk: float = 200.0
    max_turn_rate: float = 1.5
    max_turn_acceleration: float = 10.0
    max_tilt: float = 0.6
    gripper_min: float = 0.0
    gripper_max: float = 0.08
    max_jump: float = 0.15
    max_chunk_age: float = 0.5
    max_chunk_lead: float = 0.2

    def __post_init__(self) -> None:
        for name in ("workspace_min", "workspace_max"):
            if len(getattr(self, name)) != 3:
                raise TaskError(f"limits: {name} is {list(getattr(self, name))}; valid are three numbers x, y, z")
        for low, high, axis in zip(self.workspace_min, self.workspace_max, "xyz", strict=True):
            if not -math.inf < low < high < math.inf:
                raise TaskError(f"limits: workspace {axis} runs from {low} to {high}; valid is min < max, both finite")
        for item in fields(self):
            if item.name.startswith("max_"):
                check_positive("limits", item.name, getattr(self, item.name), TaskError)
        if not 0 <= self.gripper_min < self.gripper_max <= 0.2:
            raise TaskError(
                f"limits: gripper {self.gripper_min} to {self.gripper_max} m; valid is 0 <= min < max <= 0.2"
            )
