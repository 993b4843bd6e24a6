"""Percentiles of what was measured: of values that are kept, or only counted."""

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESOLUTION: Final = 0.005
"""How far a counted value may be off, as a share of it."""
FINEST: Final = 0.1
"""Values far below this may be off by ``RESOLUTION * FINEST``, whatever they are."""
LARGEST: Final = 1e13
"""Values beyond it are counted as it. Of a stamp against a clock, in ms, it is more than there is."""

_DIGITS: Final = 3
_SHARES: Final = {"p50": 0.5, "p99": 0.99, "max": 1.0}
_BINS: Final = math.ceil(math.asinh(LARGEST / FINEST) / (2 * RESOLUTION))  # on each side of zero


def percentiles(values: ArrayLike) -> dict[str, float | None]:
    """Return ``p50``, ``p99`` and ``max`` of the finite values, rounded to 0.001; None without any."""
    array = np.asarray(values, dtype=np.float64)
    array = array[np.isfinite(array)]
    found = np.quantile(array, tuple(_SHARES.values())).tolist() if array.size else [None] * len(_SHARES)
    return dict(zip(_SHARES, map(_rounded, found), strict=True))


class CountedValues:
    """Counts values in bins, so that they need the same memory however many there are.

    A bin is ``2 * RESOLUTION`` of its value wide; near zero it is ``2 * RESOLUTION * FINEST``. Values of either sign
    are counted; those that are not finite are not.

    Attributes:
        count: number of counted values.
    """

    def __init__(self) -> None:
        self._bins = np.zeros(2 * _BINS + 1, dtype=np.int64)
        self.count, self._largest = 0, -math.inf

    def add(self, value: float) -> None:
        """Count a value."""
        if not math.isfinite(value):
            return
        within = max(-LARGEST, min(LARGEST, value))
        self._bins[round(math.asinh(within / FINEST) / (2 * RESOLUTION)) + _BINS] += 1
        self.count += 1
        self._largest = max(self._largest, value)

    def percentiles(self) -> dict[str, float | None]:
        """Return what :func:`percentiles` says of the same values. Of the largest it knows the value itself."""
        if not self.count:
            return dict.fromkeys(_SHARES)
        # As NumPy: between the two values of the nearest ranks.
        ranks = (self.count - 1) * np.array(list(_SHARES.values()))
        below, part = np.floor(ranks), ranks - np.floor(ranks)
        low, high = self._ranked(below), self._ranked(np.ceil(ranks))
        found = np.minimum(low + part * (high - low), self._largest).tolist()
        return dict(zip(_SHARES, map(_rounded, [*found[:-1], self._largest]), strict=True))

    def _ranked(self, ranks: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of ranks, counted from 0, as far as their bins tell."""
        places = np.searchsorted(np.cumsum(self._bins), ranks, side="right") - _BINS
        values: NDArray[np.float64] = FINEST * np.sinh(2 * RESOLUTION * places)
        return values


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
