"""The messages between the arm and the process that owns the UR's connection.

Set-points and states are records in shared memory: one process writes, the other reads the newest, and neither waits.
Requests and their answers are Python values over a pipe: ``(request, *arguments)`` is answered by ``""`` or by one
sentence why not.
"""

import enum
import mmap
import os
import pickle
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from bid_ros.control.spatial import Quaternion, Vector

# A reader that meets a half-written record tries again. If the writer is held up there, it loses one record.
TRIES: Final = 8
HEAD: Final = struct.Struct("<II")  # checksum and size of what follows
LONGEST_FAULT: Final = 400  # bytes
MEMORY_SIZE: Final = 4096  # half of it for each record, of which none is longer than 1100 bytes

EXIT_STUCK: Final = 3
EXIT_LOST: Final = 4


class SharedRecord:
    """The newest of many records, in shared memory. A checksum rejects a half-written one.

    Args:
        memory: the memory. Only processes that this program starts have it, so its pickles can be trusted.
        offset: first byte of the record, which may be as long as the memory behind it is free.
    """

    def __init__(self, memory: mmap.mmap, offset: int) -> None:
        self._memory = memory
        self._head, self._body = offset, offset + HEAD.size
        self._count = 0
        self._newest: tuple[int, Any] | None = None

    def write(self, value: Any) -> None:
        """Replace the record."""
        self._count += 1
        body = pickle.dumps((self._count, value))
        self._memory[self._head : self._body + len(body)] = HEAD.pack(zlib.crc32(body), len(body)) + body

    def read(self) -> tuple[int, Any] | None:
        """Return the number of the newest record, from 1, and its value. None: there is none yet."""
        for _ in range(TRIES):
            checksum, size = HEAD.unpack_from(self._memory, self._head)
            body = self._memory[self._body : self._body + size]
            if body and checksum == zlib.crc32(body):
                self._newest = pickle.loads(body)
                break
        return self._newest


def shared_memory(size: int) -> int:
    """Return the descriptor of anonymous memory of ``size`` bytes, for a child process to inherit."""
    descriptor = os.memfd_create("bid_ros")
    os.ftruncate(descriptor, size)
    return descriptor


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
            :class:`~bid_ros.robots.ur.follower.TimedJoints`; None in it asks for a stop.
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
