"""What a recommendation costs, on scores that can be worked out by hand."""

import json

import numpy as np
import pytest
from results.recommendation import _at, choices_table, fair_regret, pairs_table, picked, regret, rehearsals

LEVELS = {"bid 1": 0.7, "bid 8": 0.5, "ema 1": 0.4, "ema 8": 0.6, "vanilla 1": 0.3, "vanilla 8": 0.2}


def pair(scene="still", modes=1.0, scores=None, held=False):
    """Return a pair with the same score in all of ten episodes."""
    scores = scores or {name: [level] * 10 for name, level in LEVELS.items()}
    found = {"name": "task", "scene": scene, "modes": modes, "disagreement": 0.1, "refused": {}, "horizon": 16}
    return {**found, "dt_s": 0.1, "scores": scores, "held": held}


def test_regret_is_the_distance_to_the_best_one():
    item = pair()
    assert picked(item) == "ema 8"
    assert regret(item["scores"], "ema 8") == pytest.approx(0.1)
    assert fair_regret(item["scores"], "ema 8") == pytest.approx(0.1), "without chance both say the same"
    assert picked(pair(scene="moving")) == "bid 1"


def test_luck_is_no_regret():
    """Of choices that are all alike, the best mean is above the others by chance alone."""
    rng, plain, fair = np.random.default_rng(3), [], []
    for _ in range(60):
        alike = {name: (rng.random(30) < 0.5).astype(float).tolist() for name in LEVELS}
        plain.append(regret(alike, "bid 1"))
        fair.append(fair_regret(alike, "bid 1", halves=40))
    assert np.mean(plain) > 0.08
    assert abs(np.mean(fair)) < 0.03


def test_the_tables_name_choice_and_best():
    items = [pair(), pair(scene="moving", held=True)]
    rows = pairs_table(items).splitlines()
    assert "**.600**" in rows[2] and "_.700_" in rows[2] and rows[2].endswith("| 0.100 | +0.100 |")
    assert rows[3].startswith("| task (held back)") and "**.700**" in rows[3]
    lines = choices_table(items).splitlines()
    assert lines[2] == "| **the recommendation** | 0.100 (+0.100) | 0.000 (+0.000) | 0.050 (+0.050) | 0.000 (+0.000) |"
    assert lines[3].startswith("| always vanilla, one | 0.400") and lines[-1].startswith("| always bid, half | 0.200")
    assert [_at(index, items[0]) for index in (0, 5)] == ["vanilla 1", "bid 8"]


def test_rehearsals_are_paired_by_seed(tmp_path):
    for decoder, seeds in (("bid", (1, 2, 3)), ("vanilla", (2, 3))):
        folder = tmp_path / decoder
        folder.mkdir()
        results = [{"seed": seed, "success": seed == 3, "outcome": "done"} for seed in seeds]
        (folder / "run.json").write_text(json.dumps({"decoder": decoder, "action_horizon": 8, "results": results}))
    assert rehearsals(tmp_path) == {"bid 8": [0.0, 1.0], "vanilla 8": [0.0, 1.0]}
