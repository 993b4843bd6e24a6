"""One limit, checked on many motions at once: which motions keep it, and the refusal of one that does not."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.rotation import Array
from bid_ros.safety.verdict import NO_ROW, Verdict, refused


@dataclass(frozen=True, eq=False)
class Bound:
    """A limit, and how N motions keep it.

    Attributes:
        kept: ``(N,)`` whether each motion keeps the limit; NaN keeps none.
        refusal: returns the verdict on one motion, by its number, that does not keep it.
    """

    kept: NDArray[np.bool_]
    refusal: Callable[[int], Verdict]


def at_most(rule: str, what: str, measured: Array, limit: float, unit: str, first: int) -> Bound:
    """Return the bound of values ``(N, n)`` of each motion, whose rows begin with row ``first`` of a chunk.

    The other arguments are those of :func:`over`. A motion of no value keeps the bound.
    """
    most = measured.max(axis=1, initial=0.0)

    def refusal(number: int) -> Verdict:
        return over(rule, what, float(most[number]), limit, unit, first + int(measured[number].argmax()))

    return Bound(most <= limit, refusal)


def over(rule: str, what: str, measured: float, limit: float, unit: str, row: int = NO_ROW) -> Verdict:
    """Return the refusal of a value above its limit, which says ``what`` was measured, in ``unit``, from which row."""
    suffix = f" {unit}" if unit else ""
    where = "" if row == NO_ROW else f" from action {row} on"
    reason = f"{what} is {measured:.3f}{suffix}{where}; the limit is {limit:.3f}{suffix}"
    return refused(rule, reason, measured, limit, row)


def limited(rule: str, what: str, measured: float, limit: float, unit: str) -> Iterator[Verdict]:
    """Yield the refusal of one value, as :func:`over`, unless it is at most its limit. NaN is not."""
    if not measured <= limit:
        yield over(rule, what, measured, limit, unit)


def all_kept(count: int, bounds: Iterable[Bound]) -> NDArray[np.bool_]:
    """Return which of so many motions keep every bound, ``(N,)``."""
    kept = np.ones(count, dtype=bool)
    for bound in bounds:
        kept &= bound.kept
    return kept
