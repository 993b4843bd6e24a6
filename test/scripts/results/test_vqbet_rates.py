"""Rates of VQ-BeT beside the paper's."""

from __future__ import annotations

from results.vqbet_rates import _kind, published_vqbet, rate_bars
from tiny_scene import tiny_task

from bid_ros.bench.cell import make_cell, varying
from bid_ros.bench.summary import CellSummary

TASK = tiny_task()
PNG = b"\x89PNG"


def summaries(*settings):
    cells = [make_cell(TASK, **{"decoder": "bid", "horizon": 1, "weak": True, **values}) for values in settings]
    cells = list(dict.fromkeys(cells))  # as a grid does
    shown = varying(cells)
    return [
        CellSummary(
            cell=cell,
            label=cell.label(shown),
            episodes=10,
            score=(0.8, 0.7, 0.9),
            full=5,
            rate=(0.5, 0.2, 0.8),
            against=None,
            overlap_px=1.0,
            switches_per_s=2.0,
            jerk=3.0,
            reaction_s=None,
            reacted=None,
            batch_ms=1.0,
            latency_ms=2.0,
            world_ms=1.0,
            published="",
        )
        for cell in cells
    ]


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
