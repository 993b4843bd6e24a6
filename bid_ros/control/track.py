"""A chunk, prepared to be sampled at any instant, a hundred times a second."""

from dataclasses import dataclass

from bid_ros.control.spatial import ZERO, Quaternion, Vector, add, times, turn_between, turned
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.errors import TaskError
from bid_ros.core.rotation import matrix_from_6d, quaternion_from_matrix
from bid_ros.core.task import Task


@dataclass(frozen=True)
class Target:
    """What a chunk commands at one instant: pose, velocities (m/s, rad/s, base axes), gripper opening in m.

    ``quaternion`` is None if the task commands no rotation, ``gripper_width`` if it commands no gripper.
    """

    position: Vector
    velocity: Vector
    quaternion: Quaternion | None
    turn_rate: Vector
    gripper_width: float | None


class Columns:
    """Columns of position, rotation and gripper in the chunks of a task.

    Raises:
        TaskError: the task commands no tool position, or commands joints.
    """

    def __init__(self, task: Task) -> None:
        position = task.columns("position")
        if position is None or task.columns("joints") is not None:
            kinds = ", ".join(item.kind for item in task.action)
            raise TaskError(
                f"task '{task.name}' commands {kinds}; valid is a position, with or without rotation_6d and gripper"
            )
        self.position = position
        self.rotation = task.columns("rotation_6d")
        self.gripper = task.columns("gripper")


class ChunkTrack:
    """Samples one chunk: positions linearly, rotations by slerp, the gripper in steps.

    Args:
        chunk: actions ``(H, D)`` as the task says.
        columns: of the task.
    """

    def __init__(self, chunk: ActionChunk, columns: Columns) -> None:
        self.chunk = chunk
        actions = chunk.actions
        self._seconds = chunk.dt_ns / NANOSECONDS
        self._positions: list[Vector] = [(x, y, z) for x, y, z in actions[:, columns.position].tolist()]
        self._quaternions: list[Quaternion] = []
        if columns.rotation is not None:
            quaternions = quaternion_from_matrix(matrix_from_6d(actions[:, columns.rotation]))
            self._quaternions = [(x, y, z, w) for x, y, z, w in quaternions.tolist()]
        self._widths: list[float] = [] if columns.gripper is None else actions[:, columns.gripper].ravel().tolist()

    def sample(self, now_ns: int) -> Target:
        """Return what the chunk commands at ``now_ns``. Before its first and after its last row it is at rest."""
        place = self.chunk.position_at(now_ns)
        row = int(place)
        width = self._widths[row] if self._widths else None
        if row + 1 >= len(self._positions):
            return Target(
                self._positions[row], ZERO, self._quaternions[row] if self._quaternions else None, ZERO, width
            )
        share = place - row
        start = self._positions[row]
        step = add(self._positions[row + 1], start, -1.0)
        quaternion, turn = None, ZERO
        if self._quaternions:
            turn = turn_between(self._quaternions[row], self._quaternions[row + 1])
            quaternion = turned(self._quaternions[row], times(turn, share))
        rate = 1.0 / self._seconds
        return Target(add(start, step, share), times(step, rate), quaternion, times(turn, rate), width)
