"""Where a feature of a task is in a data set."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from bid_ros.core.rotation import matrix_from_vector, matrix_to_6d
from bid_ros.formats.base import DataEpisode

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

    def of(self, episode: DataEpisode) -> NDArray[Any]:
        """Return ``(T, n)`` values, or the images."""
        values = episode.actions if self.column == ACTION else episode.observations[self.column]
        if self.indices is None:
            return values
        flat = values.reshape(len(values), -1)
        first, end = self.indices[0], self.indices[-1] + 1
        # A range is a view; the values are copied once, where they are converted.
        taken = flat[:, first:end] if self.indices == tuple(range(first, end)) else flat[:, self.indices]
        return matrix_to_6d(matrix_from_vector(taken)) if self.turned else taken
