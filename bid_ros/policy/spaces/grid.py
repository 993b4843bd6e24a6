"""The time grid of a network: what it observes, and the rows that it predicts, beside those of the task."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import BundleError
from bid_ros.core.rotation import Array, matrix_from_6d, matrix_from_vector, matrix_to_6d, vector_from_matrix
from bid_ros.core.task import Task
from bid_ros.policy.spaces.config import Space

NEAR: Final = 1e-6  # rows: two instants this close are one; a rate is not always a whole number of nanoseconds


class Grid(NamedTuple):
    """When a network observes and acts.

    Attributes:
        steps: number of observed steps, the newest one included.
        horizon: number of predicted rows.
        past_rows: how many of them lie before the newest observation. Row ``past_rows`` belongs to it.
        dt_ns: time between two steps or rows, ns.
    """

    steps: int
    horizon: int
    past_rows: int
    dt_ns: int


def grid_of(space: Space, task: Task) -> Grid:
    """Return the grid of a network.

    Raises:
        BundleError: no row is left for the present.
    """
    steps = space.observation_steps or task.observation_steps
    horizon = space.horizon or task.horizon
    past = steps - 1 if space.past_rows is None else space.past_rows
    if past >= horizon:
        raise BundleError(f"space: past_rows is {past}; valid is less than the {horizon} rows of horizon")
    dt_ns = task.dt_ns if space.rate_hz is None else round(NANOSECONDS / space.rate_hz)
    return Grid(steps, horizon, past, dt_ns)


class RowMapping:
    """Carries chunks from the rows of a network to those of the task, by time.

    A task's row between two of the network's is interpolated: numbers on a line, rotations about one axis (Shoemake,
    "Animating Rotation with Quaternion Curves", SIGGRAPH 1985). Past rows before the network's first repeat that one:
    nobody executes them.

    Args:
        grid: of the network.
        task: whose rows are wanted.
        rotations: columns of each rotation.
        switched: columns that have no value between two rows. They keep that of the row before.

    Attributes:
        starts: whether each row of the network is one of the task's, so that a task's chunk is one of the network's.
        guides: the same of those rows of the network alone that lie within the time of the task's rows.
        at: ``(H,)``, where each of the task's rows lies among the network's; below 0: before the first of them.

    Raises:
        BundleError: the network's rows end before the task's.
    """

    def __init__(self, grid: Grid, task: Task, rotations: Sequence[slice] = (), switched: Sequence[slice] = ()) -> None:
        first = task.observation_steps - 1
        wanted = grid.past_rows + (np.arange(task.horizon) - first) * (task.dt_ns / grid.dt_ns)
        if wanted[-1] > grid.horizon - 1 + NEAR:
            reach = (grid.horizon - 1 - grid.past_rows) * grid.dt_ns / NANOSECONDS
            needed = (task.horizon - 1 - first) / task.rate_hz
            raise BundleError(
                f"space: the network's rows reach {reach:g} s ahead; valid is the {needed:g} s that the {task.horizon} "
                f"rows of task '{task.name}' need, or more"
            )
        self.at: Array = np.asarray(wanted, dtype=np.float64)
        self._lower, self._share = _split(np.clip(wanted, 0.0, grid.horizon - 1.0))
        self._between = np.flatnonzero(self._share)
        self._rotations, self._switched = tuple(rotations), tuple(switched)
        self._same = grid.horizon == task.horizon and np.array_equal(self._lower, np.arange(task.horizon))
        own = first + (np.arange(grid.horizon) - grid.past_rows) * (grid.dt_ns / task.dt_ns)
        self._own, share = _split(np.clip(own, 0.0, task.horizon - 1.0))
        inside = (own > -NEAR) & (own < task.horizon - 1 + NEAR)
        self._covered: NDArray[np.bool_] = inside & (share == 0.0)
        self.starts, self.guides = bool(self._covered.all()), bool(self._covered[inside].all())

    def to_task(self, chunks: Array) -> Array:
        """Return chunks ``(N, H, D)`` on the task's rows of those on the network's, task units."""
        if self._same and not self._between.size:
            return chunks
        found: Array = chunks[:, self._lower]
        if self._between.size:
            before, after = found[:, self._between], chunks[:, self._lower[self._between] + 1]
            found[:, self._between] = self._blend(before, after, self._share[self._between])
        return found

    def to_network(self, chunk: Array) -> Array:
        """Return a chunk ``(H, D)`` on the network's rows; those that the task has not are the task's nearest ones."""
        rows: Array = chunk[self._own]
        return rows

    def weights(self, weights: Array) -> Array:
        """Return weights ``(H,)`` of the task's rows for the network's: 0 for those that the task has not."""
        found: Array = np.where(self._covered, weights[self._own], 0.0)
        return found

    def _blend(self, before: Array, after: Array, share: Array) -> Array:
        """Return what lies between rows ``(N, K, D)``, at the shares ``(K,)`` of the way."""
        part = share[:, None]
        mixed: Array = before + part * (after - before)
        for columns in self._rotations:
            start, end = matrix_from_6d(before[..., columns]), matrix_from_6d(after[..., columns])
            turn = vector_from_matrix(np.swapaxes(start, -1, -2) @ end)
            mixed[..., columns] = matrix_to_6d(start @ matrix_from_vector(part * turn))
        for columns in self._switched:
            mixed[..., columns] = before[..., columns]
        return mixed


def _split(rows: Array) -> tuple[NDArray[np.intp], Array]:
    """Return the whole row at or before each, and the share of the way to the next; 0 if it is as good as a row."""
    whole = np.rint(rows)
    near = np.abs(rows - whole) < NEAR
    lower = np.where(near, whole, np.floor(rows))
    return lower.astype(np.intp), np.where(near, 0.0, rows - lower)
