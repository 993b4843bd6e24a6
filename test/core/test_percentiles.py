"""Percentiles of what was measured."""

import math
import time
import tracemalloc

import numpy as np
import pytest

from bid_ros.core.percentiles import FINEST, LARGEST, RESOLUTION, CountedValues, percentiles

ROUNDED = 0.0006  # both sides are rounded to 0.001


def test_percentiles():
    assert percentiles(range(1, 102)) == {"p50": 51.0, "p99": 100.0, "max": 101.0}
    assert percentiles([1.0, np.nan, np.inf]) == {"p50": 1.0, "p99": 1.0, "max": 1.0}
    assert percentiles([]) == {"p50": None, "p99": None, "max": None}


def counted(values):
    counts = CountedValues()
    for value in values:
        counts.add(float(value))
    return counts


def assert_alike(values):
    exact, found = percentiles(values), counted(values).percentiles()
    for name, value in exact.items():
        off = 1.01 * RESOLUTION * math.hypot(value, FINEST) + ROUNDED
        assert found[name] == pytest.approx(value, abs=off), name
    assert found["max"] == exact["max"], "the largest is known itself"


@pytest.mark.parametrize("count", [1, 2, 3, 10, 101, 5000])
@pytest.mark.parametrize("scale", [0.001, 0.1, 20.0, 1e6])
def test_counted_values_are_exact_within_the_resolution(count, scale):
    random = np.random.default_rng(count)
    assert_alike(scale * random.lognormal(0.0, 1.5, count))
    assert_alike(scale * random.normal(0.0, 1.0, count))


def test_counted_values_of_any_size_and_sign():
    assert_alike([-3.0, -2.0, -0.5])
    assert_alike([0.0, 0.0])
    assert_alike([1.0, 1e9])
    assert CountedValues().percentiles() == {"p50": None, "p99": None, "max": None}
    assert counted([math.nan, math.inf, 4.0]).count == 1
    huge = counted([1e300, 1e300]).percentiles()
    assert huge["p50"] == pytest.approx(LARGEST, rel=0.01) and huge["max"] == 1e300


def test_a_million_counted_values_take_no_memory_and_are_said_at_once():
    values = np.random.default_rng(0).lognormal(3.0, 1.0, 1_000_000).tolist()
    counts = counted(values[:1000])
    tracemalloc.start()
    for value in values[1000:2000]:
        counts.add(value)
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    for value in values[2000:]:
        counts.add(value)
    assert grown < 1000, f"1000 values took {grown} bytes"
    took = []
    for _ in range(20):
        begin = time.perf_counter()
        found = counts.percentiles()
        took.append(time.perf_counter() - begin)
    assert min(took) < 0.002, "the safety node asks twice a second, between two chunks"
    assert found["p99"] == pytest.approx(percentiles(values)["p99"], rel=RESOLUTION)
