"""Numbers over time: the nearest, the one that holds, or what lies between two."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation, Slerp

from bid_ros.core.feature import FeatureKind
from bid_ros.core.rotation import matrix_from_6d, matrix_to_6d

Stamps = NDArray[np.int64]
Values = NDArray[np.float64]
Known = NDArray[np.bool_]
BRIDGE_NS: Final = 250_000_000  # between two commands; beyond it the first one stands until the second comes
NEAR_NS: Final = 80_000_000  # from a row to what was observed, as live


@dataclass(frozen=True, eq=False)
class SampleSeries:
    """Samples in the order of time.

    Attributes:
        stamps: ``(n,)`` ns, increasing.
        values: ``(n, d)``.
        linked: ``(n - 1,)``: between two samples the value goes from one to the other.
    """

    stamps: Stamps
    values: Values
    linked: Known

    @classmethod
    def of(cls, stamps: list[int], values: list[Values], linked: list[bool] | None = None) -> "SampleSeries":
        """Return the series of samples; one that is not newer than the one before it is left out.

        Args:
            stamps: n times, ns.
            values: n samples.
            linked: for each sample, whether a motion leads to it from the one before. None: if it is near.
        """
        if not stamps:
            return cls(np.zeros(0, dtype=np.int64), np.zeros((0, 1)), np.zeros(0, dtype=np.bool_))
        times = np.array(stamps, dtype=np.int64)
        kept = np.ones(len(times), dtype=np.bool_)
        kept[1:] = times[1:] > np.maximum.accumulate(times)[:-1]
        times, table = times[kept], np.array(values, dtype=np.float64).reshape(len(kept), -1)[kept]
        near = np.diff(times) <= BRIDGE_NS
        return cls(times, table, near if linked is None else near | np.array(linked, dtype=np.bool_)[kept][1:])

    def __len__(self) -> int:
        return len(self.stamps)

    def nearest(self, stamps: Stamps) -> tuple[Values, Known]:
        """Return the samples ``(T, d)`` nearest to some times ``(T,)``, and whether each is near enough."""
        if not len(self):
            return np.zeros((len(stamps), self.values.shape[1])), np.zeros(len(stamps), dtype=np.bool_)
        right = np.minimum(np.maximum(np.searchsorted(self.stamps, stamps), 1), len(self) - 1)
        left = np.maximum(right - 1, 0)
        at = np.where(stamps - self.stamps[left] <= self.stamps[right] - stamps, left, right)
        return self.values[at], np.abs(self.stamps[at] - stamps) <= NEAR_NS

    def held(self, stamps: Stamps) -> tuple[Values, Known]:
        """Return the newest sample ``(T, d)`` at some times ``(T,)``, and whether there was one."""
        if not len(self):
            return np.zeros((len(stamps), self.values.shape[1])), np.zeros(len(stamps), dtype=np.bool_)
        at = np.searchsorted(self.stamps, stamps, side="right") - 1
        return self.values[np.maximum(at, 0)], at >= 0

    def between(self, stamps: Stamps, kind: FeatureKind) -> tuple[Values, Known]:
        """Return the value ``(T, d)`` at some times ``(T,)``: on the way from a sample to the next, or held.

        Rotations go along the shortest turn.
        """
        values, known = self.held(stamps)
        at = np.searchsorted(self.stamps, stamps, side="right") - 1
        moving = known & (at < len(self) - 1)
        moving[moving] = self.linked[at[moving]]
        if moving.any():
            # Times relative to the first keep nanoseconds exact in float64.
            seconds, wanted = (self.stamps - self.stamps[0]) * 1e-9, (stamps[moving] - self.stamps[0]) * 1e-9
            values[moving] = _between(seconds, self.values, wanted, kind)
        return values, known


def _between(seconds: Values, values: Values, wanted: Values, kind: FeatureKind) -> Values:
    if kind == "rotation_6d":
        return matrix_to_6d(Slerp(seconds, Rotation.from_matrix(matrix_from_6d(values)))(wanted).as_matrix())
    columns = [np.interp(wanted, seconds, values[:, column]) for column in range(values.shape[1])]
    return np.stack(columns, axis=-1)
