"""Rates of VQ-BeT beside the paper's."""

from __future__ import annotations

from bench.test_plots import summaries
from results.vqbet_rates import _kind, published_vqbet, rate_bars

PNG = b"\x89PNG"


def test_rates_of_every_kind_of_decoder_are_drawn_beside_what_was_published():
    cells = summaries(
        {"decoder": "vanilla"}, {"variant": "paper"}, {"variant": "corrected"}, {"horizon": 5, "variant": "corrected"}
    )
    assert [_kind(item.cell) for item in cells] == ["vanilla", "bid, paper", "bid, corrected", "bid, corrected"]
    assert [published_vqbet(item.cell) for item in cells] == [48.9, 54.4, 54.4, 66.1]
    image = rate_bars(cells, published_vqbet)
    assert image is not None
    assert image.startswith(PNG)
    assert rate_bars([], published_vqbet) is None


def test_what_the_paper_did_not_report_is_none():
    kinds = (
        {"samples": 8},
        {"samples": 1},
        {"noise": 2.0},
        {"drift": 1.0},
        {"decoder": "keystone"},
        {"terms": "contrast"},
    )
    found = summaries(*kinds)
    assert [published_vqbet(item.cell, by_samples=True) for item in found[:2]] == [52.9, 49.1]
    assert [published_vqbet(item.cell) for item in found[2:]] == [None] * 4
