"""The one-dimensional experiment on action horizons: Liu et al., "Bidirectional Decoding", ICLR 2025, section 5.1.

What it shows, how it is read and what was measured: ``docs/results/diagnostic.md``.
"""

from bid_ros.bench.diagnostic.estimators import COUNTS, DISTANCES
from bid_ros.bench.diagnostic.experiment import HORIZONS, NOISES, Cell, Result, run
from bid_ros.bench.diagnostic.plots import draw_histograms
from bid_ros.bench.diagnostic.reading import READINGS, Reading
from bid_ros.bench.diagnostic.table import PUBLISHED, markdown, mean_difference, numbers

__all__ = [
    "COUNTS",
    "DISTANCES",
    "HORIZONS",
    "NOISES",
    "PUBLISHED",
    "READINGS",
    "Cell",
    "Reading",
    "Result",
    "draw_histograms",
    "markdown",
    "mean_difference",
    "numbers",
    "run",
]
