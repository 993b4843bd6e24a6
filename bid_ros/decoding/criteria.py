"""Distances between action chunks, and the two criteria of Bidirectional Decoding that are computed from them.

Shapes: chunks are ``(N, H, D)``, H steps of D values. A distance is between two actions, so it is over D.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.decoding.config import Metric

Array = NDArray[np.float64]

# Up to this many differences one subtraction is faster than the loops below, which save memory (measured).
_SMALL_L2: Final = 100_000
_SMALL_L1: Final = 50_000
_TILE: Final = 16_384
# Below this share of the largest squared lengths, |a|^2 + |b|^2 - 2ab loses digits: subtract there.
_CANCELLATION: Final = 1e-6


def pair_distances(first: Array, second: Array, metric: Metric) -> Array:
    """Return ``(A, B)``: distances of chunks ``first`` ``(A, H, D)`` to ``second`` ``(B, H, D)``, summed over steps."""
    if metric == "cosine":
        distances: Array = first.shape[1] - _flat(_directions(first)) @ _flat(_directions(second)).T
        return distances
    return _pair_l1(first, second) if metric == "l1" else _pair_l2(first, second)


def backward_coherence(chunks: Array, previous: Array, step_weights: Array, metric: Metric) -> Array:
    """Return B ``(N,)`` (Eq. 5): weighted distance of ``chunks`` ``(N, T, D)`` to ``previous`` ``(T, D)``.

    ``step_weights`` ``(T,)`` are ``rho^i``, or ``rho^i`` over their sum in the published code.
    """
    difference = chunks - previous
    if metric == "cosine":
        distances = 1.0 - np.einsum("ntd,td->nt", _directions(chunks), _directions(previous))
    elif metric == "l1":
        distances = np.abs(difference).sum(axis=-1)
    else:
        distances = np.sqrt(np.einsum("ntd,ntd->nt", difference, difference))
    coherence: Array = distances @ step_weights
    return coherence


def smallest_sum(distances: Array, count: int) -> Array:
    """Return ``(A,)``: sum of the ``count`` smallest values of each row of ``distances`` ``(A, B)``."""
    if count < distances.shape[1]:
        distances = np.partition(distances, count - 1, axis=1)[:, :count]
    total: Array = distances.sum(axis=1)
    return total


def smallest_sum_of_others(distances: Array, count: int) -> Array:
    """Return ``(A,)``: sum of the ``count`` values of each row that follow its smallest, the distance to itself."""
    smallest: Array = distances.min(axis=1)
    return smallest_sum(distances, count + 1) - smallest


def _directions(actions: Array) -> Array:
    """Scale actions ``(..., D)`` to length 1. A zero vector stays zero, so its cosine distance is always 1."""
    lengths = np.sqrt(np.einsum("...d,...d->...", actions, actions))[..., None]
    directions: Array = np.divide(actions, lengths, out=np.zeros_like(actions), where=lengths > 0)
    return directions


def _flat(chunks: Array) -> Array:
    return chunks.reshape(chunks.shape[0], -1)


def _pair_l1(first: Array, second: Array) -> Array:
    flat, others = _flat(first), _flat(second)
    if flat.shape[0] * others.size <= _SMALL_L1:
        distances: Array = np.abs(flat[:, None] - others).sum(axis=-1)
        return distances
    # One row at a time keeps the temporary in the cache.
    return np.stack([np.abs(others - row).sum(axis=-1) for row in flat])


def _pair_l2(first: Array, second: Array) -> Array:
    if first.shape[0] * second.size > _SMALL_L2:
        # Tiles of this size stay in the cache. They are also too small for BLAS threads, which would only cost here.
        rows = max(1, _TILE // second.shape[0])
        tiles = range(0, first.shape[0], rows)
        return np.concatenate([_pair_l2_products(first[tile : tile + rows], second) for tile in tiles])
    difference = first[:, None] - second
    distances: Array = np.sqrt(np.einsum("abhd,abhd->abh", difference, difference)).sum(axis=-1)
    return distances


def _pair_l2_products(first: Array, second: Array) -> Array:
    """L2 through ``|a|^2 + |b|^2 - 2ab`` as one product a step of ``(-2a, |a|^2, 1)`` and ``(b, 1, |b|^2)``."""
    centre = first.mean(axis=0)
    first, second = (first - centre).transpose(1, 0, 2), (second - centre).transpose(1, 0, 2)
    lengths, others = (np.einsum("had,had->ha", chunks, chunks)[..., None] for chunks in (first, second))
    left = np.concatenate([-2.0 * first, lengths, np.ones_like(lengths)], axis=-1)
    right = np.concatenate([second, np.ones_like(others), others], axis=-1).transpose(0, 2, 1)
    limits = _CANCELLATION * (lengths.max(axis=(1, 2)) + others.max(axis=(1, 2)))
    total = np.zeros((first.shape[1], second.shape[1]))
    squared = np.empty_like(total)
    for step, limit in enumerate(limits):
        np.matmul(left[step], right[step], out=squared)
        row, column = np.divmod(np.flatnonzero(squared <= limit), total.shape[1])
        difference = first[step, row] - second[step, column]
        squared[row, column] = np.einsum("kd,kd->k", difference, difference)
        total += np.sqrt(squared, out=squared)
    return total
