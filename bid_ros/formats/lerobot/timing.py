"""When the rows of a LeRobotDataset were: their time stamps against ``fps``, and the rows that are taken for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import RecordingError

JITTER: Final = 0.1  # of a period: by so much may a step between two rows differ
DRIFT: Final = 0.5  # of a period: and by so much a row from the even grid, however long the episode is
GAP: Final = 1.5  # periods between two rows that are a gap, as in bags
SLOWEST: Final = 1.25  # periods between most rows: slower ones are no rows of this rate


@dataclass(frozen=True)
class Span:
    """Rows of an episode that follow one another at the rate of the data set.

    Attributes:
        rows: their numbers in the episode.
        start: time of the first one since the start of the episode, s.
        truncated: a gap follows.
    """

    rows: NDArray[np.int64]
    start: float = 0.0
    truncated: bool = False

    @property
    def count(self) -> int:
        """Number of its rows."""
        return len(self.rows)


@dataclass(frozen=True)
class Timing:
    """The spans of one episode.

    Attributes:
        spans: in order, one at least.
        resampled: rows are not one period apart, and those nearest to an even grid are taken.
        gaps: a sentence for each gap.
    """

    spans: tuple[Span, ...]
    resampled: bool = False
    gaps: tuple[str, ...] = ()


def timing_of(stamps: NDArray[np.float64], numbers: NDArray[np.int64], fps: float, said: str) -> Timing:
    """Return the rows of an episode that are taken.

    Rows one period apart are taken as they are. Rows that come faster, or unevenly, are resampled: the nearest one for
    each period. At a gap the episode is split; a piece of one row is left out.

    Args:
        stamps: ``(T,)`` column ``timestamp``, s.
        numbers: ``(T,)`` column ``frame_index``.
        fps: rows per second.
        said: begins the sentence of an error, such as ``PATH: episode 3``.

    Raises:
        RecordingError: times go backwards or are no numbers, rows are slower than ``fps``, or the numbers of the rows
            disagree with their times.
    """
    rows = np.arange(len(stamps))
    if not np.isfinite(stamps).all():
        raise RecordingError(f"{said}: timestamp of row {int((~np.isfinite(stamps)).argmax())} is no finite number")
    _check_numbers(numbers, stamps, fps, said)
    steps, away = np.diff(stamps) * fps, np.abs((stamps - stamps[0]) * fps - rows)
    if not len(steps) or (np.abs(steps - 1).max() <= JITTER and away.max() <= DRIFT):
        return Timing((Span(rows),))
    if steps.min() <= 0:
        back = int(steps.argmin())
        raise RecordingError(
            f"{said}: timestamp goes from {stamps[back]:.3f} s in row {back} to {stamps[back + 1]:.3f} s in row "
            f"{back + 1}; valid are times that increase ({int((steps <= 0).sum())} of {len(rows)} rows do not)"
        )
    if np.median(steps) > SLOWEST:
        raise RecordingError(
            f"{said}: {len(rows)} rows are {np.median(steps) / fps:.3g} s apart by their timestamp; info.json says fps "
            f"{fps:g}; valid is the fps of the rows"
        )
    return _split(stamps, steps, fps)


def _check_numbers(numbers: NDArray[np.int64], stamps: NDArray[np.float64], fps: float, said: str) -> None:
    """Raise RecordingError if rows are missing by their numbers, and their times do not say where."""
    even = numbers - numbers[0] == np.arange(len(numbers))
    timed = numbers == np.round(stamps * fps)
    if not even.all() and not timed.all():
        row = int((~even).argmax())
        raise RecordingError(
            f"{said}: frame_index goes from {numbers[row - 1]} to {numbers[row]} at row {row}, and timestamp from "
            f"{stamps[row - 1]:.3f} to {stamps[row]:.3f} s, which does not fit fps {fps:g}; {int((~even).sum())} of "
            f"{len(numbers)} rows are in doubt"
        )


def _split(stamps: NDArray[np.float64], steps: NDArray[np.float64], fps: float) -> Timing:
    """Split rows at the gaps, and take the nearest row for each period."""
    cuts = np.flatnonzero(steps > GAP)
    gaps = tuple(f"{steps[cut] / fps:.3g} s after row {cut}" for cut in cuts)
    spans, resampled = [], False
    for part in np.split(np.arange(len(stamps)), cuts + 1):
        if len(part) < 2:
            continue
        times, last = stamps[part], int(part[-1])
        within = (times - times[0]) * fps
        if np.abs(np.diff(within) - 1).max() > JITTER or np.abs(within - np.arange(len(part))).max() > DRIFT:
            resampled = True
            part = part[_nearest(times, times[0] + np.arange(int(within[-1] + JITTER) + 1) / fps)]
        spans.append(Span(part, float(times[0] - stamps[0]), last + 1 < len(stamps)))
    return Timing(tuple(spans), resampled, gaps)


def _nearest(times: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the number of the nearest of some increasing times for each one wanted."""
    after = np.clip(np.searchsorted(times, wanted), 1, len(times) - 1)
    found: NDArray[np.intp] = np.where(wanted - times[after - 1] <= times[after] - wanted, after - 1, after)
    return found


def notes_of(timings: Sequence[Timing], lengths: Sequence[int], fps: float) -> list[str]:
    """Return a sentence for each thing that the time stamps changed, with the number of the rows."""
    notes = []
    if uneven := [number for number, item in enumerate(timings) if item.resampled]:
        taken = sum(span.count for number in uneven for span in timings[number].spans)
        notes.append(
            f"the rows of {_episodes(uneven)} are not 1/{fps:g} s apart by their timestamp, as fps says: resampled, "
            f"{taken} of {sum(lengths[number] for number in uneven)} rows are taken"
        )
    if cut := [number for number, item in enumerate(timings) if item.gaps]:
        first = timings[cut[0]]
        pieces = sum(len(timings[number].spans) for number in cut)
        dropped = sum(lengths[number] for number in cut if not timings[number].resampled) - sum(
            span.count for number in cut if not timings[number].resampled for span in timings[number].spans
        )
        alone = f", {dropped} rows that stand alone are left out" if dropped else ""
        notes.append(
            f"{_episodes(cut)} has gaps in its timestamp (the first one: {first.gaps[0]} of episode {cut[0]}): "
            f"read as {pieces} episodes, split there{alone}"
        )
    return notes


def _episodes(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:5])) + (" and others" if len(numbers) > 5 else "")
    return f"episode {shown}" if len(numbers) == 1 else f"{len(numbers)} episodes ({shown})"
