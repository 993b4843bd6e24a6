"""The messages between the arm and the process that owns the UR's connection.

Set-points and states are records in shared memory (:mod:`bid_ros.robots.ur.channel`); requests and their answers are
Python values over a pipe: ``(request, *arguments)`` is answered by ``""`` or by one sentence why not.
"""

import enum
import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from bid_ros.control.spatial import Quaternion, Vector
from bid_ros.robots.ur.channel import SharedRecord

LONGEST_FAULT: Final = 400  # bytes
MEMORY_SIZE: Final = 4096  # half of it for each record, of which none is longer than 1100 bytes

EXIT_STUCK: Final = 3
EXIT_LOST: Final = 4


class UrRequest(enum.Enum):
    """What the arm asks of the process. A start says whether set-points of the joints will come."""

    START = "start"
    STOP = "stop"
    MOVE = "move"
    CLEAR = "clear"
    STATISTICS = "statistics"
    CLOSE = "close"


class Mode(enum.IntEnum):
    """Activity of the process: nothing, following set-points, braking after that, or moving joints."""

    IDLE = 0
    FOLLOWING = 1
    STOPPING = 2
    MOVING = 3


class MotionOutcome(enum.IntEnum):
    """The result of the last joint motion."""

    NONE = 0
    ARRIVED = 1
    STOPPED = 2
    MISSED = 3


@dataclass(frozen=True)
class UrState:
    """One state of the arm.

    Attributes:
        stamp_ns: time at which it was read, nanoseconds since 1970; steady_ns: the same on the steady clock.
        mode: activity of the process; outcome: result of the last joint motion.
        joints, joint_speeds: ``(6,)`` rad and rad/s.
        position: m, base frame; quaternion: xyzw, tool to base.
        fault: one sentence, empty without one.
    """

    stamp_ns: int
    steady_ns: int
    mode: Mode
    outcome: MotionOutcome
    joints: tuple[float, ...]
    joint_speeds: tuple[float, ...]
    position: Vector
    quaternion: Quaternion
    fault: str


@dataclass(frozen=True)
class PeriodStatistics:
    """Periods of the set-points over the last minute of following, and the delay until the robot had them.

    Attributes:
        count: measured periods; skipped: set-points that were skipped because their time had passed.
        nominal_ms, p50_ms, p99_ms, max_ms: nominal and measured periods; NaN without any.
        longest_echo_ms: longest time until the robot reported a set-point back, since it was connected.
        margins: largest share of each limit on contradictions, since it was connected. 1 is the limit.
    """

    count: int
    skipped: int
    nominal_ms: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    longest_echo_ms: float = 0.0
    margins: Mapping[str, float] = field(default_factory=dict)


class UrMemory:
    """The two records in the memory behind a descriptor, of ``MEMORY_SIZE`` bytes.

    Attributes:
        setpoint: the newest :class:`~bid_ros.robots.ur.follower.TimedSetpoint`, or of joints
            :class:`~bid_ros.robots.ur.joint_follower.TimedJoints`; None in it asks for a stop.
    """

    def __init__(self, descriptor: int) -> None:
        memory = mmap.mmap(descriptor, MEMORY_SIZE)
        os.close(descriptor)
        self.setpoint = SharedRecord(memory, 0)
        self._state = SharedRecord(memory, MEMORY_SIZE // 2)

    def write_state(self, state: UrState) -> None:
        """Replace the state. A fault that is too long is cut."""
        self._state.write(replace(state, fault=state.fault.encode()[:LONGEST_FAULT].decode(errors="ignore")))

    def read_state(self) -> UrState | None:
        """Return the newest state, None if there was none."""
        record = self._state.read()
        return None if record is None else record[1]
