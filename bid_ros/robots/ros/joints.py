"""The measured joints: from messages that name them in any order, several publishers, and silence.

A timestamp says when something was measured, by the clocks of both computers, and whether a message is news.
"""

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import Array
from bid_ros.core.stamps import stamp_to_ns
from bid_ros.robots.bus import Bus, Channel, Heard

# A header's stamp counts if it is at most this old when it arrives; else the clocks differ, and the arrival counts.
CLOCKS_NS: Final = 100_000_000
# An older stamp than the one before is no news within that time, which is the longest `state_timeout_s`. Afterwards the
# clock of who publishes it was set back.
SET_BACK_S: Final = 1.0
# A joint that goes farther between two measurements was measured on two arms: no joint turns at FASTEST.
FASTEST: Final = 12.0  # rad/s
JUMP_RAD: Final = 0.15
JUMP_S: Final = 1.0  # s for which a jump is told
DEPTH: Final = 10  # messages between two looks: several publishers may share the topic


@dataclass(frozen=True)
class Timestamp:
    """When something was measured.

    Attributes:
        stamp_ns: wall time of the measurement, ns.
        source_ns: the message's own stamp, ns, by the clock of who published it.
        steady_ns: steady time of its arrival, ns.
    """

    stamp_ns: int
    source_ns: int
    steady_ns: int

    @classmethod
    def of(cls, heard: Heard, stamp: Any) -> Self:
        """Return the timestamp of a message that was heard, with a stamp of its header."""
        source_ns = stamp_to_ns(stamp)
        wall_ns, steady_ns = time.time_ns(), time.monotonic_ns()
        arrived_ns = min(heard.arrived_ns, wall_ns)
        early_ns = arrived_ns - source_ns
        stamp_ns = source_ns if 0 <= early_ns < CLOCKS_NS else arrived_ns
        return cls(stamp_ns, source_ns, steady_ns - (wall_ns - arrived_ns))

    def repeats(self, before: Self) -> bool:
        """Return whether it is no news after the one before.

        The same stamp is none: a driver whose robot is gone often publishes on. Nor is an older one, as tf2 has it: it
        came out of order, or from a second publisher that repeats what it knew once.
        """
        if self.source_ns <= 0 or self.source_ns > before.source_ns:
            return False
        return self.source_ns == before.source_ns or before.age_s() < SET_BACK_S

    def age_s(self) -> float:
        """Return the s since its arrival."""
        return (time.monotonic_ns() - self.steady_ns) / 1e9


@dataclass(frozen=True)
class Measured:
    """One joint as it was measured last.

    Attributes:
        position, velocity: rad and rad/s, or m and m/s.
        timestamp: when.
    """

    position: float
    velocity: float
    timestamp: Timestamp


@dataclass(frozen=True)
class JointReading:
    """The arm as it was measured last.

    Attributes:
        stamp_ns: wall time, ns; of the joint that was measured first.
        joints, speeds: ``(n,)`` rad and rad/s.
        age_s: since the arrival of that measurement.
    """

    stamp_ns: int
    joints: Array
    speeds: Array
    age_s: float

    @classmethod
    def of(cls, measured: Sequence[Measured]) -> Self:
        """Return the reading of joints that were measured, base to tool."""
        oldest = min((item.timestamp for item in measured), key=lambda timestamp: timestamp.steady_ns)
        joints, speeds = (np.array([getattr(item, name) for item in measured]) for name in ("position", "velocity"))
        return cls(oldest.stamp_ns, joints, speeds, oldest.age_s())


class JointReader:
    """Keeps the newest measurement of every joint that a topic names. Any thread may use it.

    A message that repeats a stamp, or has an older one, is no new measurement: see :meth:`Timestamp.repeats`.

    Args:
        bus: of the robot.
        topic: of ``sensor_msgs/msg/JointState``.
    """

    def __init__(self, bus: Bus, topic: str) -> None:
        self._bus, self._topic = bus, topic
        self._lock = threading.Lock()
        self._measured: dict[str, Measured] = {}
        self._jumped: dict[str, tuple[float, float]] = {}  # rad and steady time in s of a joint's newest jump

    def begin(self) -> None:
        """Begin to listen, and forget what was measured before."""
        with self._lock:
            self._measured, self._jumped = {}, {}
        self._bus.listen(Channel(self._topic, "sensor_msgs/msg/JointState", "best_effort", depth=DEPTH))

    def look(self) -> None:
        """Take what has arrived, without waiting."""
        with self._lock:
            for heard in self._bus.news(self._topic):
                self._take(heard)

    def missing(self, names: Sequence[str]) -> str:
        """Return one sentence if joints were never named; otherwise an empty text."""
        with self._lock:
            absent, known = [name for name in names if name not in self._measured], list(self._measured)
        if not absent:
            return ""
        where = self._bus.full_name(self._topic)
        if not known:
            return f"nothing came on {where}"
        return f"{where} has no joint '{absent[0]}'; it names {', '.join(known)}"

    def jumped(self, names: Sequence[str]) -> str:
        """Return one sentence if a joint that turns was just measured where it cannot have gone; else an empty text."""
        with self._lock:
            now_s = time.monotonic()
            lately = {name: rad for name, (rad, at_s) in self._jumped.items() if now_s - at_s < JUMP_S}
        name = next((name for name in names if name in lately), None)
        if name is None:
            return ""
        where, count = self._bus.full_name(self._topic), self._bus.partners(self._topic)
        return (
            f"joint '{name}' jumped by {lately[name]:.2f} rad from one message on {where} to the next; {count} nodes "
            "publish there: valid is one that measures this joint"
        )

    def known(self) -> bool:
        """Whether any joint was measured."""
        with self._lock:
            return bool(self._measured)

    def of(self, names: Sequence[str]) -> list[Measured]:
        """Return the newest measurements of joints. Raises ArmError if one was never named."""
        problem = self.missing(names)
        if problem:
            raise ArmError(problem)
        with self._lock:
            return [self._measured[name] for name in names]

    def _take(self, heard: Heard) -> None:
        message = heard.message
        timestamp = Timestamp.of(heard, message.header.stamp)
        for number, name in enumerate(message.name):
            before = self._measured.get(name)
            if number >= len(message.position) or (before is not None and timestamp.repeats(before.timestamp)):
                continue
            position = float(message.position[number])
            if before is not None and (rad := _jump(position - before.position, timestamp, before.timestamp)):
                self._jumped[name] = rad, time.monotonic()
            self._measured[name] = Measured(
                position, _velocity(message, number, position, timestamp, before), timestamp
            )


def _jump(way: float, now: Timestamp, before: Timestamp) -> float:
    """Return the rad by which a joint's way is farther than it can go, whole turns aside; 0 if it can."""
    turned = abs((way + math.pi) % (2 * math.pi) - math.pi)
    seconds = max(now.steady_ns - before.steady_ns, now.source_ns - before.source_ns) / 1e9
    return turned if turned > JUMP_RAD + FASTEST * max(seconds, 0.0) else 0.0


def _velocity(message: Any, number: int, position: float, timestamp: Timestamp, before: Measured | None) -> float:
    """Return the velocity that a message tells; where it tells none, that since the measurement before."""
    if number < len(message.velocity) and np.isfinite(message.velocity[number]):
        return float(message.velocity[number])
    if before is None or timestamp.stamp_ns <= before.timestamp.stamp_ns:
        return 0.0
    return (position - before.position) / ((timestamp.stamp_ns - before.timestamp.stamp_ns) / 1e9)
