"""Percentiles of what was measured."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

_DIGITS: Final = 3


def percentiles(values: ArrayLike) -> dict[str, float | None]:
    """Return ``p50``, ``p99`` and ``max`` of the finite values, rounded to 0.001; None without any."""
    array = np.asarray(values, dtype=np.float64)
    array = array[np.isfinite(array)]
    found = np.percentile(array, (50, 99, 100)).tolist() if array.size else [None] * 3
    rounded = (None if value is None else round(value, _DIGITS) for value in found)
    return dict(zip(("p50", "p99", "max"), rounded, strict=True))
