"""Statistics of a LeRobotDataset, from which its policies take their normalisation."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

QUANTILES: Final = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}
LEVELS: Final = np.arange(256) / 255.0

Stats = dict[str, list[Any]]


def vector_stats(values: NDArray[Any]) -> Stats:
    """Return min, max, mean, std, count and quantiles of ``(T,)`` or ``(T, n)``, each with n values."""
    table = values.reshape(len(values), -1).astype(np.float64)
    found = {
        "min": table.min(axis=0),
        "max": table.max(axis=0),
        "mean": table.mean(axis=0),
        "std": table.std(axis=0),
        "count": np.array([len(table)]),
    }
    quantiles = np.quantile(table, list(QUANTILES.values()), axis=0)
    return {name: each.tolist() for name, each in (found | dict(zip(QUANTILES, quantiles, strict=True))).items()}


def image_stats(images: NDArray[np.uint8]) -> Stats:
    """Return the same of ``(T, height, width, 3)`` for each colour, of values from 0 to 1, in the shape (3, 1, 1)."""
    counts = np.stack([np.bincount(images[..., colour].reshape(-1), minlength=256) for colour in range(3)])
    total = counts.sum(axis=1)
    mean = counts @ LEVELS / total
    present = counts > 0
    found = {
        "min": LEVELS[present.argmax(axis=1)],
        "max": LEVELS[255 - present[:, ::-1].argmax(axis=1)],
        "mean": mean,
        "std": np.sqrt(np.maximum(counts @ LEVELS**2 / total - mean**2, 0)),
    }
    share = np.cumsum(counts, axis=1) / total[:, None]
    for name, wanted in QUANTILES.items():
        found[name] = LEVELS[(share >= wanted).argmax(axis=1)]
    shaped = {name: each.reshape(3, 1, 1).tolist() for name, each in found.items()}
    return {**{name: shaped[name] for name in ("min", "max", "mean", "std")}, "count": [len(images)], **shaped}


def joined(parts: Sequence[Mapping[str, Any]]) -> Stats:
    """Return the statistics of several episodes together; quantiles are their mean, as in LeRobot."""
    counts = np.array([part["count"][0] for part in parts], dtype=np.float64)
    share = counts / counts.sum()
    stacked = {name: np.array([part[name] for part in parts], dtype=np.float64) for name in parts[0]}

    def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = np.tensordot(share, values, axes=1)
        return found

    centre = mean(stacked["mean"])
    found = {
        "min": stacked["min"].min(axis=0),
        "max": stacked["max"].max(axis=0),
        "mean": centre,
        "std": np.sqrt(mean(stacked["std"] ** 2 + (stacked["mean"] - centre) ** 2)),
        "count": np.array([int(counts.sum())]),
        **{name: mean(stacked[name]) for name in parts[0] if name in QUANTILES},
    }
    return {name: each.tolist() for name, each in found.items()}
