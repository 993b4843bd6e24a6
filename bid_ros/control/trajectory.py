"""Smooth tool trajectories of minimum-jerk moves. Moves may overlap, so the tool need not rest between them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.core.checks import check_positive
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.rotation import matrix_from_6d, matrix_from_vector, matrix_to_6d, vector_from_matrix
from bid_ros.core.task import Task

Array = NDArray[np.float64]

# Peaks of the minimum-jerk motion 10 t^3 - 15 t^4 + 6 t^5 of unit length and duration (Flash and Hogan, 1985).
PEAK_SPEED = 1.875
PEAK_ACCELERATION = 5.774
PEAK_JERK = 60.0
SAMPLES = 201
REST = [(1, np.zeros(3)), (2, np.zeros(3))]
STILL = [(1, np.zeros(3))]


@dataclass(frozen=True)
class MotionLimits:
    """Largest speed, acceleration and jerk of a move: m/s, m/s^2, m/s^3 (or rad), all positive and finite."""

    speed: float
    acceleration: float
    jerk: float

    def __post_init__(self) -> None:
        for name in ("speed", "acceleration", "jerk"):
            check_positive("motion limits", name, getattr(self, name), ValueError)

    def stretch(self, speed: float, acceleration: float, jerk: float) -> float:
        """Return the shortest time in s that keeps the limits, for a motion that has these peaks in 1 s."""
        # Stretching by a factor divides the n-th derivative by its n-th power.
        return max(
            speed / self.speed,
            math.sqrt(acceleration / self.acceleration),
            math.cbrt(jerk / self.jerk),
        )

    def at(self, scale: float) -> "MotionLimits":
        """Return the peaks of the same motion in slower time; ``scale`` is the factor of its speed."""
        return MotionLimits(self.speed * scale, self.acceleration * scale**2, self.jerk * scale**3)

    def duration(self, length: float) -> float:
        """Shortest time in s of a minimum-jerk move over ``length``."""
        return self.stretch(PEAK_SPEED * length, PEAK_ACCELERATION * length, PEAK_JERK * length)


class Move:
    """The move from rest through points to rest, as fast as its limits allow; minimum jerk unless it is brisk.

    The curve of least squared jerk through given points is the quintic spline with zero velocity and acceleration at
    its ends (Flash and Hogan, "The coordination of arm movements", J. Neuroscience 1985). It slows down by itself where
    it bends. So the limits hold for the whole acceleration, not only along the curve.

    Args:
        points: ``(P, 3)`` m, at least two. Points between the first and the last are passed without a stop.
        limits: peaks.
        begin_s: s at which it begins.
        brisk: leave and reach rest at full acceleration, like a pushed joystick. This is the cubic spline with zero
            velocity at its ends, the curve of least squared acceleration.

    Raises:
        ValueError: there are fewer than two points, or one is not finite.
    """

    def __init__(self, points: ArrayLike, limits: MotionLimits, begin_s: float = 0.0, brisk: bool = False) -> None:
        # The import takes a third of a second. Nodes do it when they start, commands only if they plan a move.
        from scipy.interpolate import make_interp_spline

        waypoints = np.asarray(points, dtype=np.float64)
        if waypoints.ndim != 2 or len(waypoints) < 2 or waypoints.shape[1] != 3 or not np.isfinite(waypoints).all():
            raise ValueError(
                f"a move's points have shape {waypoints.shape}; valid are two or more finite points (P, 3)"
            )
        self.first, self.last = waypoints[0], waypoints[-1]
        self.begin_s = self.end_s = begin_s
        self._curve: Any = None
        steps = np.linalg.norm(np.diff(waypoints, axis=0), axis=1)
        waypoints = waypoints[np.concatenate([[True], steps > 1e-6])]
        if len(waypoints) < 2:
            return
        knots = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(waypoints, axis=0), axis=1))])
        degree, ends = (3, STILL) if brisk else (5, REST)
        self._curve = make_interp_spline(knots / knots[-1], waypoints, k=degree, bc_type=(ends, ends))
        self.end_s = begin_s + self._shortest(limits)

    def displacement(self, times: Array) -> Array:
        """Return how far from ``first`` the move has come at ``times`` ``(n,)``: ``(n, 3)`` m."""
        if self._curve is None:
            return np.zeros((len(times), 3))
        share = np.clip((times - self.begin_s) / (self.end_s - self.begin_s), 0.0, 1.0)
        displaced: Array = self._curve(share) - self.first
        return displaced

    def _shortest(self, limits: MotionLimits) -> float:
        """Shortest duration in s: the first of speed, acceleration and jerk peaks at its limit."""
        shares = np.linspace(0.0, 1.0, SAMPLES)
        peaks = [float(np.linalg.norm(self._curve(shares, order), axis=1).max()) for order in (1, 2, 3)]
        return limits.stretch(*peaks)


@dataclass(frozen=True)
class Turn:
    """A turn from rest to rest: rotation vector ``(3,)`` in rad, base axes, between two instants in s."""

    vector: Array
    begin_s: float
    end_s: float


@dataclass(frozen=True)
class Trajectory:
    """The commanded pose of the tool at any time.

    Moves add up. A move that begins before the previous one has come to rest is blended into it. Before the first and
    after the last move the tool is at rest.

    Attributes:
        position: ``(3,)`` m at the start; rotation_6d: ``(6,)`` at the start.
        moves, turns: the motion.
        widths: (begin in s, gripper width in m), in order of time, the first at 0.
        duration_s: s, the final rest included.
    """

    position: Array
    rotation_6d: Array
    moves: tuple[Move, ...]
    turns: tuple[Turn, ...]
    widths: tuple[tuple[float, float], ...]
    duration_s: float

    @cached_property
    def _rotation(self) -> Array:
        return matrix_from_6d(self.rotation_6d)

    def actions_at(self, times_s: ArrayLike) -> Array:
        """Return actions ``(n, 10)`` at ``times_s`` ``(n,)``: position m, rotation_6d, gripper width m."""
        times = np.asarray(times_s, dtype=np.float64)
        position = self.position + sum((move.displacement(times) for move in self.moves), np.zeros((len(times), 3)))
        begins = np.array([begin for begin, _ in self.widths])
        index = np.clip(np.searchsorted(begins, times, side="right") - 1, 0, None)
        width = np.array([width for _, width in self.widths])[index]
        return np.concatenate([position, self._rotations(times), width[:, None]], axis=1)

    def _rotations(self, times: Array) -> Array:
        if not self.turns:
            return np.tile(matrix_to_6d(self._rotation), (len(times), 1))
        rows = []
        for time in times:
            matrix = self._rotation
            for turn in self.turns:
                share = float(minimum_jerk(np.array([time]), turn.begin_s, turn.end_s)[0])
                matrix = matrix_from_vector(turn.vector * share) @ matrix
            rows.append(matrix_to_6d(matrix))
        return np.array(rows)


class PlannedChunk(ActionChunk):
    """A chunk that was planned for the tool, whatever a task commands: :meth:`of` makes one of the task.

    Its actions are ``(H, 10)`` as :meth:`Trajectory.actions_at` returns them.
    """

    def of(self, task: Task) -> ActionChunk:
        """Return the chunk of a task that commands the tool's pose: in its order, and without what it commands not."""
        planned = {"position": slice(0, 3), "rotation_6d": slice(3, 9), "gripper": slice(9, 10)}
        actions = np.zeros((len(self.actions), task.action_dim))
        for feature, place in task.action_columns:
            if feature.kind in planned:
                actions[:, place] = self.actions[:, planned[feature.kind]]
        return ActionChunk(self.stamp_ns, self.dt_ns, actions, self.frame_id, self.source, self.sequence, self.scale)


class ChunkSource:
    """Cuts chunks from a trajectory that begins at ``start_ns``. Their sequence starts at 0.

    Args:
        trajectory: commanded poses.
        start_ns: ROS time of its beginning.
        source: source of the chunks.
        frame_id: frame of the chunks.

    Attributes:
        trajectory: as given; start_ns: as given, and where it is set to if the trajectory begins again.
    """

    def __init__(self, trajectory: Trajectory, start_ns: int, source: str, frame_id: str = "base") -> None:
        self.trajectory, self.start_ns, self._source, self._frame_id = trajectory, start_ns, source, frame_id
        self._sequence = 0

    def chunk_at(self, now_ns: int, steps: int, dt_ns: int) -> PlannedChunk:
        """Return the next ``steps`` actions from ``now_ns`` on, ``dt_ns`` apart."""
        first = (now_ns - self.start_ns) / NANOSECONDS
        actions = self.trajectory.actions_at(first + np.arange(steps) * (dt_ns / NANOSECONDS))
        chunk = PlannedChunk(now_ns, dt_ns, actions, self._frame_id, self._source, self._sequence)
        self._sequence += 1
        return chunk


def minimum_jerk(times: Array, begin_s: float, end_s: float) -> Array:
    """Completed share of a minimum-jerk motion at ``times`` ``(n,)``: 0 before, 1 after (Flash and Hogan, 1985)."""
    span = max(end_s - begin_s, 1e-9)
    t = np.clip((times - begin_s) / span, 0.0, 1.0)
    return t**3 * (10 - 15 * t + 6 * t**2)


def turn_to(start_6d: ArrayLike, end_6d: ArrayLike, limits: MotionLimits, begin_s: float = 0.0) -> tuple[Turn, ...]:
    """Return the turn between two orientations; no turn if they agree within 1 mrad. Limits are in rad."""
    vector = vector_from_matrix(matrix_from_6d(end_6d) @ matrix_from_6d(start_6d).T)
    angle = float(np.linalg.norm(vector))
    if angle < 1e-3:
        return ()
    return (Turn(vector, begin_s, begin_s + limits.duration(angle)),)


def end_of(moves: Sequence[Move], turns: Sequence[Turn]) -> float:
    """Return the time in s at which the last of them has come to rest; 0 without any."""
    return max([0.0, *(move.end_s for move in moves), *(turn.end_s for turn in turns)])
