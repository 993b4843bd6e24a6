"""Rows of an episode: when each is, which of them form a run, and the type of their values."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def type_name(dtype: np.dtype[Any]) -> str:
    """Return a name of a type that ``numpy.dtype`` reads: ``float32``, or ``<U8`` of a text, which has no other one."""
    return dtype.name if dtype.kind in "biufc" else dtype.str


def native(values: NDArray[Any]) -> NDArray[Any]:
    """Return values in this computer's order of bytes; those that have it already without a copy."""
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def value_names(found: object, shape: tuple[int, ...]) -> tuple[str, ...]:
    """Return the names of the values of a row, as a file has them; none unless they are a list of one for each."""
    names = tuple(map(str, found)) if isinstance(found, list) else ()
    return names if len(names) == int(np.prod(shape)) else ()


def runs_of(mask: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    """Return (first, end) of each run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return tuple((int(first), int(end)) for first, end in edges.reshape(-1, 2))


def row_stamps(rows: int, rate_hz: float | None) -> NDArray[np.int64]:
    """Return times since the start of the episode, ns; of row numbers (1 s apart) if no rate is known."""
    return np.round(np.arange(rows) * (1e9 / (rate_hz or 1.0))).astype(np.int64)
