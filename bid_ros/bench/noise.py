"""Temporally correlated action noise, as the published code of Bidirectional Decoding adds it."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
_KEPT = 0.9  # share of the last decision's noise in the next one's


class ActionNoise:
    """Disturbs executed actions in proportion to how fast the prediction moves.

    ``u = (U[0, 1) + 0.5) * (+-1)`` per action value, ``step = u * diff(prediction) * strength``; the first decision's
    noise is ``step``, a later one's ``0.9`` of the last plus ``0.1 step``, row by row without shifting. What is added
    to the i-th executed action is the sum of rows 0 to i.

    Args:
        strength: z; 0 adds nothing.
        rng: drawn from once per decision, ``random`` before ``choice``.
    """

    def __init__(self, strength: float, rng: np.random.Generator) -> None:
        self._strength, self._rng = strength, rng
        self._rows: Array | None = None

    def offsets(self, prediction: ArrayLike) -> Array:
        """Return the disturbance of a decision ``(H, D)``: ``(H - 1, D)``, row i for its i-th executed action."""
        values = np.asarray(prediction, dtype=np.float64)
        if self._strength == 0:
            return np.zeros((values.shape[0] - 1, values.shape[1]))
        size = (1, values.shape[1])
        factor = (self._rng.random(size) + 0.5) * self._rng.choice([-1, 1], size)
        rows = factor * np.diff(values, axis=0) * self._strength
        self._rows = rows if self._rows is None else _KEPT * self._rows + (1 - _KEPT) * rows
        summed: Array = np.cumsum(self._rows, axis=0)
        return summed
