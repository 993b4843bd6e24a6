"""The messages between the arm and the process that owns the robot's connection.

Set-points and states are records in shared memory: one process writes, the other reads the newest, and neither waits.
Requests and their answers are Python values over a pipe: ``(request, *arguments)`` is answered by ``""`` or by one
sentence why not.
"""

import enum
import math
import mmap
import os
import pickle
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from bid_ros.control.joint_follower import Joints
from bid_ros.control.setpoint import JointSetpoint, Setpoint
from bid_ros.control.spatial import Quaternion, Vector
from bid_ros.core.errors import ArmError
from bid_ros.core.margins import Margins

# A reader that meets a half-written record tries again. If the writer is held up there, it loses one record.
TRIES: Final = 8
HEAD: Final = struct.Struct("<II")  # checksum and size of what follows
LONGEST_FAULT: Final = 400  # bytes
# Set-point and state have 2 KiB each, and none is longer than 1100 bytes. The margins of a Franka take 2 KB of 8.
STATE_AT: Final = 2048
MARGINS_AT: Final = 4096
MEMORY_SIZE: Final = 12288

MOST: Final = 1e3  # of any number in a set-point
# A set-point slower than this, m/s and rad/s, is at rest. It may be the last one.
REST_SPEED: Final = 0.001
REST_TURN_RATE: Final = 0.005

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


@dataclass(frozen=True)
class TimedSetpoint:
    """A set-point and the steady time in ns at which it was given; velocities in m/s and rad/s, base axes."""

    stamp_ns: int
    position: Vector
    quaternion: Quaternion
    linear_velocity: Vector
    angular_velocity: Vector


@dataclass(frozen=True)
class TimedJoints:
    """A set-point of the joints and the steady time in ns at which it was given; rad and rad/s."""

    stamp_ns: int
    positions: Joints
    velocities: Joints


def timed(setpoint: Setpoint, now_ns: int) -> TimedSetpoint:
    """Return the set-point as given at ``now_ns`` of a steady clock, its quaternion normalised.

    Raises:
        ArmError: a value is not finite or far too large, or the quaternion is not a rotation.
    """
    x, y, z = setpoint.position.tolist()
    a, b, c, d = setpoint.quaternion.tolist()
    u, v, w = setpoint.linear_velocity.tolist()
    p, q, r = setpoint.angular_velocity.tolist()
    # Not `any(... > MOST)`, which NaN would pass.
    if not all(abs(value) <= MOST for value in (x, y, z, a, b, c, d, u, v, w, p, q, r)):
        raise ArmError(f"a set-point has a value that is not finite, or not within +-{MOST:g} m, m/s or rad/s")
    length = math.sqrt(a * a + b * b + c * c + d * d)
    if not 0.99 < length < 1.01:
        raise ArmError(f"a set-point's quaternion has the length {length:.3f}; valid is 1")
    turn = (a / length, b / length, c / length, d / length)
    return TimedSetpoint(now_ns, (x, y, z), turn, (u, v, w), (p, q, r))


def timed_joints(setpoint: JointSetpoint, joints: int, now_ns: int) -> TimedJoints:
    """Return the set-point of so many joints as given at ``now_ns`` of a steady clock.

    Raises:
        ArmError: it has not so many finite joints and speeds.
    """
    positions, velocities = setpoint.positions.tolist(), setpoint.velocities.tolist()
    good = len(positions) == len(velocities) == joints
    if not good or not all(abs(value) <= MOST for value in (*positions, *velocities)):
        raise ArmError(f"a set-point has the joints {positions}; valid are {joints} finite joints and speeds")
    return TimedJoints(now_ns, tuple(positions), tuple(velocities))


class DriverRequest(enum.Enum):
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
class DriverState:
    """One state of the arm.

    Attributes:
        stamp_ns: time at which it was read, nanoseconds since 1970; steady_ns: the same on the steady clock.
        mode: activity of the process; outcome: result of the last joint motion.
        joints, joint_speeds: ``(joints,)`` rad and rad/s.
        position: m, base frame; quaternion: xyzw, tool to base.
        fault: one sentence, empty without one.
        beat: number of periods of the process so far.
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
    beat: int = 0


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


class DriverMemory:
    """The three records in the memory behind a descriptor, of ``MEMORY_SIZE`` bytes.

    Attributes:
        setpoint: the newest :class:`TimedSetpoint`, or of joints :class:`TimedJoints`; None in it asks for a stop.
    """

    def __init__(self, descriptor: int) -> None:
        try:
            memory = mmap.mmap(descriptor, MEMORY_SIZE)
        finally:
            os.close(descriptor)
        self.setpoint = SharedRecord(memory, 0)
        self._state = SharedRecord(memory, STATE_AT)
        self._margins = SharedRecord(memory, MARGINS_AT)

    def write_state(self, state: DriverState) -> None:
        """Replace the state. A fault that is too long is cut."""
        if state.fault:
            state = replace(state, fault=state.fault.encode()[:LONGEST_FAULT].decode(errors="ignore"))
        self._state.write(state)

    def read_state(self) -> DriverState | None:
        """Return the newest state, None if there was none."""
        record = self._state.read()
        return None if record is None else record[1]

    def write_margins(self, margins: Margins) -> None:
        """Replace the margins of the checks."""
        self._margins.write((dict(margins), margins.counts, margins.unjudged))

    def read_margins(self) -> Margins:
        """Return the margins that were written last; empty before the first."""
        found, record = Margins(), self._margins.read()
        if record is not None:
            largest, found.counts, found.unjudged = record[1]
            found.update(largest)
        return found
