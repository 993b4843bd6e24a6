"""What a recommendation costs, on scores that can be worked out by hand."""

import json
import subprocess
import sys
from dataclasses import asdict

import numpy as np
import pytest
from results.recommendation import _at, bench, choices_table, lower_regret, pairs_table, picked, regret, rehearsals
from results.recommendation import pair as pair_of

from bid_ros.bench.cell import BenchCell
from bid_ros.bench.results import encode_row
from bid_ros.core.errors import BidError

LEVELS = {"bid 1": 0.7, "bid 8": 0.5, "ema 1": 0.4, "ema 8": 0.6, "vanilla 1": 0.3, "vanilla 8": 0.2}


def pair(scene="still", modes=1.0, scores=None, held=False):
    """Return a pair with the same score in all of ten episodes."""
    scores = scores or {name: [level] * 10 for name, level in LEVELS.items()}
    found = {"name": "task", "scene": scene, "modes": modes, "disagreement": 0.1, "refused": {}, "rows": 15}
    found["jitter"] = 2.0
    return {**found, "dt_s": 0.1, "samples": 16, "scores": scores, "held": held}


def test_regret_is_the_distance_to_the_best_one():
    item = pair()
    assert picked(item) == "ema 8"
    assert regret(item["scores"], "ema 8") == pytest.approx(0.1)
    assert lower_regret(item["scores"], "ema 8") == pytest.approx(0.1), "without chance both say the same"
    assert picked(pair(scene="moving")) == "bid 1"


def test_luck_is_no_regret():
    """Of choices that are all alike, the best mean is above the others by chance alone."""
    rng, plain, fair = np.random.default_rng(3), [], []
    for _ in range(60):
        alike = {name: (rng.random(30) < 0.5).astype(float).tolist() for name in LEVELS}
        plain.append(regret(alike, "bid 1"))
        fair.append(lower_regret(alike, "bid 1", halves=40))
    assert np.mean(plain) > 0.08
    assert abs(np.mean(fair)) < 0.03


def test_the_tables_name_choice_and_best():
    items = [pair(), pair(scene="moving", held=True)]
    rows = pairs_table(items).splitlines()
    assert "**.600**" in rows[2] and "_.700_" in rows[2] and rows[2].endswith("| 0.100 | +0.100 |")
    assert rows[3].startswith("| task (held)") and "**.700**" in rows[3]
    lines = choices_table(items).splitlines()
    assert lines[2] == "| **the recommendation** | 0.100 (+0.100) | 0.000 (+0.000) | 0.050 (+0.050) | 0.000 (+0.000) |"
    assert lines[3].startswith("| always vanilla, one | 0.400") and lines[-1].startswith("| always bid, half | 0.200")
    assert [_at(index, items[0]) for index in (0, 5)] == ["vanilla 1", "bid 8"]


def benched(folder, name, **settings):
    """Write the line of an episode of seed 1 that scores .5."""
    decoder, horizon = name.split()
    cell = BenchCell(decoder, int(horizon), **settings)
    row = {"key": cell.key, "cell": asdict(cell), "seed": 1, "episode": 0, "score": 0.5}
    with (folder / "episodes.jsonl").open("a") as stream:
        stream.write(encode_row(row))


def test_cells_of_a_bench_with_other_settings_are_left_out(tmp_path):
    for name in LEVELS:
        benched(tmp_path, name, **({"samples": 16, "terms": "bid", "decay": 0.5} if name.startswith("bid") else {}))
    benched(tmp_path, "bid 1", samples=4)
    benched(tmp_path, "bid 8", terms="backward")
    benched(tmp_path, "ema 8", noise=1.0)
    assert bench([tmp_path], 0.0) == {name: [0.5] for name in LEVELS}


def rehearsed(folder, decoder, horizon, seeds=(1, 2, 3), speed=0):
    """Write the run.json of rehearsals, of which that of seed 3 succeeds."""
    at = folder / f"{decoder}-{horizon}-{speed}"
    at.mkdir()
    results = [{"seed": seed, "success": seed == 3, "outcome": "done"} for seed in seeds]
    (at / "run.json").write_text(json.dumps({"decoder": decoder, "action_horizon": horizon, "results": results}))


def test_rehearsals_are_paired_by_seed(tmp_path):
    for name in LEVELS:
        decoder, horizon = name.split()
        rehearsed(tmp_path, decoder, int(horizon), (2, 3) if decoder == "bid" else (1, 2, 3))
    assert rehearsals(tmp_path) == {key: [0.0, 1.0] for key in LEVELS}
    rehearsed(tmp_path, "bid", 8, speed=1)
    with pytest.raises(BidError, match=r"'bid 8' has two scores of seed 2"):
        rehearsals(tmp_path)


def test_runs_that_lack_a_choice_are_refused(tmp_path):
    rehearsed(tmp_path, "bid", 1)
    with pytest.raises(BidError, match=r"\['bid 1'\]; valid are"):
        rehearsals(tmp_path)


def test_an_evaluation_of_an_earlier_version_is_refused(tmp_path):
    (tmp_path / "evaluation.json").write_text("{}")
    with pytest.raises(BidError, match="earlier version"):
        pair_of("a", "still", str(tmp_path / "evaluation.json"), str(tmp_path))
    with pytest.raises(BidError, match="valid are still, moving"):
        pair_of("a", "quick", str(tmp_path / "evaluation.json"), str(tmp_path))


def test_the_page_shows_what_is_kept(root):
    command = [sys.executable, str(root / "scripts" / "results"), "recommendation", "--check"]
    assert subprocess.run(command, cwd=root, timeout=60, check=False).returncode == 0
