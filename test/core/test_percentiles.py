"""Percentiles of what was measured."""

import numpy as np

from bid_ros.core.percentiles import percentiles


def test_percentiles():
    assert percentiles(range(1, 102)) == {"p50": 51.0, "p99": 100.0, "max": 101.0}
    assert percentiles([1.0, np.nan, np.inf]) == {"p50": 1.0, "p99": 1.0, "max": 1.0}
    assert percentiles([]) == {"p50": None, "p99": None, "max": None}
