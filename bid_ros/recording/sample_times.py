"""Times of the messages of a bag: those of their headers, of others when they arrived, in simulated time by ``/clock``.

A bag of a simulation often has the computer's time for the arrival of each message, and simulated time in the headers.
What has no header then arrived at a time that no image has.
"""

import struct
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import RecordingError
from bid_ros.core.stamps import sample_ns
from bid_ros.recording.reader import BagMessage, BagReader

CLOCK: Final = "/clock"
CLOCK_TYPES: Final = ("rosgraph_msgs/msg/Clock", "rosgraph_msgs/Clock")
FAR_NS: Final = 3600 * NANOSECONDS  # between a header and its arrival: no network is so slow, so another clock stamped


class SampleTimes:
    """Gives the messages of a bag their times, in the order in which they come.

    Args:
        reader: of the bag.
    """

    def __init__(self, reader: BagReader) -> None:
        self._reader = reader
        self._ahead_ns = 0  # of the newest message with a header, from its arrival to its stamp

    def sample_ns(self, item: BagMessage) -> int:
        """Return the time of a message, ns: as :func:`bid_ros.core.stamps.sample_ns`, but by ``/clock`` if it has one.

        Raises:
            RecordingError: it has no header, others have simulated time in theirs, and no ``/clock`` says which it was;
                or this clock goes backwards.
        """
        stamp = sample_ns(item.message, -1)
        if stamp >= 0:
            self._ahead_ns = stamp - item.stamp_ns
            return stamp
        received, told = self._clock
        if len(told):
            # Before the first tick and after the last one it goes on at the pace of the arrivals.
            at = int(np.clip(item.stamp_ns, received[0], received[-1]))
            passed = np.interp(at - received[0], received - received[0], told - told[0])
            return int(told[0]) + round(float(passed)) + item.stamp_ns - at
        if abs(self._ahead_ns) > FAR_NS:
            raise RecordingError(
                f"bag {self._reader.path}: {item.topic} has no header, the stamps of other topics are "
                f"{abs(self._ahead_ns) / NANOSECONDS:.0f} s away from their arrival, and no {CLOCK} relates the two; "
                f"valid is a bag in simulated time with {CLOCK}, or one recorded with use_sim_time"
            )
        return item.stamp_ns

    @cached_property
    def _clock(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Arrival and time of each message of ``/clock``, ns; two empty ones without it."""
        if self._reader.topics.get(CLOCK) not in CLOCK_TYPES:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        marked, ticks = self._reader.is_ros2, []  # CDR begins with a mark of four bytes
        for item in self._reader.raw([CLOCK]):
            order = ">" if marked and not item.data[1] & 1 else "<"
            seconds, nanoseconds = struct.unpack_from(f"{order}iI", item.data, 4 * marked)
            ticks.append((item.stamp_ns, seconds * NANOSECONDS + nanoseconds))
        received, told = np.array(ticks, np.int64).reshape(-1, 2).T
        if (back := np.flatnonzero(np.diff(told) < 0)).size:
            raise RecordingError(
                f"bag {self._reader.path}: {CLOCK} goes back to {told[back[0] + 1] / NANOSECONDS:.3f} s, so nobody "
                "knows when a message without a header was sent; valid is a clock that goes forward"
            )
        return received, told
