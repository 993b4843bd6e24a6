"""Reads the episodes of a LeRobotDataset of either version."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import RecordingError
from bid_ros.formats.base import Column, Contents, DataEpisode, row_stamps
from bid_ros.formats.files import STAMP, read_json, read_sidecar
from bid_ros.formats.lerobot.layout import SIDECAR, Layout
from bid_ros.formats.lerobot.tables import Rows, numbers, pictures
from bid_ros.formats.lerobot.video import decode

EPISODE: Final = Column("episode_index", (), "int64", key="episode_index")
STAMPS: Final = Column(STAMP, (), "int64", key=STAMP)


@dataclass(frozen=True)
class Place:
    """Where an episode is.

    Attributes:
        number: its number.
        length: its rows.
        text: its task in words.
        data: Parquet file of its rows.
        first: number of its first row in that file.
        videos: file of each video by key, and the time of its first frame in it, s.
    """

    number: int
    length: int
    text: str
    data: Path
    first: int
    videos: Mapping[str, tuple[Path, float]]


class LeRobotSource:
    """Reads a data set whose layout and places are known.

    Args:
        name: of the format.
        layout: what the data set says of itself.
        places: its episodes in order.
    """

    def __init__(self, name: str, layout: Layout, places: Sequence[Place]) -> None:
        self._layout, self._places = layout, tuple(places)
        lengths = tuple(place.length for place in places)
        side = layout.root / SIDECAR
        added: Any = read_json(side) if side.exists() else None
        self._side = read_sidecar(added, added.get("episodes", []) if isinstance(added, dict) else [], lengths)
        extras = self._side.extras | {"text"}
        if STAMP not in layout.info["features"]:
            extras -= {"stamps"}
        self._contents = Contents(
            name,
            layout.columns,
            layout.action,
            lengths,
            layout.fps,
            self._side.task,
            self._side.signature,
            extras,
            layout.left,
        )
        self._rows: Rows | None = None

    @property
    def contents(self) -> Contents:
        """What the data set holds."""
        return self._contents

    def episodes(self, start: int = 0, names: Collection[str] | None = None) -> Iterator[DataEpisode]:
        """Return the episodes from number ``start`` on. Raises RecordingError where the files are damaged."""
        for place in self._places[start:]:
            yield self._episode(place, names)

    def _episode(self, place: Place, names: Collection[str] | None) -> DataEpisode:
        layout, stamped = self._layout, "stamps" in self._contents.extras
        tabled = [column for column in layout.tabled() if column.wanted(names)]
        columns = [layout.action, EPISODE, *tabled, *([STAMPS] if stamped else [])]
        table = self._table(place, [column.key for column in columns])
        if (numbers(table, EPISODE, place.data) != place.number).any():
            raise RecordingError(f"{place.data}: the rows of episode {place.number} are not where the data set says")
        observations: dict[str, NDArray[Any]] = {}
        for column in layout.columns:
            if not column.wanted(names):
                continue
            if column.key in place.videos:
                path, begin = place.videos[column.key]
                observations[column.name] = decode(path, begin, place.length, layout.fps, column.shape)
            else:
                read = pictures if column.image else numbers
                observations[column.name] = read(table, column, place.data)
        stamps = numbers(table, STAMPS, place.data) if stamped else row_stamps(place.length, layout.fps)
        known: dict[str, Any] = {"seed": place.number, "text": place.text} | self._side.about(place.number)
        return DataEpisode(observations, numbers(table, layout.action, place.data), np.asarray(stamps), **known)

    def _table(self, place: Place, names: Sequence[str]) -> Any:
        if self._rows is None or self._rows.path != place.data:
            self._rows = Rows(place.data)
        return self._rows.read(place.first, place.length, names)


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
