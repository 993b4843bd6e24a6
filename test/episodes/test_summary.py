import json
import os

import numpy as np
import pytest

from bid_ros.episodes.log import EpisodeResult, RunLog, percentiles
from bid_ros.episodes.summary import format_summary, write_run

RESULTS = (
    EpisodeResult(0, 7, True, "success", 9.12345),
    EpisodeResult(1, 8, False, "timeout", 20.0),
    EpisodeResult(2, 9, True, "success", 8.0),
)


def summary(**changes):
    values = {
        "task": "franka_place",
        "decoder": "bid",
        "samples": 16,
        "bundle_sha256": "ab12",
        "moving": 0.03,
        "seed": 7,
        "hardware": "twin",
        "results": RESULTS,
        "decision_ms": tuple(range(1, 102)),
        "command_age_ms": (90.0, 100.0, 110.0),
        "missed": 2,
        "safety_stop": "",
    }
    return RunLog(**{**values, **changes})


def test_percentiles():
    assert percentiles(range(1, 102)) == {"p50": 51.0, "p99": 100.0, "max": 101.0}
    assert percentiles([1.0, np.nan, np.inf]) == {"p50": 1.0, "p99": 1.0, "max": 1.0}
    assert percentiles([]) == {"p50": None, "p99": None, "max": None}


def test_run_json_says_everything_asked_for(tmp_path):
    write_run(tmp_path / "deep" / "run.json", summary())
    run = json.loads((tmp_path / "deep" / "run.json").read_text())
    assert {key: run[key] for key in ("episodes", "successes", "decisions", "missed", "decoder", "samples")} == {
        "episodes": 3,
        "successes": 2,
        "decisions": 101,
        "missed": 2,
        "decoder": "bid",
        "samples": 16,
    }
    assert run["decision_ms"] == {"p50": 51.0, "p99": 100.0, "max": 101.0}
    assert run["command_age_ms"] == {"p50": 100.0, "p99": 109.8}
    assert run["bundle_sha256"] == "ab12"
    assert (run["task"], run["moving"], run["seed"], run["hardware"]) == ("franka_place", 0.03, 7, "twin")
    assert (run["safety_stops"], run["safety_stop"], run["action_horizon"]) == (0, "", 1)
    low, high = run["success_interval_95"]
    assert 0 < low < 2 / 3 < high < 1
    assert run["results"][1] == {
        "episode": 1,
        "seed": 8,
        "success": False,
        "outcome": "timeout",
        "outcome_class": "task",
        "outcome_code": "timeout",
        "duration_s": 20.0,
        "label": "",
    }


def test_a_run_that_measured_nothing_is_valid_json(tmp_path):
    empty = summary(results=(), decision_ms=(), command_age_ms=(float("nan"),), safety_stop="workspace: x 0.8 > 0.7")
    write_run(tmp_path / "run.json", empty)
    run = json.loads((tmp_path / "run.json").read_text(), parse_constant=pytest.fail)
    assert run["decision_ms"]["p50"] is None
    assert run["command_age_ms"] == {"p50": None, "p99": None}
    assert run["success_interval_95"] == [0.0, 1.0]
    assert (run["safety_stops"], run["safety_stop"]) == (1, "workspace: x 0.8 > 0.7")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    write_run(path, summary())
    before = path.read_text()

    def full(descriptor):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        write_run(path, summary(seed=99))
    assert path.read_text() == before


def test_the_table_shows_the_result_and_its_interval():
    text = format_summary(summary())
    assert "2 of 3 = 67%" in text and "95 %" in text
    assert "episode 2: timeout after 20.0 s" in text
    assert "missed 2 of 103 = 1.9%" in text
    assert "p50 51.0  p99 100.0  max 101.0 ms" in text
    assert "moving 3 cm/s" in text and "N = 16" in text
    assert "safety stop  none" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_table_of_an_empty_or_open_loop_run():
    text = format_summary(summary(results=(), decision_ms=(), missed=0, moving=0.0, action_horizon=15, safety_stop="x"))
    assert "0 of 0" in text and "scene static" in text and "15 actions a decision" in text
    assert "not measured" in text and "safety stop  x" in text


def test_the_table_names_few_failures():
    failed = tuple(EpisodeResult(i, i, False, "dropped", 5.0) for i in range(20))
    lines = format_summary(summary(results=failed)).splitlines()
    assert sum("dropped" in line for line in lines) == 5
    assert any("and 15 more" in line for line in lines)


def test_episodes_that_nobody_judges_are_no_failures():
    ended = tuple(EpisodeResult(i, i, False, "not judged", 20.0) for i in range(3))
    text = format_summary(summary(results=ended))
    assert "not judged: 3 episodes timed out" in text and "episode 1" not in text and "0%" not in text
    assert max(map(len, text.splitlines())) <= 80
    mixed = format_summary(summary(results=(*ended, EpisodeResult(3, 3, False, "stopped: workspace", 1.0))))
    assert "0 of 4" in mixed and "episode 4: stopped: workspace" in mixed
