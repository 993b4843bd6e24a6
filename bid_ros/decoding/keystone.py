"""KeyStone: execute the medoid of the larger cluster of samples. It has no memory and needs no weak policy.

Source: Dai et al., "Geometry Guided Self-Consistency for Physical AI", arXiv 2605.08638, 2026, Listing 2.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import DecodingError
from bid_ros.core.extras import extra
from bid_ros.decoding.decoder_config import DecoderConfig
from bid_ros.decoding.receding import Array, Builder, RecedingDecoder

UNIMODAL: Final = 0.3  # tau: the mean of the samples is that close to their medoid, in median distances of two samples
ITERATIONS: Final = 10


def keystone(samples: Array, config: DecoderConfig) -> int:
    """Return the medoid of the larger of two clusters of ``samples`` ``(N, H, D)``; of all, if they are one cluster.

    The medoid has the smallest sum of distances to the others. A distance is Euclidean over all values of a chunk,
    weighted by the settings' ``weights``. Clusters are those of k-means, which starts from the first
    sample and the next one that differs from it.
    """
    from scipy.cluster.vq import kmeans2
    from scipy.spatial.distance import pdist, squareform

    weighted = samples if config.weights is None else samples * np.array(config.weights)
    points = weighted.reshape(len(samples), -1)
    pairs = pdist(points)
    distances, everywhere = squareform(pairs), np.arange(len(points))
    centre = _medoid(distances, everywhere)
    others = np.flatnonzero(distances[0])  # a policy of codes draws the same chunk again and again
    if not len(others) or np.linalg.norm(points.mean(axis=0) - points[centre]) <= UNIMODAL * np.median(pairs):
        return centre
    _, owner = kmeans2(points, points[[0, others[0]]], iter=ITERATIONS)
    return _medoid(distances, np.flatnonzero(owner == np.bincount(owner).argmax()))


def _medoid(distances: Array, members: NDArray[np.intp]) -> int:
    return int(members[distances[np.ix_(members, members)].sum(axis=1).argmin()])


def _build(name: str, config: DecoderConfig) -> RecedingDecoder:
    """Import SciPy now: it takes half a second, which no decision has, and a list of decoders does not need it."""
    with extra("run", f"decoder '{name}'", DecodingError):
        import_module("scipy.cluster.vq")
        import_module("scipy.spatial.distance")
    return RecedingDecoder(name, config, judge=keystone)


DECODERS: Final[Mapping[str, Builder]] = {"keystone": _build}
