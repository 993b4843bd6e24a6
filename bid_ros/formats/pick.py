"""Where a feature of a task is in a data set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from bid_ros.core.errors import RecordingError
from bid_ros.core.rotation import matrix_from_vector, matrix_to_6d
from bid_ros.core.task import Task
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


def check_orders(
    task: Task, observed: Sequence[Pick], commanded: Sequence[Pick], columns: Mapping[str, Column]
) -> None:
    """Hold the order of the values of each feature against its names, and against the action of its name.

    Args:
        task: has the names.
        observed, commanded: where its features are, in its order.
        columns: of the data set, by name, and the action.

    Raises:
        RecordingError: the same values have another order.
    """
    seen = {item.name: pick.names_in(columns) for item, pick in zip(task.observation, observed, strict=True)}
    done = {item.name: pick.names_in(columns) for item, pick in zip(task.action, commanded, strict=True)}
    for item in (*task.observation, *task.action):
        for names in (group[item.name] for group in (seen, done) if item.name in group):
            own, found = ", ".join(item.names), ", ".join(names)
            _check_order(f"'{item.name}' is {own} in the task file and {found} in the data set", item.names, names)
    for name in done.keys() & seen.keys():
        said = f"'{name}' is observed as {', '.join(seen[name])} and commanded as {', '.join(done[name])}"
        _check_order(said, seen[name], done[name])


def _check_order(said: str, one: Sequence[str], other: Sequence[str]) -> None:
    """Raise RecordingError if the same names have another order."""
    if list(one) != list(other) and sorted(one) == sorted(other):
        raise RecordingError(
            f"{said}; valid is one order: list the values in the section data of the task file, such as action[b, a]"
        )
