"""The servo: turns chunks into set-points that always keep the task's limits."""

import enum
from collections import deque
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from bid_ros.control.follower import Motion, brake, inside, pursue, stopping_point
from bid_ros.control.setpoint import Setpoint
from bid_ros.control.spatial import ZERO, Quaternion, Vector, add, times, turn_between, turned
from bid_ros.control.track import ChunkTrack, Columns, Target
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.errors import ArmError
from bid_ros.core.settings import settings
from bid_ros.core.task import Task

# Chunks that begin later than now wait. More than this many come only from a source whose clock is far ahead.
WAITING = 8


class ServoMode(enum.Enum):
    """State of the servo: at rest, following a chunk, braking, or at rest until a reset."""

    HOLDING = "holding"
    TRACKING = "tracking"
    STOPPING = "stopping"
    STOPPED = "stopped"


@settings(error=ArmError)
class ServoConfig:
    """Settings of the servo.

    Attributes:
        time_constant_s: s in which a small position error falls to 1/e; 0.01 to 1.
        silence_grace_s: s after the end of the last chunk during which its last action is still approached. Then the
            stop begins. 0 to 0.2, because the arm must begin to stop within 200 ms.
        lookahead_s: s ahead of now at which chunks are sampled. It compensates for the lag of the arm behind its
            set-point; 0 to 0.3.
        max_step_s: a longer pause between two steps counts as this much, so a late step makes no jump; 0.001 to 0.1.
    """

    time_constant_s: Annotated[float, Field(ge=0.01, le=1)] = 0.05
    silence_grace_s: Annotated[float, Field(ge=0, le=0.2)] = 0.12
    max_step_s: Annotated[float, Field(ge=0.001, le=0.1)] = 0.03
    lookahead_s: Annotated[float, Field(ge=0, le=0.3)] = 0.0


@dataclass(frozen=True)
class ServoOutput:
    """One step of the servo.

    Attributes:
        setpoint: what to stream now.
        gripper_width: m, commanded by the chunk for this instant. None: no chunk covers it.
        mode: state of the servo.
        source, sequence: of the chunk that is followed; "" and 0 without one.
        command_age_s: s from that chunk's stamp to now; NaN without one.
    """

    setpoint: Setpoint
    gripper_width: float | None
    mode: ServoMode
    source: str
    sequence: int
    command_age_s: float


class ChunkServo:
    """Samples the newest chunk at *now* and follows that moving target inside the task's limits.

    A chunk is sampled by time. So latency skips the rows that have passed, it does not delay them. At a switch of
    chunks the target may jump, but the set-point does not. When no chunk covers *now* the servo comes to rest, and goes
    on with the next chunk. A latched stop goes on only after :meth:`reset`. The set-point can always brake to rest
    inside the workspace. If it starts outside, it never moves further out.

    Not thread safe: the caller holds one lock around it.

    Args:
        task: action features and limits.
        config: how to follow.

    Attributes:
        latched: reason of the latched stop, empty if there is none.

    Raises:
        TaskError: the task's actions are not a tool pose.
    """

    def __init__(self, task: Task, config: ServoConfig | None = None) -> None:
        limits = task.limits
        self._columns = Columns(task)
        self._width = task.action_dim
        self._config = config or ServoConfig()
        self._linear = Motion(limits.max_speed, limits.max_acceleration)
        self._angular = Motion(limits.max_turn_rate, limits.max_turn_acceleration)
        self._low: Vector = limits.workspace_min
        self._high: Vector = limits.workspace_max
        self.latched = ""
        self._position: Vector = ZERO
        self._quaternion: Quaternion = (0.0, 0.0, 0.0, 1.0)
        self._velocity: Vector = ZERO
        self._turn_rate: Vector = ZERO
        self._track: ChunkTrack | None = None
        self._target: Target | None = None
        self._newest: ActionChunk | None = None
        self._waiting: deque[ChunkTrack] = deque(maxlen=WAITING)
        self._silence_s = 0.0
        self._last_ns: int | None = None

    @property
    def source(self) -> str:
        """Source of the newest chunk that was taken and not forgotten since, empty if there is none."""
        return self._newest.source if self._newest is not None else ""

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

    def accept(self, chunk: ActionChunk) -> bool:
        """Take a chunk that the safety node let pass. Return False if it is ignored.

        A chunk is ignored while a stop is latched, if it is not newer than the last one of the same source (the network
        may reorder), or if it is not finite or not of the task's width. The safety node refuses the last two with a
        reason; here it is safe to ignore them.
        """
        if self.latched or chunk.actions.shape[1] != self._width or not np.isfinite(chunk.actions).all():
            return False
        last = self._newest
        if last is not None and last.source == chunk.source:
            if (chunk.stamp_ns, chunk.sequence) <= (last.stamp_ns, last.sequence):
                return False
        else:
            self._waiting.clear()
        self._newest = chunk
        self._waiting.append(ChunkTrack(chunk, self._columns))
        return True

    def latch(self, reason: str) -> None:
        """Stop in a controlled way and stay stopped until :meth:`reset`. The first reason is kept."""
        if not self.latched:
            self.latched = reason
            self.release()

    def reset(self) -> None:
        """Clear a latched stop and forget all chunks. The next chunk is followed again."""
        self.latched = ""
        self.release()

    def release(self) -> None:
        """Forget all chunks and come to rest; the next chunk is followed again, unless a stop is latched."""
        self._track = self._target = self._newest = None
        self._waiting.clear()
        self._silence_s = 0.0

    def step(self, now_ns: int) -> ServoOutput:
        """Return the set-point for ``now_ns``. Call it at a steady rate, with the clock of the chunks' stamps.

        Raises:
            ArmError: :meth:`start` was not called.
        """
        if self._last_ns is None:
            raise ArmError("the servo has no pose to start from; call start first")
        elapsed = max(0.0, (now_ns - self._last_ns) / NANOSECONDS)
        self._last_ns = now_ns
        dt = min(elapsed, self._config.max_step_s)
        covered = self._sample(now_ns + round(self._config.lookahead_s * NANOSECONDS), elapsed)
        if dt > 0.0:
            self._advance(dt)
        return self._output(now_ns, covered)

    def _sample(self, now_ns: int, elapsed: float) -> bool:
        while self._waiting and self._waiting[0].chunk.stamp_ns <= now_ns:
            self._track = self._waiting.popleft()
        covered = self._track is not None and self._track.chunk.covers(now_ns)
        if covered and self._track is not None:
            self._target = self._kept(self._track.sample(now_ns))
            self._silence_s = 0.0
            return True
        self._silence_s += elapsed
        if self._silence_s > self._config.silence_grace_s:
            self._target = None
        elif self._target is not None:
            held = self._target
            self._target = Target(held.position, ZERO, held.quaternion, ZERO, held.gripper_width)
        return False

    def _kept(self, target: Target) -> Target:
        """Return the target, moved into the workspace. It is at rest along each axis on which it was moved."""
        if inside(target.position, self._low, self._high):
            return target
        x, y, z = (
            min(max(value, low), high) for value, low, high in zip(target.position, self._low, self._high, strict=True)
        )
        u, v, w = (
            speed if value == kept else 0.0
            for speed, value, kept in zip(target.velocity, target.position, (x, y, z), strict=True)
        )
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
            self._turn_rate = pursue(
                self._turn_rate, error, target.turn_rate, self._angular, self._config.time_constant_s, dt
            )
        self._quaternion = turned(self._quaternion, times(self._turn_rate, dt))

    def _next_velocity(self, target: Target | None, dt: float) -> Vector:
        """Return the next velocity. Braking is always possible: the step before kept the stopping point inside."""
        motion = self._linear
        if target is not None:
            error = add(target.position, self._position, -1.0)
            velocity = pursue(self._velocity, error, target.velocity, motion, self._config.time_constant_s, dt)
            place = add(self._position, velocity, dt)
            if self._may_reach(stopping_point(place, velocity, motion.acceleration)):
                return velocity
        return brake(self._velocity, motion.acceleration, dt)

    def _may_reach(self, place: Vector) -> bool:
        if inside(place, self._low, self._high):
            return True
        return all(
            min(low, here) <= there <= max(high, here)
            for low, high, here, there in zip(self._low, self._high, self._position, place, strict=True)
        )

    def _output(self, now_ns: int, covered: bool) -> ServoOutput:
        setpoint = Setpoint(
            np.array(self._position), np.array(self._quaternion), np.array(self._velocity), np.array(self._turn_rate)
        )
        track = self._track
        if self._target is None or track is None:
            resting = self._velocity == ZERO and self._turn_rate == ZERO
            rest = ServoMode.STOPPED if self.latched else ServoMode.HOLDING
            return ServoOutput(setpoint, None, rest if resting else ServoMode.STOPPING, "", 0, float("nan"))
        chunk = track.chunk
        age = (now_ns - chunk.stamp_ns) / NANOSECONDS
        width = self._target.gripper_width if covered else None
        return ServoOutput(setpoint, width, ServoMode.TRACKING, chunk.source, chunk.sequence, age)
