"""Motions slowed down in time, their path kept: new rows lie between the rows of the motion, never beside them."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.rotation import Array, matrix_from_6d, matrix_from_vector, matrix_to_6d, vector_from_matrix
from bid_ros.core.task import Task


@dataclass(frozen=True)
class Pace:
    """How a motion is slowed: from one of its rows on it takes more steps to the last row.

    Rows up to ``row`` stay where they are. Then each step goes ``scale`` of a step along the path. So the new rows
    reach the last row of the motion exactly.

    Attributes:
        row: of the motion, from which on it is slower.
        steps: from there to its last row, at least 1.
        stretched: steps that these take, at least as many.
    """

    row: int
    steps: int
    stretched: int

    @property
    def scale(self) -> float:
        """Factor of the speed, above 0 and up to 1."""
        return self.steps / self.stretched

    @classmethod
    def between(cls, asked: int, slowed: int, scale: float) -> Self | None:
        """Return the pace that made ``slowed`` rows of ``asked`` ones, at a scale; None: no pace did."""
        if not 0.0 < scale < 1.0:
            return None
        row = round(((asked - 1) / scale - (slowed - 1)) / (1.0 / scale - 1.0))
        found = cls(row, asked - 1 - row, slowed - 1 - row)
        return found if row >= 0 < found.steps and abs(found.scale - scale) < 1e-9 else None

    def after(self, rows: int) -> "Pace":
        """Return the same pace of a motion with so many rows before this one's first."""
        return Pace(self.row + rows, self.steps, self.stretched)

    def slowed(self, rows: Array, task: Task, count: int) -> Array:
        """Return the first ``count`` rows of a motion ``(n, D)`` at this pace, ``(count, D)``; the last row holds on.

        Args:
            rows: actions as the task says, at least ``row + steps + 1``.
            task: their columns.
            count: rows to return.
        """
        since = np.clip(np.arange(count) - self.row, 0, self.stretched) * self.steps
        before = np.minimum(np.arange(count), self.row) + since // self.stretched
        return rows_between(rows, task, before, since % self.stretched / self.stretched)


def rows_between(rows: Array, task: Task, before: NDArray[np.integer], share: Array) -> Array:
    """Return rows ``(m, D)`` on the path through the rows ``(n, D)`` of a motion, as a servo follows it.

    Positions and joints lie on the straight line between two rows, rotations turn about one axis, and the gripper has
    the width of the row before. A share of 0 returns that row as it is.

    Args:
        rows: actions as the task says.
        task: their columns.
        before: ``(m,)`` number of the row before each.
        share: ``(m,)`` how far each is on the way to the row after it, 0 to 1.
    """
    start, end, part = rows[before], rows[np.minimum(before + 1, len(rows) - 1)], share[:, np.newaxis]
    found: Array = start + part * (end - start)
    for feature, columns in task.action_columns:
        if feature.kind == "gripper":
            found[:, columns] = start[:, columns]
        elif feature.kind == "rotation_6d":
            first = matrix_from_6d(start[:, columns])
            turn = vector_from_matrix(matrix_from_6d(end[:, columns]) @ np.swapaxes(first, -1, -2))
            between = matrix_to_6d(matrix_from_vector(part * turn) @ first)
            found[:, columns] = np.where(part == 0.0, start[:, columns], between)
    return found
