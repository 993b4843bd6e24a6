"""The classical method of Runge and Kutta, which follows a flow with four network calls a step.

Source: Hairer, Nørsett, Wanner, "Solving Ordinary Differential Equations I", 2nd edition 1993, Section II.1, Table 1.2.
"""

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]
CALLS: Final = 4  # a step


def follow(
    velocity: Callable[[Samples, NDArray[np.int64]], Samples],
    sample: Samples,
    begins: Iterable[int],
    stride: int,
    times: int,
) -> Samples:
    """Return chunks ``(N, H, D)`` at the end of the steps.

    Args:
        velocity: of chunks at a training time step.
        sample: ``(N, H, D)`` at the first step; not modified. An array of PyTorch does as well.
        begins: training time steps at which steps begin.
        stride: training time steps of a step, an even number.
        times: training time steps of the time 1.
    """
    share = stride / times
    for first in begins:
        begin, middle, end = (np.array([first + part], dtype=np.int64) for part in (0, stride // 2, stride))
        one = velocity(sample, begin)
        two = velocity(sample + share / 2 * one, middle)
        three = velocity(sample + share / 2 * two, middle)
        four = velocity(sample + share * three, end)
        sample = sample + share / 6 * (one + 2 * two + 2 * three + four)
    return sample
