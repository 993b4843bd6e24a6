from __future__ import annotations

from tiny_scene import tiny_task

from bid_ros.bench.cell import make_cell, varying
from bid_ros.bench.plots import _lines, latency_curve, score_bars, score_curve, trade_off
from bid_ros.bench.report import differing_episodes
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


def test_one_sample_begins_the_curve_of_every_way_to_select():
    items = summaries(*({"samples": n, "variant": v} for v in ("corrected", "paper") for n in (16, 4, 1)))
    lines = _lines(items, "samples")
    assert [[item.cell.samples for item in line] for line in lines] == [[1, 4, 16]] * 2
    assert score_curve(items, "samples", "N").startswith(PNG)
    assert latency_curve(items).startswith(PNG)


def test_a_curve_needs_two_values():
    assert score_curve(summaries({"samples": 4}), "samples", "N") is None
    assert score_curve([], "noise", "noise") is None


def test_bars_and_trade_off_are_pictures():
    items = summaries({"samples": 4}, {"samples": 8})
    assert score_bars(items).startswith(PNG) and trade_off(items).startswith(PNG)
    assert score_bars([]) is None and trade_off(items[:1]) is None


def test_episodes_that_all_decoders_have_are_ordered_by_how_much_they_differ():
    cells = [item.cell for item in summaries({"samples": 4}, {"samples": 8})]
    scores = {(1, 0): (0.5, 0.5), (1, 1): (0.2, 1.0), (2, 0): (0.9, 0.6), (2, 1): (0.1, None)}
    rows = {
        (cell.key, *pair): {"score": value}
        for pair, values in scores.items()
        for cell, value in zip(cells, values, strict=True)
        if value is not None
    }
    assert differing_episodes(cells, rows, 5) == [(1, 1), (2, 0)]
    assert differing_episodes(cells, rows, 1) == [(1, 1)]
