"""An exercise: the tool moves slowly around a small rectangle, to test the system and limits without a policy."""

from typing import Final

import numpy as np

from bid_ros.control.trajectory import Array, ChunkSource, MotionLimits, Move, Trajectory
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.task import Task
from bid_ros.teleop.base import DeviceDescriptor, EpisodeStart, TeleopDevice

SPEED: Final = MotionLimits(0.05, 0.2, 2.0)  # m/s, m/s^2, m/s^3
CORNERS: Final = ((0.0, 0.06, 0.0), (0.0, 0.06, 0.04), (0.0, -0.06, 0.04), (0.0, -0.06, 0.0), (0.0, 0.0, 0.0))
MARGIN: Final = 0.01  # m that the tool stays inside the workspace


class ExerciseDevice(TeleopDevice):
    """Moves the tool around a rectangle of 12 by 4 cm at 5 cm/s.

    The tool keeps its rotation, and the gripper stays open. In a smaller workspace the rectangle is smaller.

    Args:
        task: task with the workspace.
    """

    def __init__(self, task: Task) -> None:
        limits = task.limits
        self._low = np.array(limits.workspace_min) + MARGIN
        self._high = np.array(limits.workspace_max) - MARGIN
        self._width, self._frame = limits.gripper_max, task.base_frame
        self._round: ChunkSource | None = None

    def begin(self, start: EpisodeStart) -> None:
        """Plan a round from the present tool position."""
        moves: list[Move] = []
        at: Array = start.tool
        for corner in CORNERS:
            to = np.clip(start.tool + np.array(corner), self._low, self._high)
            moves.append(Move([at, to], SPEED, moves[-1].end_s if moves else 0.0))
            at = to
        widths = ((0.0, self._width),)
        trajectory = Trajectory(start.tool, start.rotation, tuple(moves), (), widths, duration_s=moves[-1].end_s)
        self._round = ChunkSource(trajectory, start.now_ns, "teleop", self._frame)

    def chunk_at(self, now_ns: int, steps: int, dt_ns: int) -> ActionChunk | None:
        """Return the next actions. When a round ends, the next one begins."""
        if self._round is None:
            return None
        if now_ns - self._round.start_ns > self._round.trajectory.duration_s * NANOSECONDS:
            self._round.start_ns = now_ns
        return self._round.chunk_at(now_ns, steps, dt_ns)

    def end(self) -> None:
        """Forget the round."""
        self._round = None


DEVICE = DeviceDescriptor("exercise", ExerciseDevice)
