import json
import os

import pytest
from run_logs import run_log, stopped

from bid_ros.core.outcome import INFRASTRUCTURE, EpisodeOutcome
from bid_ros.episodes.log import end_run, write_run
from bid_ros.recording.events import FILE, append_event, check_events
from bid_ros.system.ended import Ended, note_end


def test_run_json_says_everything_asked_for(tmp_path):
    write_run(tmp_path / "deep" / "run.json", run_log())
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
    assert (run["counted"], run["stops"], run["ended"]) == (3, [], None)
    assert run["outcomes"] == {"task": {"success": 2, "timeout": 1}, "safety": {}, "infrastructure": {}}
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
    empty = run_log(results=(), decision_ms=(), command_age_ms=(float("nan"),), stops=stopped("workspace: x 0.8 > 0.7"))
    write_run(tmp_path / "run.json", empty)
    run = json.loads((tmp_path / "run.json").read_text(), parse_constant=pytest.fail)
    assert run["decision_ms"]["p50"] is None
    assert run["command_age_ms"] == {"p50": None, "p99": None}
    assert run["success_interval_95"] == [0.0, 1.0]
    assert (run["safety_stops"], run["safety_stop"]) == (1, "workspace: x 0.8 > 0.7")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    write_run(path, run_log())
    before = path.read_text()

    def full(descriptor):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        write_run(path, run_log(seed=99))
    assert path.read_text() == before


def test_the_run_of_a_runner_that_was_killed_is_completed_and_no_other_one(tmp_path):
    path = tmp_path / "run.json"
    end_run(tmp_path)
    note_end(tmp_path, Ended("episode", -9))
    end_run(tmp_path)
    assert not path.exists(), "there was no run yet"
    write_run(path, run_log())
    end_run(tmp_path)
    run = json.loads(path.read_text())
    assert run["ended"]["outcome"] == "aborted: episode ended first (status -9, killed by SIGKILL)"
    assert run["ended"]["outcome_code"] == "computer" and run["episodes"] == 3
    assert run["events"] is None and not (tmp_path / FILE).exists()
    write_run(path, run_log(events=append_event(tmp_path, "start")))
    end_run(tmp_path)
    end_run(tmp_path)
    ends = [json.loads(line) for line in (tmp_path / FILE).read_text().splitlines()]
    assert [line["kind"] for line in ends] == ["start", "end"] and ends[1]["outcome"] == run["ended"]["outcome"]
    assert json.loads(path.read_text())["events"]["lines"] == 2 and check_events(tmp_path) == ""
    said = EpisodeOutcome("aborted: shut down", INFRASTRUCTURE, "shutdown")
    write_run(path, run_log(ended=said))
    end_run(tmp_path)
    assert json.loads(path.read_text())["ended"]["outcome"] == said.text
