"""What decoders take: arrays of NumPy, and tensors of torch, which need not be installed."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def as_array(values: ArrayLike) -> NDArray[np.float64]:
    """Return values as an array of float64; it shares their memory where it can.

    Args:
        values: an array, a tensor of torch of any device and precision, also one with a gradient, or a list of them.
    """
    given: Any = values
    if isinstance(given, list | tuple) and given and hasattr(given[0], "detach"):
        given = [as_array(item) for item in given]
    elif hasattr(given, "detach"):
        given = given.detach().cpu().double().numpy()  # first to the CPU: not every device has float64
    array: NDArray[np.float64] = np.asarray(given, dtype=np.float64)
    return array
