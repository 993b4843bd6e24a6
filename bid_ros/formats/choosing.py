"""Chooses episodes of a data set by how they ended."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from bid_ros.core.errors import RecordingError
from bid_ros.formats.bag import BagSource
from bid_ros.formats.base import Contents, DataEpisode, Source
from bid_ros.recording.outcomes import ALL, SUCCESS, check_outcomes


def chosen(source: Source, wanted: str) -> Source:
    """Return the episodes of a data set that ended as wanted.

    Args:
        source: opened, and not mapped to a task yet.
        wanted: ``success``, ``failure`` or ``all``. An episode of which a data set does not say how it ended counts
            as a success, because such data sets are of demonstrations.

    Raises:
        RecordingError: there is no such word.
    """
    if isinstance(source, BagSource):
        return source.of(wanted)
    return source if check_outcomes(wanted) == ALL else _Chosen(source, wanted)


class _Chosen:
    """The episodes of one outcome."""

    def __init__(self, source: Source, wanted: str) -> None:
        self._source, self._success = source, wanted == SUCCESS
        left = f"episodes that {'failed' if self._success else 'succeeded'} are left out"
        self._contents = replace(source.contents, lengths=None, left=(*source.contents.left, left))

    @property
    def contents(self) -> Contents:
        """What the data set holds; how many episodes of this outcome, only reading tells."""
        return self._contents

    def episodes(self, start: int = 0, names: Collection[str] | None = None) -> Iterator[DataEpisode]:
        """Return the episodes of this outcome, from number ``start`` of them on. Raises RecordingError without one."""
        number = 0
        for episode in self._source.episodes(0, names):
            if (episode.success is not False) == self._success:
                if number >= start:
                    yield episode
                number += 1
        if number == 0:
            word = "succeeded" if self._success else "failed"
            raise RecordingError(f"the data set has no episode that {word}; valid is another --outcome")
