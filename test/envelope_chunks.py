"""Chunks at rest and in motion, for the tests of the envelope."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.core.rotation import matrix_to_6d

Array = NDArray[np.float64]
Change = Callable[[Array], None]
"""Changes the actions ``(ROWS, 10)`` of a chunk in place."""

NOW = 1_000_000_000_000
DOWN = np.diag([1.0, -1.0, -1.0])
TOOL = np.array([0.5, 0.0, 0.3])
ROWS = 16


def column(index: int, values: ArrayLike) -> Change:
    """Set one column."""

    def change(actions: Array) -> None:
        actions[:, index] = values

    return change


def rotations(matrices: Sequence[Array]) -> Change:
    """Set the rotation of every row."""

    def change(actions: Array) -> None:
        actions[:, 3:9] = matrix_to_6d(np.stack(matrices))

    return change


def ramp(speed: float, dt: float = 0.1) -> Array:
    """Positions x ``(ROWS,)`` at a constant speed, around that of the tool."""
    return TOOL[0] + speed * dt * np.arange(ROWS) - 0.5 * speed * dt * (ROWS - 1)
