"""Holds what a conversion wrote against what it read: values, pictures and what is known about the episodes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import RecordingError
from bid_ros.formats.bag import BagSource
from bid_ros.formats.bag_writer import bag_stamps
from bid_ros.formats.base import Column, Contents, DataEpisode, Format, Options, ReadBack, Source
from bid_ros.formats.pieces import InPieces
from bid_ros.recording.outcomes import ALL

SMALL_ROWS: Final = 1000  # rows of a data set that is compared as a whole
SAMPLE: Final = 8  # episodes that are compared of a larger one
HIGHEST: Final = 255.0  # of a value of a picture
LEAST: Final = 1e-5  # mean square error that counts as none: JSON has no infinity
NEARER: Final = 0.5  # of a picture's error: one so much nearer to that of another row is out of place
CLOSE: Final = 1e-9  # of values in bags, which hold a rotation as a quaternion
ACTION: Final = "action"

Ratios = dict[str, list[NDArray[np.float64]]]


@dataclass(frozen=True)
class Verified:
    """What was compared.

    Attributes:
        episodes: how many.
        left: rows of these that reading leaves out of what was written; of bags.
        fidelity: median and lowest peak signal-to-noise ratio of the pictures, dB, by column: of those that are coded
            with loss. 98 dB where a picture is exact.
    """

    episodes: int
    left: int
    fidelity: Mapping[str, tuple[float, float]]


def verify(
    source: Source,
    target: Path,
    form: Format,
    options: Options,
    rows: Sequence[int],
    whole: bool = False,
    kept: Callable[[Sequence[int]], Iterator[DataEpisode]] | None = None,
) -> Verified:
    """Read what was written again, and hold it against the source.

    Args:
        source: what was converted.
        target: file or folder that was written.
        form: its format.
        options: how it was written.
        rows: of each episode that was written.
        whole: compare every episode; else those of a large data set are sampled. Bags are then held against ``kept``
            instead, or only their first episode is read again.
        kept: gives the episodes of some numbers as they were read. None: the source is read again.

    Raises:
        RecordingError: they differ, or one is damaged.
    """
    bags = isinstance(source, InPieces)
    numbers = _sample(rows, whole, bags and kept is None)
    read = kept(numbers) if bags and kept is not None and not whole else _episodes(source, numbers)
    before, ratios, left = source.contents, Ratios(), 0
    if isinstance(written := form.open(target, options.task), BagSource):
        for number, episode in zip(numbers, read, strict=True):
            left += _compare_bag(episode, target / f"{number:04d}", before, options, number)
        return Verified(len(numbers), left, {})
    _compare_contents(before, written.contents, form.fates(before, options), target)
    back, held = form.read_back(before, options), before.extras & written.contents.extras
    lossy = {column.name for column in written.contents.columns if column.codec}
    pairs = zip(numbers, read, _episodes(written, numbers), strict=True)
    for number, first, second in pairs:
        _compare_episode(first, second, before, back, lossy, ratios, f"{target}: episode {number}")
        _compare_about(first, second, held, f"{target}: episode {number}")
    joined = {name: np.concatenate(found) for name, found in ratios.items()}
    return Verified(
        len(numbers), 0, {name: (float(np.median(found)), float(found.min())) for name, found in joined.items()}
    )


def _sample(rows: Sequence[int], whole: bool, bags: bool) -> list[int]:
    """Return the numbers of the episodes that are compared."""
    count = len(rows)
    if whole or (sum(rows) <= SMALL_ROWS and not bags):
        return list(range(count))
    return [0][:count] if bags else sorted({round(at) for at in np.linspace(0, count - 1, SAMPLE)})


def _episodes(source: Source, numbers: Sequence[int]) -> Iterator[DataEpisode]:
    """Yield some episodes; all of them in one go."""
    if list(numbers) == list(range(len(numbers))):
        for _, episode in zip(numbers, source.episodes(), strict=False):
            yield episode
        return
    for number in numbers:
        yield next(iter(source.episodes(number)))


def _compare_contents(before: Contents, after: Contents, fates: Mapping[str, str], target: Path) -> None:
    """Raise RecordingError if a column that is exact has other names of its values, or the rate is another."""
    found = {column.name: column for column in (*after.columns, after.action)}
    for column in (*before.columns, before.action):
        if column.name in fates:
            continue
        other = found.get(column.name)
        if other is None or (column.names and other.names and column.names != other.names):
            raise RecordingError(f"{target}: '{column.name}' is not as it was read; this is a fault of bid_ros")
    if None not in (before.rate_hz, after.rate_hz) and before.rate_hz != after.rate_hz:
        raise RecordingError(f"{target}: the rate is {after.rate_hz}, was {before.rate_hz}; this is a fault of bid_ros")


def _compare_episode(
    before: DataEpisode,
    after: DataEpisode,
    contents: Contents,
    back: ReadBack,
    lossy: set[str],
    ratios: Ratios,
    said: str,
) -> None:
    found = back(after.observations)
    for column in contents.columns:
        values, again = before.observations[column.name], found.get(column.name)
        if column.name in lossy:
            ratios.setdefault(column.name, []).append(_ratio(column, values, again, said))
        else:
            _compare(column, values, again, said)
    _compare(contents.action, before.actions, after.actions, said)


def _compare(column: Column, before: NDArray[Any], after: NDArray[Any] | None, said: str) -> None:
    """Raise RecordingError unless values are the same, also if they were flat or of a wider type in between."""
    if after is None or after.size != before.size or len(after) != len(before):
        what = "lacks it" if after is None else f"has {after.shape}"
        raise RecordingError(f"{said}: '{column.name}' had {before.shape}, the copy {what}; this is a fault of bid_ros")
    again = after.reshape(before.shape).astype(before.dtype)
    if not np.array_equal(again, before) or not np.array_equal(again.astype(after.dtype), after.reshape(before.shape)):
        row = int(np.argmax((again != before).reshape(len(before), -1).any(axis=1)))
        raise RecordingError(
            f"{said}: '{column.name}' differs from what was read, first in row {row}; this is a fault of bid_ros"
        )


def _ratio(column: Column, before: NDArray[Any], after: NDArray[Any] | None, said: str) -> NDArray[np.float64]:
    """Return the peak signal-to-noise ratio of each picture, dB. Raises RecordingError if they are out of place."""
    if after is None or after.shape != before.shape:
        raise RecordingError(f"{said}: pictures of '{column.name}' are not as many or as large as those that were read")
    own = _errors(before, after)
    for away in (1, -1):
        first, second = (before[1:], after[:-1]) if away > 0 else (before[:-1], after[1:])
        if len(first) and _errors(first, second).mean() < NEARER * own.mean() and own.mean() > 1:
            raise RecordingError(f"{said}: pictures of '{column.name}' belong to neighbouring rows; a fault of bid_ros")
    found: NDArray[np.float64] = 10 * np.log10(HIGHEST**2 / np.maximum(own, LEAST))
    return found


def _errors(before: NDArray[Any], after: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean square error of each picture, one in memory as float."""
    pairs = zip(before, after, strict=True)
    return np.array([np.square(np.subtract(second, first, dtype=np.float32)).mean() for first, second in pairs])


def _compare_about(before: DataEpisode, after: DataEpisode, kept: frozenset[str], said: str) -> None:
    """Raise RecordingError if what is known about an episode, and is held, differs."""
    if "stamps" in kept and not np.array_equal(before.stamps_ns, after.stamps_ns):
        raise RecordingError(f"{said}: the times of its rows differ from what was read; this is a fault of bid_ros")
    names = kept - {"stamps"} | ({"texts"} if "text" in kept else set())
    for name in sorted(names):
        first, second = (_plain(item.about()[name]) for item in (before, after))
        if first != second:
            raise RecordingError(f"{said}: its {name} is {second}, was {first}; this is a fault of bid_ros")


def _plain(value: Any) -> Any:
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _compare_bag(episode: DataEpisode, bag: Path, contents: Contents, options: Options, number: int) -> int:
    """Hold a bag's rows against those of its episode by their time. Return how many reading leaves out."""
    assert options.task is not None, "bags are written for a task"
    said, times, read = f"{bag}: episode {number}", bag_stamps(episode.stamps_ns), 0
    try:
        again = list(BagSource([bag], options.task, ALL).episodes())
    except RecordingError:
        again = []  # nothing moves in it, or it is shorter than what is observed: reading says so
    for item in again:
        rows = np.searchsorted(times, item.stamps_ns)
        if (rows >= len(times)).any() or (times[rows] != item.stamps_ns).any():
            raise RecordingError(f"{said}: has rows at other times than what was read; this is a fault of bid_ros")
        names = [column.name for column in contents.columns]
        pairs = {name: (episode.observations[name], item.observations[name]) for name in names}
        for name, (before, after) in (pairs | {ACTION: (episode.actions, item.actions)}).items():
            if not np.allclose(before[rows], after, rtol=0, atol=CLOSE):
                raise RecordingError(f"{said}: '{name}' differs from what was read; this is a fault of bid_ros")
        read += item.rows
    return episode.rows - read
