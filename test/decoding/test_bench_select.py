"""A loose guard against `select` becoming slow; `bench_select.py` is the measurement."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from bid_ros.decoding import BidConfig, select

SPEC = importlib.util.spec_from_file_location("bench_select", Path(__file__).with_name("bench_select.py"))
bench = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(bench)


def test_selection_is_far_from_the_decision_budget():
    strong, weak, previous = bench.case(16)
    # The bar is 150 us on an idle machine; the best of a few medians keeps other load out.
    best = min(bench.median_us(lambda: select(strong, weak, previous, bench.CONFIG), 100) for _ in range(5))
    assert best < 450


def test_the_benchmark_compares_equal_work():
    torch_cases = bench.torch_cases(64)
    if not torch_cases:
        pytest.skip("torch is not installed")
    config = BidConfig(variant="reference_v2", observation_steps=2)
    wanted = select(*bench.case(64), config).index
    assert {name: function() for name, function in torch_cases.items()} == dict.fromkeys(torch_cases, wanted)
    one_by_one, at_once = (function() for function in bench.batch_cases(64).values())
    assert one_by_one == at_once
