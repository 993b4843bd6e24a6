"""Where a feature of a task is in a data set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from bid_ros.core.errors import RecordingError
from bid_ros.core.rotation import matrix_from_vector, matrix_to_6d
from bid_ros.formats.base import NUMBERS, Column, DataEpisode

ACTION = ""  # stands for the action among the columns


@dataclass(frozen=True)
class Pick:
    """Takes a feature from a column: all of it, or some values of each row, times ``scale`` and plus ``offset``.

    Attributes:
        known: the task file names the unit, or bid_ros wrote the numbers.
        turned: the values are rotation vectors, which become six numbers each.
    """

    column: str
    indices: tuple[int, ...] | None
    key: str
    scale: float = 1.0
    offset: float = 0.0
    known: bool = False
    turned: bool = False

    def names_in(self, columns: Mapping[str, Column]) -> list[str]:
        """Return the names of the values that it takes of one of the columns; none where that names none.

        A person who lists values one by one has chosen their order: then none, too.
        """
        names = columns[self.column].names
        return [names[at] for at in self.indices or ()] if names and "," not in self.key else []

    def of(self, episode: DataEpisode) -> NDArray[Any]:
        """Return ``(T, n)`` values, or the images. Raises RecordingError for values that are no numbers."""
        values = episode.actions if self.column == ACTION else episode.observations[self.column]
        if self.indices is None:
            return values
        if values.dtype.kind not in NUMBERS:
            raise RecordingError(f"'{self.key}' of the data set is {values.dtype}; valid are numbers")
        flat = values.reshape(len(values), -1)
        first, end = self.indices[0], self.indices[-1] + 1
        # A range is a view; the values are copied once, where they are converted.
        taken = flat[:, first:end] if self.indices == tuple(range(first, end)) else flat[:, self.indices]
        return matrix_to_6d(matrix_from_vector(taken)) if self.turned else taken


def check_order(name: str, observed: Sequence[str], commanded: Sequence[str]) -> None:
    """Raise RecordingError if the same values are observed in another order than they are commanded."""
    if observed != commanded and sorted(observed) == sorted(commanded):
        raise RecordingError(
            f"'{name}' is observed as {', '.join(observed)} and commanded as {', '.join(commanded)}; valid is one "
            "order: list the values in the section data of the task file, such as action[b, a]"
        )
