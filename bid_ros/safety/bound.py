"""One limit held against many motions at once: which of them keep it, and what is said of one that does not."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.rotation import Array
from bid_ros.safety.verdict import Verdict, refused


@dataclass(frozen=True, eq=False)
class Bound:
    """A limit, and how N motions keep it.

    Attributes:
        kept: ``(N,)`` whether each motion keeps the limit; NaN keeps none.
        refusal: returns the verdict on one motion, by its number, that does not keep it.
    """

    kept: NDArray[np.bool_]
    refusal: Callable[[int], Verdict]


def at_most(rule: str, what: str, measured: Array, limit: float, unit: str) -> Bound:
    """Return the bound of the largest value ``(N,)`` of each motion. The arguments are those of :func:`over`."""
    return Bound(measured <= limit, lambda number: over(rule, what, float(measured[number]), limit, unit))


def over(rule: str, what: str, measured: float, limit: float, unit: str) -> Verdict:
    """Return the refusal of a value above its limit, which says ``what`` was measured, in ``unit``."""
    suffix = f" {unit}" if unit else ""
    reason = f"{what} is {measured:.3f}{suffix}; the limit is {limit:.3f}{suffix}"
    return refused(rule, reason, measured, limit)


def all_kept(count: int, bounds: Iterable[Bound]) -> NDArray[np.bool_]:
    """Return which of so many motions keep every bound, ``(N,)``."""
    kept = np.ones(count, dtype=bool)
    for bound in bounds:
        kept &= bound.kept
    return kept
