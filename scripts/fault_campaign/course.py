"""What a trace of the twin's true joints tells: when the tool was at rest, how fast and how far it went."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
WIDTH: Final = 9  # of a row: steady time, simulated time, seven joints
REST_SPEED: Final = 0.005  # m/s of the tool
REST_S: Final = 0.3  # for which it must stay below
HOLD_S: Final = 3.0  # for which it must stay at rest after that
MOVES_SPEED: Final = 0.01  # m/s; above it an arm that was at rest moves again
SPAN_S: Final = 0.02  # simulated time over which a speed is measured
ENDED_S: Final = 0.3  # between two rows: the twin has ended meanwhile
BEFORE_S: Final = 0.5  # before a fault, for the speed before


@dataclass(frozen=True)
class Trace:
    """The tool over time.

    Attributes:
        times: ``(n,)`` steady time, s.
        simulated: ``(n,)`` time of the physics, s. It stands still, and catches up, where the computer is busy.
        tool: ``(n, 3)`` m, base frame.
    """

    times: Array
    simulated: Array
    tool: Array

    def speeds(self) -> Array:
        """Return ``(n,)`` m/s of the tool in the simulated time before each row, which no busy computer changes."""
        before = np.searchsorted(self.simulated, self.simulated - SPAN_S, side="right") - 1
        far = np.linalg.norm(self.tool - self.tool[np.maximum(before, 0)], axis=1)
        passed = self.simulated - self.simulated[np.maximum(before, 0)]
        return np.where((before >= 0) & (passed > 0), far / np.where(passed > 0, passed, 1.0), 0.0)


@dataclass(frozen=True)
class Course:
    """What the arm did after an instant.

    Attributes:
        rest_s: s until it was at rest; None: it was not, until the trace ended or the time was over.
        again_s: s until it moved again within 3 s of rest; None: it stayed at rest.
        before: largest speed of the tool in the half second before, m/s.
        peak: largest speed of the tool until it was at rest, m/s.
        far: m that the tool went until it was at rest.
        outside: m that the tool was outside the workspace at most.
        real_time: simulated time by this computer's, until rest, half a second at least. Below 1 the twin was
            slow: its arm brakes late, and hurries after set-points that come at this computer's pace.
    """

    rest_s: float | None
    again_s: float | None
    before: float
    peak: float
    far: float
    outside: float
    real_time: float = 1.0


def read_trace(path: Path, tool: Callable[[Array], Array]) -> Trace:
    """Read a trace; ``tool`` gives the place ``(3,)`` m of the tool for joints ``(7,)`` rad."""
    rows = np.fromfile(path, dtype=np.float64)
    rows = rows[: len(rows) // WIDTH * WIDTH].reshape(-1, WIDTH)
    places = np.array([tool(row) for row in rows[:, 2:]]).reshape(-1, 3)
    return Trace(rows[:, 0], rows[:, 1], places)


def course(trace: Trace, since: float, until: float, low: Array, high: Array) -> Course:
    """Judge a trace from an instant on.

    Args:
        trace: of the tool.
        since, until: steady times in s.
        low, high: corners ``(3,)`` of the workspace, m.
    """
    speeds, times = trace.speeds(), trace.times
    earlier = (times >= since - BEFORE_S) & (times < since)
    inside = np.flatnonzero((times >= since) & (times <= until))
    before = float(speeds[earlier].max(initial=0.0))
    if not inside.size:
        return Course(None, None, before, 0.0, 0.0, 0.0, 0.0)
    rest = _rest(times, speeds, inside, times[inside[-1]] < until - ENDED_S)
    end = inside[-1] if rest is None else rest
    way = slice(inside[0], end + 1)
    seen = min(int(np.searchsorted(times, max(times[end], since + BEFORE_S))), int(inside[-1]))
    passed = times[seen] - times[inside[0]]
    outside = np.maximum(low - trace.tool[way], trace.tool[way] - high).max()
    return Course(
        None if rest is None else max(0.0, float(times[rest] - since)),
        None if rest is None else _again(times, speeds, rest, inside[-1], since),
        before,
        float(speeds[way].max()),
        float(np.linalg.norm(np.diff(trace.tool[way], axis=0), axis=1).sum()),
        max(0.0, float(outside)),
        float((trace.simulated[seen] - trace.simulated[inside[0]]) / max(passed, SPAN_S)),
    )


def _rest(times: Array, speeds: Array, inside: NDArray[np.intp], ended: bool) -> int | None:
    """Return the first row from which the tool rests for long enough, or until the twin has ended."""
    fast = inside[speeds[inside] >= REST_SPEED]
    begins = [int(inside[0]), *(int(row) + 1 for row in fast)]
    for row in begins:
        if row > inside[-1]:
            return None
        later = fast[fast >= row]
        ends = times[later[0]] if later.size else times[inside[-1]]
        if ends - times[row] >= REST_S or (ended and not later.size):
            return row
    return None


def _again(times: Array, speeds: Array, rest: int, last: int, since: float) -> float | None:
    """Return the s after which the tool moved again within the time for which it must hold still."""
    later = np.arange(rest, last + 1)
    later = later[(times[later] - times[rest] <= HOLD_S) & (speeds[later] > MOVES_SPEED)]
    return float(times[later[0]] - since) if later.size else None
