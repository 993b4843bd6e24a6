"""How an arm stopped in a recorded run: why, when that was noticed, and how far the tool went until it rested."""

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.poses import pose_arrays
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.topics import ARM_STATUS
from bid_ros.recording.reader import BagReader
from bid_ros.views.message_values import MODES, word

Array = NDArray[np.float64]
RESTS_M: Final = 0.001  # that the tool may be from where it ends, at rest
BEFORE_S: Final = 0.2  # in which the speed before the stop is measured
TRACKING, STOPPING, STOPPED, FAULT = MODES[1:]
SILENT_S: Final = 0.2  # without a new state, after which nobody sees the arm any more


def read_stop(bag: Path, done_ns: int | None = None) -> dict[str, Any]:
    """Return how an arm stopped. Values that nobody can know are None.

    Args:
        bag: of the run.
        done_ns: wall time of what should stop it, ns; None: nobody knows it, and all counts from when it was noticed.

    Returns:
        ``reason`` as the arm node says it, empty if nothing stopped it. ``noticed_s`` after ``done_ns``. ``speed``
        before, m/s. ``rest_s`` and ``way_mm`` until the tool rested; both None if its states ended before.

    Raises:
        RecordingError: the bag cannot be read.
    """
    received, stamps, modes, reasons, places = ([] for _ in range(5))
    with BagReader(bag) as reader:
        for item in reader.messages((ARM_STATUS,)):
            message = item.message
            received.append(item.stamp_ns)
            stamps.append(stamp_ns(message))
            modes.append(word(MODES, message.mode))
            reasons.append(str(message.reason))
            places.append(pose_arrays(message.tool)[0])
    first = _first(modes, np.array(received) >= (done_ns or 0))
    if first is None:
        return {"reason": "", "noticed_s": None, "speed": None, "rest_s": None, "way_mm": None}
    noticed_s = None if done_ns is None else (received[first] - done_ns) / NANOSECONDS
    since_ns = received[first] if done_ns is None else done_ns
    fresh = np.flatnonzero(np.diff(stamps, prepend=stamps[0] - 1) > 0)
    times = (np.array(stamps)[fresh] - since_ns) / NANOSECONDS
    seen = bool(times[-1] > (received[-1] - since_ns) / NANOSECONDS - SILENT_S)
    return {"reason": reasons[first], "noticed_s": noticed_s, **_course(times, np.array(places)[fresh], seen)}


def _first(modes: list[str], after: NDArray[np.bool_]) -> int | None:
    """Return the first message of the first latched stop of an arm that had moved; None without one."""
    if TRACKING not in modes:
        return None
    moved = np.arange(len(modes)) > modes.index(TRACKING)
    latched = np.flatnonzero(np.isin(modes, (STOPPED, FAULT)) & after & moved)
    if not len(latched):
        return None
    first = int(latched[0])
    while modes[first - 1] == STOPPING and after[first - 1]:  # it brakes before it is latched
        first -= 1
    return first


def _course(times: Array, places: Array, seen: bool) -> dict[str, float | None]:
    """Return speed, time to rest and way from time 0 on, of places ``(n, 3)`` m at times ``(n,)`` s."""
    at, before = (np.array([np.interp(when, times, axis) for axis in places.T]) for when in (0.0, -BEFORE_S))
    speed = float(np.linalg.norm(at - before)) / BEFORE_S
    if not seen:
        return {"speed": speed, "rest_s": None, "way_mm": None}
    moving = np.flatnonzero((np.linalg.norm(places - places[-1], axis=1) > RESTS_M) & (times > 0))
    rest_s = float(times[moving[-1]]) if len(moving) else 0.0
    return {"speed": speed, "rest_s": rest_s, "way_mm": 1e3 * float(np.linalg.norm(places[-1] - at))}
