"""Linear normalisation of observations and actions to [-1, 1], the range of a diffusion policy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.core.errors import BundleError


@dataclass(frozen=True, eq=False)
class LinearNormaliser:
    """Maps ``minimum`` to -1 and ``maximum`` to 1, value by value. Values outside the range are not clipped.

    Attributes:
        minimum, maximum: ``(S,)`` or ``(H, S)`` float64, range of the training data in its own units. The second form
            has a range for each of H rows. Positions relative to the tool need it: the next row spans centimetres, the
            last one decimetres. With one range for all, the next row, which is executed, would have the noise of the
            last.

    Raises:
        BundleError: the two have different shapes, are not finite, or a minimum is not below its maximum.
    """

    minimum: NDArray[np.float64]
    maximum: NDArray[np.float64]

    def __post_init__(self) -> None:
        low = np.array(self.minimum, dtype=np.float64)
        high = np.array(self.maximum, dtype=np.float64)
        if low.ndim not in (1, 2) or low.shape != high.shape or low.size == 0:
            raise BundleError(
                f"normalisation has shapes {low.shape} and {high.shape}; valid is (S,) or (H, S) twice, S >= 1"
            )
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise BundleError(
                f"normalisation runs from {low.tolist()} to {high.tolist()}; valid is finite and minimum < maximum"
            )
        object.__setattr__(self, "minimum", low)
        object.__setattr__(self, "maximum", high)

    def rows(self, first: int) -> "LinearNormaliser":
        """Return the normaliser of the rows from ``first`` on: this one if all rows have one range."""
        return self if self.minimum.ndim == 1 else LinearNormaliser(self.minimum[first:], self.maximum[first:])

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the range as plain lists by field name, for a file."""
        return {"minimum": self.minimum.tolist(), "maximum": self.maximum.tolist()}

    def normalise(self, values: ArrayLike) -> NDArray[np.float32]:
        """Return ``values`` ``(..., S)`` in units of the range, as the float32 the networks take."""
        centre, half = (self.maximum + self.minimum) / 2, (self.maximum - self.minimum) / 2
        return ((np.asarray(values, dtype=np.float64) - centre) / half).astype(np.float32)

    def denormalise(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return normalised ``values`` ``(..., S)`` in their own units, float64."""
        raw: NDArray[np.float64] = np.asarray(values, dtype=np.float64) * ((self.maximum - self.minimum) / 2)
        raw += (self.maximum + self.minimum) / 2
        return raw
