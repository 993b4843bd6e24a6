"""The one-dimensional experiment on action horizons: Liu et al., "Bidirectional Decoding", ICLR 2025, section 5.1.

What it shows, how it is read and what was measured: ``docs/diagnostic.md``.
"""

from bid_ros.evaluation.diagnostic.estimators import COUNTS, DISTANCES
from bid_ros.evaluation.diagnostic.experiment import HORIZONS, NOISES, Cell, Result, run
from bid_ros.evaluation.diagnostic.plots import draw_histograms
from bid_ros.evaluation.diagnostic.reading import READINGS, Reading
from bid_ros.evaluation.diagnostic.table import PUBLISHED, markdown, mean_difference, numbers

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
