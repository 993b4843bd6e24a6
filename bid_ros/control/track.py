"""A chunk, prepared to be sampled at any instant, a hundred times a second."""

from dataclasses import dataclass

from bid_ros.control.spatial import ZERO, Quaternion, Vector, add, times, turn_between, turned
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
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


class ChunkTrack:
    """Samples one chunk: positions linearly, rotations by slerp, the gripper in steps.

    Args:
        chunk: actions ``(H, D)`` as the task says.
        task: its columns.
    """

    def __init__(self, chunk: ActionChunk, task: Task) -> None:
        self.chunk, actions = chunk, chunk.actions
        position, rotation, gripper = (task.columns(kind) for kind in ("position", "rotation_6d", "gripper"))
        self._seconds = chunk.dt_ns / NANOSECONDS
        self._positions: list[Vector] = [(x, y, z) for x, y, z in actions[:, position or slice(0, 0)].tolist()]
        self._quaternions: list[Quaternion] = []
        if rotation is not None:
            quaternions = quaternion_from_matrix(matrix_from_6d(actions[:, rotation]))
            self._quaternions = [(x, y, z, w) for x, y, z, w in quaternions.tolist()]
        self._widths: list[float] = [] if gripper is None else actions[:, gripper].ravel().tolist()

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
