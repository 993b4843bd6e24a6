"""Weights of the previous decision's steps while the next decision is computed."""

import numpy as np

from bid_ros.decoding.criteria import Array


def prefix_weights(delay: int, overlap: int) -> Array:
    """Return the soft mask W ``(overlap,)`` of Real-Time Chunking, counted from the current step.

    ``W_i = 1`` for ``i < q``: these steps are executed before the new decision arrives. After them it is
    ``c_i (exp(c_i) - 1) / (exp(1) - 1)`` with ``c_i = (T - i) / (T - q + 1)``, which falls towards the end of the
    overlap ``T = H - s``. Steps after the end of the previous decision have weight 0 and are not returned.

    Source: Black, Galliker, Levine, "Real-Time Execution of Action Chunking Flow Policies", NeurIPS 2025
    (soft masking).

    Args:
        delay: q, steps of the grid between the observation and the first step that the new decision can change.
        overlap: T, steps of the previous decision that have not passed, the current one included.
    """
    weights: Array = np.ones(overlap)
    left = (overlap - np.arange(delay, overlap)) / (overlap - delay + 1)
    weights[delay:] = left * np.expm1(left) / np.expm1(1.0)
    return weights
