"""Which columns of a network's vector each part has."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import BundleError
from bid_ros.policy.spaces.config import Part

Columns = NDArray[np.intp]


def place_columns(parts: Sequence[Part], sizes: Sequence[int], where: str) -> list[Columns]:
    """Return the columns of each part: together each of the vector's columns once.

    Args:
        parts: of the vector.
        sizes: number of columns of each.
        where: begins the sentence of an error.

    Raises:
        BundleError: a part has another number of columns than its form, or they overlap or leave a gap.
    """
    placed, end = [], 0
    for part, size in zip(parts, sizes, strict=True):
        columns = np.array(part.at or range(end, end + size), dtype=np.intp)
        if columns.size != size:
            raise BundleError(
                f"{where}: '{part.feature or 'constant'}' is at {columns.size} columns, {list(part.at)}; "
                f"valid are {size}"
            )
        placed.append(columns)
        end = int(columns.max()) + 1
    every = np.concatenate(placed)
    if not np.array_equal(np.sort(every), np.arange(every.size)):
        found = ", ".join(map(str, every.tolist()))
        raise BundleError(f"{where}: the parts have the columns {found}; valid is each from 0 to {every.size - 1} once")
    return placed
