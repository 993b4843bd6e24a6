"""Whether an arm is where it was sent to: its states against the set-points of the last moments.

Frozen states agree with themselves, but not with the set-points.
"""

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Final, Generic, Protocol, TypeVar

from bid_ros.control.spatial import Pose, apart
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.margins import Margins

# Time between two set-points that are kept.
SPACING_NS: Final = 8_000_000
# How many are kept: 2 s, far more than any arm lags. Nobody takes out old ones where nobody compares, as in a twin.
KEPT: Final = 250
# Share of the limits that is left when no joint has changed in a single bit for as long as the arm may lag. The arm
# then stands, and an arm that stands must be where it was sent to.
STILL: Final = 0.2
# Factor of the limits for an arm that moves in a twin. Its computer holds up who sends and who follows, each for
# itself: an honest twin was 29 mm off where 27 were valid. Twice that is valid.
TWIN_ROOM: Final = 2.2


PlaceT = TypeVar("PlaceT")


class Placed(Protocol):
    """A state that says where the arm is."""

    @property
    def joints(self) -> tuple[float, ...]:
        """Joint positions, rad."""

    @property
    def pose(self) -> Pose:
        """Pose of the tool."""


class _Course(ABC, Generic[PlaceT]):
    """Keeps the set-points of the last moments, as far back as the arm may lag."""

    def __init__(self, lag_s: float, margins: Margins, twin: bool) -> None:
        self._lag_s, self._margins, self._room = lag_s, margins, TWIN_ROOM if twin else 1.0
        self._joints: tuple[float, ...] = ()
        self._moved_ns = 0
        self._sent: deque[tuple[int, PlaceT]] = deque(maxlen=KEPT)
        self._news = False  # a set-point was kept since the last comparison

    def _begin(self, sent: PlaceT, now_ns: int) -> None:
        self._sent.clear()
        self._sent.append((now_ns, sent))
        self._news = False

    def sent(self, place: PlaceT, now_ns: int) -> None:
        """Note a set-point and when it was sent, steady nanoseconds."""
        if self._sent and now_ns - self._sent[-1][0] >= SPACING_NS:
            self._sent.append((now_ns, place))
            self._news = True

    def end(self) -> None:
        """Nothing is followed any more."""
        self._sent.clear()
        self._news = False

    def doubt(self, reading: Placed, state_ns: int, late_s: float) -> str:
        """Return how far the arm was off at ``state_ns``, with the limit; empty if it was not, or follows nothing.

        Args:
            reading: a state.
            state_ns: when it was true, steady nanoseconds.
            late_s: how late the robot hears set-points, and how long it was silent lately, s.
        """
        if reading.joints != self._joints:
            self._joints, self._moved_ns = reading.joints, state_ns
        lag_s = self._lag_s + late_s
        first_ns = state_ns - round(lag_s * NANOSECONDS)
        sent = self._sent
        while len(sent) > 1 and sent[1][0] <= first_ns:
            sent.popleft()
        if not self._news:
            return ""
        self._news = False
        share, still = (STILL, ", though no joint moves") if self._moved_ns < first_ns else (self._room, "")
        since = f"the set-points of the last {lag_s:.2f} s{still}"
        return self._compared(reading, [place for _, place in sent], share, since)

    @abstractmethod
    def _compared(self, reading: Placed, sent: list[PlaceT], share: float, since: str) -> str:
        """Return how far a state is off what was sent, beyond ``share`` of the limit; empty if it is not."""


class ToolCourse(_Course[Pose]):
    """Compares where the tool is with the set-points of the last moments, as far back as the arm may lag.

    The tool must lie within the box that holds them, coordinate by coordinate, or near it.

    Args:
        lag_s: how far back, s.
        most_m, most_rad: how near, m and rad.
        margins: where to note how near to the limits it comes.
        twin: it is the arm of a twin, which shares its computer: ``TWIN_ROOM`` times as far is valid while it moves.
    """

    def __init__(self, lag_s: float, most_m: float, most_rad: float, margins: Margins, twin: bool = False) -> None:
        super().__init__(lag_s, margins, twin)
        self._most_m, self._most_rad = most_m, most_rad
        self._start = (0.0, 0.0)

    def begin(self, sent: Pose, measured: Pose, now_ns: int) -> None:
        """A stream of set-points begins at ``sent``, while the tool stands at ``measured``."""
        self._begin(sent, now_ns)
        self._start = apart(sent, measured)

    def _compared(self, reading: Placed, sent: list[Pose], share: float, since: str) -> str:
        off_m, off_rad = _off(reading.pose, sent)
        most_m, most_rad = self._start[0] + share * self._most_m, self._start[1] + share * self._most_rad
        if self._margins.over("course", off_m, most_m):
            return f"the tool is {1000 * off_m:.0f} mm off {since}; valid is up to {1000 * most_m:.0f} mm"
        if self._margins.over("course turn", off_rad, most_rad):
            return f"the tool is turned by {off_rad:.2f} rad off {since}; valid is up to {most_rad:.2f}"
        return ""


class JointCourse(_Course[tuple[float, ...]]):
    """Compares where the joints are with their set-points of the last moments, as :class:`ToolCourse` for the tool.

    Args:
        lag_s: how far back, s.
        most: how near each joint must be, rad.
        margins: where to note how near to the limits it comes.
        twin: as there.
    """

    def __init__(self, lag_s: float, most: tuple[float, ...], margins: Margins, twin: bool = False) -> None:
        super().__init__(lag_s, margins, twin)
        self._most = most
        self._start = 0.0

    def begin(self, sent: tuple[float, ...], measured: tuple[float, ...], now_ns: int) -> None:
        """A stream of set-points begins at ``sent``, while the joints stand at ``measured``."""
        self._begin(sent, now_ns)
        self._start = max(abs(a - b) for a, b in zip(sent, measured, strict=True))

    def _compared(self, reading: Placed, sent: list[tuple[float, ...]], share: float, since: str) -> str:
        worst = (0.0, 1, 0.0, 1.0)
        columns = zip(*sent, strict=True)
        for number, (value, column, own) in enumerate(zip(reading.joints, columns, self._most, strict=True), 1):
            off = max(min(column) - value, value - max(column), 0.0)
            most = self._start + share * own
            # Not `>`, which NaN would pass. NaN is the worst of all.
            if not off / most <= worst[0]:
                worst = (off / most, number, off, most)
            if math.isnan(off):
                break
        _, number, off, most = worst
        if self._margins.over("course joint", off, most):
            return f"joint {number} is {off:.3f} rad off {since}; valid is up to {most:.3f}"
        return ""


def _off(measured: Pose, sent: list[Pose]) -> tuple[float, float]:
    """Return how far a pose is from the boxes that hold others, about m and rad."""
    # A quaternion and its negative are the same turn.
    sign = math.copysign(1.0, sum(a * b for a, b in zip(measured.quaternion, sent[-1].quaternion, strict=True)))
    turn = tuple(sign * value for value in measured.quaternion)
    place = _outside(measured.position, [pose.position for pose in sent])
    return place, 2.0 * _outside(turn, [pose.quaternion for pose in sent])


def _outside(point: tuple[float, ...], others: Sequence[tuple[float, ...]]) -> float:
    """Return the distance of a point from the smallest box, along the axes, that holds others."""
    total = 0.0
    for value, column in zip(point, zip(*others, strict=True), strict=True):
        off = max(min(column) - value, value - max(column), 0.0)
        total += off * off
    return math.sqrt(total)
