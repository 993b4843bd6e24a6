"""Pairs the frames of several cameras by their stamps."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import CameraError

_QUEUE: Final = 32  # frames kept per camera while they wait for a later camera
_SKEWS: Final = 1000  # pairs over which the percentiles are taken
_FOLLOW: Final = 8  # each pair moves the grid by this fraction of its error
_STOPPED_S: Final = 1.0  # a camera that is silent for longer has stopped
_CLOCK_JUMP_NS: Final = NANOSECONDS  # a stamp this far back means that a clock was set, not that a frame is late


@dataclass(frozen=True)
class FramePair:
    """One frame of every camera, taken at the same time within the tolerance.

    Attributes:
        stamp_ns: oldest of their stamps. So a pair never claims to be newer than its images.
        skew_ns: distance between the oldest and the newest stamp.
        frames: frame of each camera, by name, as it was added.
    """

    stamp_ns: int
    skew_ns: int
    frames: Mapping[str, Any]


class FramePairing:
    """Turns single frames into complete pairs at a bounded rate.

    The oldest waiting frames of all cameras form a pair once they lie within the tolerance. A frame that can no longer
    find its partners is dropped and counted. Cameras faster than ``rate`` are thinned: of the complete pairs, those
    nearest to a grid of that rate are kept. The grid follows a camera that runs at nearly that rate, so a slow drift
    between clocks loses no pair.

    Args:
        names: cameras of a pair.
        rate: wanted pairs per second.
        tolerance_s: largest distance in s between the stamps of one pair.

    Raises:
        CameraError: there are no names, a name occurs twice, or the rate or the tolerance is not valid.
    """

    def __init__(self, names: Sequence[str], rate: float, tolerance_s: float) -> None:
        if not names or len(set(names)) != len(names):
            raise CameraError(f"cameras to pair are {list(names)}; valid is one or more different names")
        if not 0 < rate <= 1000:
            raise CameraError(f"rate of pairs is {rate} Hz; valid is above 0 up to 1000")
        if not 0 <= tolerance_s <= 1:
            raise CameraError(f"tolerance of pairs is {tolerance_s} s; valid is 0 to 1")
        self._period_ns = round(NANOSECONDS / rate)
        self._tolerance_ns = round(tolerance_s * NANOSECONDS)
        self._queues: dict[str, deque[tuple[int, Any]]] = {name: deque() for name in names}
        self._dropped = dict.fromkeys(names, 0)
        self._skews: deque[int] = deque(maxlen=_SKEWS)
        self._largest_skew = 0
        self._thinned = 0
        self.reset()

    def reset(self) -> None:
        """Forget waiting frames and the grid. The counts stay."""
        for queue in self._queues.values():
            queue.clear()
        self._newest: dict[str, int] = {}
        self._due_ns: int | None = None
        self._last_ns: int | None = None

    def add(self, name: str, stamp_ns: int, frame: Any) -> list[FramePair]:
        """Add a frame and return the pairs it completes, oldest first.

        A frame that is not newer than the last one of its camera is dropped. A frame that is more than a second older
        means that the clock was set back (for example the twin was restarted): all waiting frames are forgotten.

        Raises:
            CameraError: the camera is not one of ``names``.
        """
        queue = self._queues.get(name)
        if queue is None:
            raise CameraError(f"camera '{name}' is not to be paired; valid are {', '.join(self._queues)}")
        newest = self._newest.get(name)
        if newest is not None and stamp_ns <= newest:
            if newest - stamp_ns < _CLOCK_JUMP_NS:
                self._dropped[name] += 1
                return []
            self.reset()
        self._newest[name] = stamp_ns
        queue.append((stamp_ns, frame))
        if len(queue) > _QUEUE:
            self._drop(name)
        return self._complete()

    def statistics(self) -> dict[str, object]:
        """Return drops per camera, thinned pairs, and skew in ms: p50, p99 of the last 1000 pairs, and the maximum."""
        values: dict[str, object] = {f"dropped_{name}": count for name, count in self._dropped.items()}
        values["thinned"] = self._thinned
        if self._skews:
            p50, p99 = np.percentile(np.array(self._skews), (50, 99)) / 1e6
            values["skew_ms_p50"] = round(float(p50), 3)
            values["skew_ms_p99"] = round(float(p99), 3)
            values["skew_ms_max"] = round(self._largest_skew / 1e6, 3)
        return values

    def _complete(self) -> list[FramePair]:
        pairs = []
        while all(self._queues.values()):
            latest = max(queue[0][0] for queue in self._queues.values())
            if self._drop_unpaired(latest):
                continue
            pair = self._take()
            if self._is_due(pair.stamp_ns):
                self._skews.append(pair.skew_ns)
                self._largest_skew = max(self._largest_skew, pair.skew_ns)
                pairs.append(pair)
            else:
                self._thinned += 1
        return pairs

    def _drop_unpaired(self, latest: int) -> bool:
        """Drop frames that are too old for ``latest``, the time of the newest camera, or worse than the next frame."""
        dropped = False
        for name, queue in self._queues.items():
            while queue and (latest - queue[0][0] > self._tolerance_ns or self._next_is_nearer(queue, latest)):
                self._drop(name)
                dropped = True
        return dropped

    @staticmethod
    def _next_is_nearer(queue: deque[tuple[int, Any]], instant: int) -> bool:
        return len(queue) > 1 and abs(queue[1][0] - instant) < abs(queue[0][0] - instant)

    def _take(self) -> FramePair:
        heads = {name: queue.popleft() for name, queue in self._queues.items()}
        stamps = [stamp for stamp, _ in heads.values()]
        frames = {name: frame for name, (_, frame) in heads.items()}
        return FramePair(min(stamps), max(stamps) - min(stamps), frames)

    def _is_due(self, stamp_ns: int) -> bool:
        """Whether this pair is nearer to the next grid instant than the following pair will be."""
        interval = self._period_ns if self._last_ns is None else min(stamp_ns - self._last_ns, self._period_ns)
        self._last_ns = stamp_ns
        error = 0 if self._due_ns is None else stamp_ns - self._due_ns
        if 2 * error < -interval:
            return False
        late = error >= self._period_ns  # after a gap the grid starts anew
        on_grid = stamp_ns if late else stamp_ns - error + error // _FOLLOW
        self._due_ns = on_grid + self._period_ns
        return True

    def _drop(self, name: str) -> None:
        self._queues[name].popleft()
        self._dropped[name] += 1


class PairWatch:
    """Tells when pairs fail to arrive, and which cameras are silent. Times are steady ones in ns.

    Args:
        names: cameras of a pair.
        first_s: time in s that the first pair may take.
        begun_ns: from when on pairs are awaited.
    """

    def __init__(self, names: Sequence[str], first_s: float, begun_ns: int) -> None:
        self._heard_ns = dict.fromkeys(names, 0)
        self._allowed_s, self._since_ns = first_s, begun_ns

    def heard(self, name: str, now_ns: int) -> None:
        """Note that a camera sent something, even if it cannot be used."""
        self._heard_ns[name] = now_ns

    def paired(self, now_ns: int) -> None:
        """Note a pair."""
        self._since_ns, self._allowed_s = now_ns, _STOPPED_S

    def problem(self, now_ns: int) -> tuple[str, bool]:
        """Return what is wrong, empty if nothing is, and whether it is that a camera is silent."""
        elapsed_s = (now_ns - self._since_ns) / NANOSECONDS
        if elapsed_s <= self._allowed_s:
            return "", False
        silent = [name for name, heard_ns in self._heard_ns.items() if now_ns - heard_ns > _STOPPED_S * NANOSECONDS]
        why = f"no frame from {', '.join(silent)}" if silent else "no frames within the tolerance"
        return f"{why} for {elapsed_s:.0f} s", bool(silent)
