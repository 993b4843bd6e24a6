"""The commanded motion of a run: speed and acceleration of the set-point, and the effect of each change of chunk.

At a change of chunk a reactive policy can jerk the arm: the new chunk may begin elsewhere and at another speed. The
servo (:mod:`bid_ros.control.servo`) must turn that into motion inside the limits. This module checks what it sent.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import RecordingError
from bid_ros.core.limits import Limits
from bid_ros.core.stamps import stamp_to_ns
from bid_ros.core.topics import ARM_STATUS
from bid_ros.recording.reader import BagReader

Array = NDArray[np.float64]
LONGEST_PERIODS: Final = 5  # a longer interval is a gap in the recording
TOLERANCE: Final = 1e-3  # share of a limit, for rounding: times are whole nanoseconds


@dataclass(frozen=True, eq=False)
class CommandedMotion:
    """The K set-points of one run, in order of time. There are ``K - 1`` intervals between them.

    The arm node publishes one set-point in ``publish_every``. So an acceleration is the mean over that many steps of
    the servo, which is a lower bound of the largest one.

    Attributes:
        instants_ns: ``(K,)`` times for which they were computed, ROS time.
        twists: ``(K, 6)`` m/s and rad/s, base axes.
        streamed: ``(K,)`` whether the arm was in control: in a fault nothing is sent to it.
        takeovers: ``(K - 1,)`` whether another chunk took over in the interval.
        continuous: ``(K - 1,)`` whether the interval has no gap and the arm was in control throughout.
    """

    instants_ns: NDArray[np.int64]
    twists: Array
    streamed: NDArray[np.bool_]
    takeovers: NDArray[np.bool_]
    continuous: NDArray[np.bool_]

    @property
    def changed(self) -> NDArray[np.bool_]:
        """``(K - 1,)`` intervals that show a takeover: its own and the next, as it may fall on the end of its own."""
        shown = self.takeovers.copy()
        shown[1:] |= self.takeovers[:-1]
        return shown

    @property
    def speeds(self) -> Array:
        """``(K, 2)`` m/s and rad/s."""
        return _lengths(self.twists)

    @property
    def accelerations(self) -> Array:
        """``(K - 1, 2)`` m/s^2 and rad/s^2: step of the velocity over the time it took."""
        return _lengths(np.diff(self.twists, axis=0)) / (np.diff(self.instants_ns)[:, None] / 1e9)


def _lengths(twists: Array) -> Array:
    """Return the lengths ``(K, 2)`` of both parts of twists ``(K, 6)``."""
    lengths: Array = np.linalg.norm(twists.reshape(-1, 2, 3), axis=2)
    return lengths


def read_commanded(bag: Path) -> CommandedMotion:
    """Return the set-points of a bag.

    Raises:
        RecordingError: the bag cannot be read, has no motion, is too old (its set-points have no times), or has a
            set-point that is not finite.
    """
    rows: dict[int, tuple[Any, bool, tuple[str, int]]] = {}
    with BagReader(bag) as reader:
        for item in reader.messages([ARM_STATUS]):
            message = item.message
            if not hasattr(message, "reference_stamp"):
                raise RecordingError(f"bag {bag} was recorded before set-points carried their instants; record anew")
            chunk = (message.source, message.sequence)
            streamed = message.mode != message.FAULT
            rows[stamp_to_ns(message.reference_stamp)] = (message.reference_twist, streamed, chunk)
    if len(rows) < 2:
        raise RecordingError(f"bag {bag} holds {len(rows)} set-point(s) on {ARM_STATUS}; valid is 2 or more")
    instants = sorted(rows)
    twists, healthy, chunks = zip(*(rows[instant] for instant in instants), strict=True)
    times, velocities, streamed = np.array(instants), np.array(twists, dtype=np.float64), np.array(healthy)
    bad = np.flatnonzero(~np.isfinite(velocities).all(axis=1))
    if len(bad):
        raise RecordingError(f"bag {bag}: set-point {bad[0]} on {ARM_STATUS} is not finite; valid are finite numbers")
    periods = np.diff(times)
    takeovers = np.array([bool(first[0] and second[0]) and first != second for first, second in pairwise(chunks)])
    unbroken = periods <= LONGEST_PERIODS * np.median(periods)
    return CommandedMotion(times, velocities, streamed, takeovers, streamed[1:] & streamed[:-1] & unbroken)


def commanded_report(motion: CommandedMotion, limits: Limits) -> dict[str, Any]:
    """Return percentiles beside the limits, at changes of chunk and elsewhere, and how often a limit was exceeded."""
    at, elsewhere = motion.changed & motion.continuous, ~motion.changed & motion.continuous
    (speeds, turn_rates), (moving, turning) = motion.speeds[motion.streamed].T, motion.accelerations.T
    rows = [
        ("speed, m/s", speeds, limits.max_speed),
        ("turn rate, rad/s", turn_rates, limits.max_turn_rate),
        ("acceleration at a change of chunk, m/s^2", moving[at], limits.max_acceleration),
        ("acceleration elsewhere, m/s^2", moving[elsewhere], limits.max_acceleration),
        ("turning at a change of chunk, rad/s^2", turning[at], limits.max_turn_acceleration),
        ("turning elsewhere, rad/s^2", turning[elsewhere], limits.max_turn_acceleration),
    ]
    return {
        "set_points": len(motion.instants_ns),
        "seconds": float(motion.instants_ns[-1] - motion.instants_ns[0]) / 1e9,
        "changes_of_chunk": int((motion.takeovers & motion.continuous).sum()),
        "left_out": int((~motion.continuous).sum()),
        "quantities": {name: _percentiles(values, limit) for name, values, limit in rows},
    }


def _percentiles(values: Array, limit: float) -> dict[str, float | int | None]:
    numbers = [float(value) for value in np.percentile(values, (50, 99, 100))] if len(values) else [None] * 3
    above = int((values > limit * (1 + TOLERANCE)).sum())
    return {**dict(zip(("p50", "p99", "max"), numbers, strict=True)), "limit": limit, "above": above}
