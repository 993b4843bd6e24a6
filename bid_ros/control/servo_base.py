"""What servos have in common: they take chunks, sample the newest one at *now*, and stop on silence or a latch."""

import enum
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

import numpy as np

from bid_ros.control.setpoint import JointSetpoint, Setpoint
from bid_ros.core.checks import check_range
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.errors import ArmError
from bid_ros.core.task import Task

# Chunks that begin later than now wait. More than this many come only from a source whose clock is far ahead.
WAITING: Final = 8
TIME_CONSTANT_S: Final = 0.05  # in which a small position error falls to 1/e
# s after the end of the last chunk during which its last action is still approached. Then the stop begins: the arm must
# begin to stop within 200 ms.
SILENCE_GRACE_S: Final = 0.12
MAX_STEP_S: Final = 0.03  # a longer pause between two steps counts as this much, so a late step makes no jump


class ServoMode(enum.Enum):
    """State of the servo: at rest, following a chunk, braking, or at rest until a reset."""

    HOLDING = "holding"
    TRACKING = "tracking"
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True)
class ServoOutput:
    """One step of the servo.

    Attributes:
        setpoint: what to stream now.
        gripper_width: m, commanded by the chunk for this instant. None: no chunk covers it.
        mode: state of the servo.
        source, sequence: of the chunk that is followed; "" and 0 without one.
        command_age_s: s from that chunk's stamp to now; NaN without one.
        joints: of a task that commands joints, where these should be; ``setpoint`` is then where they put the tool.
    """

    setpoint: Setpoint
    gripper_width: float | None
    mode: ServoMode
    source: str
    sequence: int
    command_age_s: float
    joints: JointSetpoint | None = None


class Commanded(Protocol):
    """What a chunk commands at one instant."""

    @property
    def gripper_width(self) -> float | None:
        """Opening in m; None if the task commands no gripper."""


TargetT = TypeVar("TargetT", bound=Commanded)
CoTarget = TypeVar("CoTarget", bound=Commanded, covariant=True)


class Track(Protocol[CoTarget]):
    """A chunk, prepared to be sampled."""

    chunk: ActionChunk

    def sample(self, now_ns: int) -> CoTarget:
        """Return what the chunk commands at ``now_ns``."""


class Servo(ABC, Generic[TargetT]):
    """Samples the newest chunk at *now* and follows that moving target inside the task's limits.

    A chunk is sampled by time. So latency skips the rows that have passed, it does not delay them. At a switch of
    chunks the target may jump, but the set-point does not. When no chunk covers *now* the servo comes to rest, and goes
    on with the next chunk. A latched stop goes on only after :meth:`reset`.

    Not thread safe: the caller holds one lock around it.

    Args:
        task: action features and limits.
        lookahead_s: s ahead of now at which chunks are sampled, 0 to 0.3: for the lag of the arm behind its set-point.

    Attributes:
        latched: reason of the latched stop, empty if there is none.

    Raises:
        ArmError: the lookahead is out of its range.
    """

    def __init__(self, task: Task, lookahead_s: float = 0.0) -> None:
        check_range("servo", "lookahead_s", lookahead_s, 0, 0.3, ArmError, "s")
        self._width, self._lookahead_ns = task.action_dim, round(lookahead_s * NANOSECONDS)
        self.latched = ""
        self._track: Track[TargetT] | None = None
        self._target: TargetT | None = None
        self._newest: ActionChunk | None = None
        self._waiting: deque[Track[TargetT]] = deque(maxlen=WAITING)
        self._silence_s = 0.0
        self._last_ns: int | None = None

    @property
    def source(self) -> str:
        """Source of the newest chunk that was taken and not forgotten since, empty if there is none."""
        return self._newest.source if self._newest is not None else ""

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
        self._waiting.append(self._prepared(chunk))
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
        dt = min(elapsed, MAX_STEP_S)
        covered = self._sample(now_ns + self._lookahead_ns, elapsed)
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
        if self._silence_s > SILENCE_GRACE_S:
            self._target = None
        elif self._target is not None:
            self._target = self._rested(self._target)
        return False

    def _output(self, now_ns: int, covered: bool) -> ServoOutput:
        setpoint, joints = self._setpoint()
        track = self._track
        if self._target is None or track is None:
            rest = ServoMode.STOPPED if self.latched else ServoMode.HOLDING
            mode = rest if self._resting() else ServoMode.STOPPING
            return ServoOutput(setpoint, None, mode, "", 0, float("nan"), joints)
        chunk = track.chunk
        age = (now_ns - chunk.stamp_ns) / NANOSECONDS
        width = self._target.gripper_width if covered else None
        return ServoOutput(setpoint, width, ServoMode.TRACKING, chunk.source, chunk.sequence, age, joints)

    @abstractmethod
    def _prepared(self, chunk: ActionChunk) -> Track[TargetT]:
        """Return a chunk that can be sampled."""

    @abstractmethod
    def _kept(self, target: TargetT) -> TargetT:
        """Return the target, moved inside the limits of position."""

    @abstractmethod
    def _rested(self, target: TargetT) -> TargetT:
        """Return the target at rest."""

    @abstractmethod
    def _advance(self, dt: float) -> None:
        """Go on for ``dt`` s towards the target, or to rest without one."""

    @abstractmethod
    def _resting(self) -> bool:
        """Whether the set-point stands still."""

    @abstractmethod
    def _setpoint(self) -> tuple[Setpoint, JointSetpoint | None]:
        """Return the set-point of the tool, and of the joints if these are commanded."""
