"""The servo of the tool: turns chunks of poses into set-points that always keep the task's limits."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.control.follower import FollowerLimits, brake, kept_inside, no_further_out, pursue, stopping_point
from bid_ros.control.servo_base import TIME_CONSTANT_S, Servo
from bid_ros.control.setpoint import JointSetpoint, Setpoint
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


class ChunkServo(Servo[Target]):
    """Follows chunks that command the tool's pose. See :class:`bid_ros.control.servo_base.Servo`.

    The set-point can always brake to rest inside the workspace. If it starts outside, it never moves further out.

    Args:
        task: action features and limits.
        lookahead_s: as there.

    Raises:
        TaskError: the task's actions are not a tool pose.
    """

    def __init__(self, task: Task, lookahead_s: float = 0.0) -> None:
        super().__init__(task, lookahead_s)
        if task.columns("position") is None or task.columns("joints") is not None:
            kinds = ", ".join(item.kind for item in task.action)
            raise TaskError(
                f"task '{task.name}' commands {kinds}; valid is a position, with or without rotation_6d and gripper"
            )
        self._task, limits = task, task.limits
        self._linear = FollowerLimits(limits.max_speed, limits.max_acceleration)
        self._angular = FollowerLimits(limits.max_turn_rate, limits.max_turn_acceleration)
        self._low: Vector = limits.workspace_min
        self._high: Vector = limits.workspace_max
        self._position: Vector = ZERO
        self._quaternion: Quaternion = (0.0, 0.0, 0.0, 1.0)
        self._velocity: Vector = ZERO
        self._turn_rate: Vector = ZERO

    def start(self, position: ArrayLike, quaternion: ArrayLike, now_ns: int) -> None:
        """Begin at rest at a measured pose: ``(3,)`` m and ``(4,)`` xyzw, base frame. A latched stop remains."""
        x, y, z = np.asarray(position, dtype=np.float64).tolist()
        self._position = (x, y, z)
        turn = np.asarray(quaternion, dtype=np.float64)
        qx, qy, qz, qw = (turn / np.linalg.norm(turn)).tolist()
        self._quaternion = (qx, qy, qz, qw)
        self._last_ns = now_ns
        self._velocity = self._turn_rate = ZERO
        self.release()

    def _prepared(self, chunk: ActionChunk) -> ChunkTrack:
        return ChunkTrack(chunk, self._task)

    def _rested(self, target: Target) -> Target:
        return Target(target.position, ZERO, target.quaternion, ZERO, target.gripper_width)

    def _resting(self) -> bool:
        return self._velocity == ZERO and self._turn_rate == ZERO

    def _setpoint(self) -> tuple[Setpoint, JointSetpoint | None]:
        turn, velocity = np.array(self._quaternion), np.array(self._velocity)
        return Setpoint(np.array(self._position), turn, velocity, np.array(self._turn_rate)), None

    def _kept(self, target: Target) -> Target:
        """Return the target, moved into the workspace. It is at rest along each axis on which it was moved."""
        (x, y, z), (u, v, w) = kept_inside(target.position, target.velocity, self._low, self._high)
        return Target((x, y, z), (u, v, w), target.quaternion, target.turn_rate, target.gripper_width)

    def _advance(self, dt: float) -> None:
        target = self._target
        self._velocity = self._next_velocity(target, dt)
        self._position = add(self._position, self._velocity, dt)
        if target is None:
            self._turn_rate = brake(self._turn_rate, self._angular.acceleration, dt)
        else:
            wanted = self._quaternion if target.quaternion is None else target.quaternion
            error = turn_between(self._quaternion, wanted)
            self._turn_rate = pursue(self._turn_rate, error, target.turn_rate, self._angular, TIME_CONSTANT_S, dt)
        self._quaternion = turned(self._quaternion, times(self._turn_rate, dt))

    def _next_velocity(self, target: Target | None, dt: float) -> Vector:
        """Return the next velocity. Braking is always possible: the step before kept the stopping point inside."""
        motion = self._linear
        if target is not None:
            error = add(target.position, self._position, -1.0)
            velocity = pursue(self._velocity, error, target.velocity, motion, TIME_CONSTANT_S, dt)
            place = add(self._position, velocity, dt)
            end = stopping_point(place, velocity, motion.acceleration)
            if no_further_out(end, self._low, self._high, self._position):
                return velocity
        return brake(self._velocity, motion.acceleration, dt)
