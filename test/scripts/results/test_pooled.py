"""``scripts/results pooled``: scores of decoders over all cells together."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from results import pooled

from bid_ros.bench.cell import BenchCell
from bid_ros.bench.results import ROWS, encode_row

SCORES = {"vanilla": 0.2, "ema": 0.4, "bid": 0.5}


@pytest.fixture
def folder(tmp_path):
    """Two horizons, three episodes; of BID one more, which the others have not. A horizon adds a tenth."""
    lines = []
    for decoder, base in SCORES.items():
        for horizon in (1, 8):
            cell = BenchCell(decoder, horizon, variant="paper" if decoder == "bid" else None)
            for episode in range(4 if decoder == "bid" else 3):
                score = 9.0 if episode == 3 else base + 0.1 * (horizon == 8) + 0.01 * episode
                row = {"key": cell.key, "seed": 11, "episode": episode, "score": score, "cell": vars(cell)}
                lines.append(encode_row(row))
    (tmp_path / ROWS).write_text("".join(lines))
    return tmp_path


def test_an_episode_scores_its_mean_over_the_cells(folder):
    rows = list(pooled.read_rows(folder).values())
    scores = pooled.pooled(rows)
    assert set(scores) == {"vanilla", "ema", "bid, paper"}
    assert scores["ema"] == {(11, episode): pytest.approx(0.45 + 0.01 * episode) for episode in range(3)}


def test_the_table_compares_the_same_episodes(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pooled", str(folder)])
    pooled.main()
    head, line, *rows = capsys.readouterr().out.splitlines()
    assert head.count("|") == line.count("|") == 6
    assert [row.split("|")[1] for row in rows] == ["all"] * 3 + ["h 1"] * 3 + ["h 8"] * 3
    everything = dict(row.split("|")[2:4] for row in rows[:3])
    assert everything == {"bid, paper": "0.560", "ema": "0.460", "vanilla": "0.260"}  # without the fourth episode
    assert "+0.300 (+0.300 to +0.300)|+0.100 (+0.100 to +0.100)" in rows[0]
    assert rows[2].endswith("|-|-0.200 (-0.200 to -0.200)|")


def test_a_difference_has_an_interval():
    difference = pooled.difference
    assert difference(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == "+0.000 (-1.000 to +1.000)"
