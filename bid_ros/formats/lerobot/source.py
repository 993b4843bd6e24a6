"""Reads the episodes of a LeRobotDataset, of any version, whose layout and places are known."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import RecordingError
from bid_ros.formats.base import Column, Contents, DataEpisode
from bid_ros.formats.files import STAMP, Sidecar, read_json, read_sidecar
from bid_ros.formats.lerobot.layout import NO_TEXT, SIDECAR, Layout
from bid_ros.formats.lerobot.tables import Rows, numbers, pictures
from bid_ros.formats.lerobot.timing import GAP, JITTER, Span, Timing, notes_of, timing_of
from bid_ros.formats.lerobot.video import Frames, decode
from bid_ros.formats.rows import row_stamps, runs_of

EPISODE: Final = Column("episode_index", (), "int64", key="episode_index")
STAMPS: Final = Column(STAMP, (), "int64", key=STAMP)
TIMES: Final = Column("timestamp", (), "float64", key="timestamp")
NUMBERS: Final = Column("frame_index", (), "int64", key="frame_index")
TASKS: Final = Column("task_index", (), "int64", key="task_index")


@dataclass(frozen=True)
class Place:
    """Where an episode is.

    Attributes:
        number: its number.
        length: its rows.
        texts: its tasks in words.
        data: Parquet file of its rows.
        first: number of its first row in that file.
        videos: file of each video by key, and the time of its first frame in it, s.
    """

    number: int
    length: int
    texts: tuple[str, ...]
    data: Path
    first: int
    videos: Mapping[str, tuple[Path, float]]


@dataclass(frozen=True, eq=False)
class TimedEpisode:
    """An episode and when its rows were.

    Attributes:
        place: where it is.
        stamps: ``(T,)`` column ``timestamp``, s.
        tasks: ``(T,)`` number of each row's task.
        timing: the rows that are taken.
    """

    place: Place
    stamps: NDArray[np.float64]
    tasks: NDArray[np.int64]
    timing: Timing

    @property
    def span_s(self) -> float:
        """Time of the last row, s."""
        return float(self.stamps[-1])


class LeRobotSource:
    """Reads a data set whose layout and places are known. Its time stamps are read when it is opened.

    Args:
        name: of the format.
        layout: what the data set says of itself.
        places: its episodes in order.
        tasks: text of each task by its number.

    Raises:
        RecordingError: files are missing or damaged, or times and videos do not fit the rows.
    """

    def __init__(self, name: str, layout: Layout, places: Sequence[Place], tasks: Mapping[int, str]) -> None:
        self._layout, self._tasks = layout, tasks
        self._rows: Rows | None = None
        self._counts: dict[Path, int] = {}
        self._timed = [self._read_times(place) for place in places]
        self._spans = [(item, span) for item in self._timed for span in item.timing.spans]
        lengths = tuple(place.length for place in places)
        side = layout.root / SIDECAR
        added: Any = read_json(side) if side.exists() else None
        self._side = read_sidecar(added, added.get("episodes", []) if isinstance(added, dict) else [], lengths)
        self._frames, moved = placed_frames(self._timed, layout)
        cut = {"truncated"} if any(span.truncated for _, span in self._spans) else set()
        extras = self._side.extras | {"text"} | cut
        if STAMP not in layout.info["features"]:
            extras -= {"stamps"}
        self.contents = Contents(
            name,
            layout.columns,
            layout.action,
            tuple(span.count for _, span in self._spans),
            layout.fps,
            self._side.task,
            self._side.signature,
            extras,
            (*layout.left, *self._unclaimed(places)),
            (*layout.notes, *notes_of([item.timing for item in self._timed], lengths, layout.fps), *moved),
        )

    def episodes(self, start: int = 0, names: Collection[str] | None = None) -> Iterator[DataEpisode]:
        """Return the episodes from number ``start`` on. Raises RecordingError where the files are damaged."""
        for timed, span in self._spans[start:]:
            yield self._episode(timed, span, names)

    def _unclaimed(self, places: Sequence[Place]) -> list[str]:
        """Return a sentence for each table that has more rows than its episodes."""
        claimed = dict.fromkeys(self._counts, 0)
        for place in places:
            claimed[place.data] += place.length
        return [
            f"{count - claimed[path]} of {count} rows of {path} are not read: they belong to no episode"
            for path, count in self._counts.items()
            if count > claimed[path]
        ]

    def _read_times(self, place: Place) -> TimedEpisode:
        table = self._table(place, [column.key for column in (TIMES, NUMBERS, TASKS)])
        stamps, count, tasks = (numbers(table, column, place.data) for column in (TIMES, NUMBERS, TASKS))
        said = f"{place.data}: episode {place.number}"
        timing = timing_of(stamps, count, self._layout.fps, said)
        if not timing.spans:
            within = GAP / self._layout.fps
            raise RecordingError(f"{said}: no two of its {place.length} rows are within {within:g} s of one another")
        return TimedEpisode(place, stamps, tasks, timing)

    def _episode(self, timed: TimedEpisode, span: Span, names: Collection[str] | None) -> DataEpisode:
        layout, place, stamped = self._layout, timed.place, "stamps" in self.contents.extras
        tabled = [column for column in layout.tabled() if column.wanted(names)]
        commanded = [layout.action] if layout.action.size else []
        columns = [*commanded, EPISODE, *tabled, *([STAMPS] if stamped else [])]
        table = self._table(place, [column.key for column in columns])
        if (numbers(table, EPISODE, place.data) != place.number).any():
            raise RecordingError(f"{place.data}: the rows of episode {place.number} are not where the data set says")
        observations: dict[str, NDArray[Any]] = {}
        for column in layout.columns:
            if not column.wanted(names):
                continue
            if column.key in place.videos:
                frames = self._frames[place.number, column.key]
                observations[column.name] = decode(frames, span.rows, timed.stamps, layout.fps, column.shape)
            else:
                read = pictures if column.image else numbers
                observations[column.name] = _taken(read(table, column, place.data), span)
        if stamped:
            stamps = _taken(numbers(table, STAMPS, place.data), span)
        else:
            stamps = row_stamps(span.count, layout.fps) + 1000 * round(1e6 * span.start)  # they are float32
        actions = np.zeros((span.count, 0), np.float32)
        if commanded:
            actions = _taken(numbers(table, layout.action, place.data), span)
        known = {"seed": place.number, **_about(self._side, timed, span), **self._told(timed, span)}
        return DataEpisode(observations, actions, np.asarray(stamps), **known)

    def _told(self, timed: TimedEpisode, span: Span) -> dict[str, Any]:
        """Return the text of an episode, and where it changes."""
        rows, place = timed.tasks[span.rows], timed.place
        # Where there is no text the writer of bid_ros puts the name of the task.
        unsaid = self._side.about(place.number).get("text") == ""
        firsts = [0, *(np.flatnonzero(np.diff(rows)) + 1).tolist()]
        if len(firsts) == 1 and int(rows[0]) not in self._tasks and len(place.texts) <= 1:
            return {"text": "".join(place.texts), "texts": ()}
        unknown = sorted({int(rows[first]) for first in firsts} - set(self._tasks))
        if unknown:
            raise RecordingError(
                f"{place.data}: episode {place.number} has task_index {unknown[0]}; valid in this data set are "
                f"{', '.join(map(str, self._tasks)) or 'none'}"
            )
        texts = tuple((first, self._tasks[int(rows[first])]) for first in firsts)
        if len(texts) == 1 and unsaid and texts[0][1] == (self._side.task or NO_TEXT):
            return {"text": "", "texts": ()}
        return {"text": texts[0][1], "texts": texts if len(texts) > 1 else ()}

    def _table(self, place: Place, names: Sequence[str]) -> Any:
        if self._rows is None or self._rows.path != place.data:
            self._rows = Rows(place.data)
            self._counts[place.data] = self._rows.count
        return self._rows.read(place.first, place.length, names)


def _taken(values: NDArray[Any], span: Span) -> NDArray[Any]:
    """Return the rows of a span; all of them without a copy."""
    return values if span.count == len(values) and (np.diff(span.rows) == 1).all() else values[span.rows]


def _about(side: Sidecar, timed: TimedEpisode, span: Span) -> dict[str, Any]:
    """Return what was added about an episode, for the rows of a span."""
    known = side.about(timed.place.number)
    if span.truncated:
        known["truncated"] = True
    if "interventions" in known:
        by_person = np.zeros(timed.place.length, np.bool_)
        for first, end in known["interventions"]:
            by_person[first:end] = True
        known["interventions"] = runs_of(by_person[span.rows])
    return known


def placed_frames(episodes: Sequence[TimedEpisode], layout: Layout) -> tuple[dict[tuple[int, str], Frames], list[str]]:
    """Return where the frames of each episode are, by its number and the key of the video, and what was set right.

    Where a file has one frame for each row, the frames are counted. ``from_timestamp`` of v3.0 is then held against
    the rows that come before: summed durations of videos drift by whole frames.

    Raises:
        RecordingError: a file has other frames than rows, and the times of its episodes do not explain which.
    """
    found: dict[tuple[int, str], Frames] = {}
    notes = []
    for column in layout.videos():
        files: dict[Path, list[TimedEpisode]] = {}
        for item in episodes:
            files.setdefault(item.place.videos[column.key][0], []).append(item)
        moved, most = 0, 0.0
        for path, unordered in files.items():
            items = sorted(unordered, key=lambda item: item.place.videos[column.key][1])
            firsts = np.cumsum([0, *(item.place.length for item in items)])
            begins = np.array([item.place.videos[column.key][1] for item in items])
            ends = begins + np.array([item.span_s for item in items]) + 1 / layout.fps
            off = np.abs(begins * layout.fps - firsts[:-1])
            frames = Frames(path, rows=int(firsts[-1]), end=float(ends.max()))
            if (off > JITTER).any():
                count = frames.count()
                if count == frames.rows:
                    moved, most = moved + int((off > JITTER).sum()), max(most, float(off.max()))
                elif np.abs(begins - [0.0, *ends[:-1]]).max() > 0.5 / layout.fps:
                    raise RecordingError(
                        f"video {path} has {count} frames for {firsts[-1]} rows, and by from_timestamp of "
                        f"'{column.key}' its episodes overlap or leave frames; valid is a frame for each row"
                    )
            for item, first, begin in zip(items, firsts, begins, strict=False):
                found[item.place.number, column.key] = replace(frames, first=int(first), begin=float(begin))
        if moved:
            notes.append(
                f"from_timestamp of '{column.key}' is off by up to {most:.3g} frames in {moved} of {len(episodes)} "
                "episodes: their pictures are counted by rows instead"
            )
    return found, notes


def checked_places(layout: Layout, places: Sequence[Place]) -> Sequence[Place]:
    """Return the places. Raises RecordingError unless they are all that ``info.json`` says."""
    said = (layout.info.get("total_episodes"), layout.info.get("total_frames"))
    found = (len(places), sum(place.length for place in places))
    if said != found:
        raise RecordingError(
            f"LeRobot data set {layout.root} has {found[0]} episodes of {found[1]} rows; its info.json says "
            f"{said[0]} of {said[1]}"
        )
    wrong = [place.number for at, place in enumerate(places) if place.number != at or place.length < 1]
    if wrong or not places:
        raise RecordingError(f"LeRobot data set {layout.root} lacks an episode or has an empty one: {wrong[:1]}")
    return places
