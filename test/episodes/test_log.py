import json
import os

import pytest

from bid_ros.core.outcome import INFRASTRUCTURE, SAFETY, EpisodeOutcome
from bid_ros.episodes.log import EpisodeResult, RunLog, end_run, format_summary, write_run
from bid_ros.episodes.stops import EpisodeStopped, Stops
from bid_ros.recording.events import FILE, append_event, check_events
from bid_ros.system.ended import Ended, note_end

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
    }
    return RunLog(**{**values, **changes})


def stopped(*reasons):
    stops = Stops()
    for reason in reasons:
        stops.add(EpisodeStopped(EpisodeOutcome(f"stopped: {reason}", SAFETY, "speed"), "speed"), 0, True)
    return stops


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
    empty = summary(results=(), decision_ms=(), command_age_ms=(float("nan"),), stops=stopped("workspace: x 0.8 > 0.7"))
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
    text = format_summary(
        summary(results=(), decision_ms=(), missed=0, moving=0.0, action_horizon=15, stops=stopped("x"))
    )
    assert "0 of 0" in text and "scene static" in text and "15 actions a decision" in text
    assert "not measured" in text and "safety stop  x" in text


@pytest.mark.parametrize("changes", [{"hardware": "rehearsal"}, {"decoder": ""}])
def test_a_rehearsal_and_a_run_that_nobody_decides_have_no_times_of_decisions(changes):
    text = format_summary(summary(**changes, decision_ms=(), command_age_ms=(), missed=0))
    assert "decisions" not in text and "command age" not in text and "2 of 3 = 67%" in text
    assert ("decoder      bid" in text) == ("decoder" not in changes)


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


FAILED = (
    EpisodeResult(3, 10, False, "stopped: too fast", 1.0, "", SAFETY, "speed"),
    EpisodeResult(4, 11, False, "stopped: no frame", 1.0, "", INFRASTRUCTURE, "camera"),
    EpisodeResult(5, 12, False, "aborted: shut down", 1.0),
)


def test_a_success_that_was_disturbed_counts_in_no_rate_and_is_told_beside_it():
    disturbed = EpisodeResult(3, 10, True, "success, but the twin kept 0.71", 9.0, "", INFRASTRUCTURE, "computer")
    log = summary(results=(*RESULTS, disturbed))
    run = log.to_dict()
    assert (run["counted"], run["successes"], run["not_counted_successes"]) == (3, 2, 1)
    text = format_summary(log)
    assert "2 of 3 = 67%" in text and "not counted  1 of 4 episodes: computer 1; with success: 1" in text


def test_what_failed_beside_the_policy_counts_in_no_rate_and_is_told_beside_it():
    log = summary(results=(*RESULTS, *FAILED), stops=stopped("too fast", "no frame"))
    run = log.to_dict()
    assert (run["episodes"], run["counted"], run["successes"]) == (6, 4, 2)
    assert run["success_interval_95"] == [0.15, 0.85]
    assert run["outcomes"]["safety"] == {"speed": 1}
    assert run["outcomes"]["infrastructure"] == {"camera": 1, "aborted": 1}
    text = format_summary(log)
    assert "2 of 4 = 50%" in text and "not counted  2 of 6 episodes: aborted 1, camera 1" in text
    assert "safety stop  2, the last: no frame" in text
    assert run["safety_stops"] == 2 and [stop["rule"] for stop in run["stops"]] == ["speed", "speed"]


def test_a_run_that_ended_early_says_why():
    ended = EpisodeOutcome("aborted: arm ended first (status 1)", INFRASTRUCTURE, "robot")
    log = summary(ended=ended)
    said = {"outcome": ended.text, "outcome_class": "infrastructure", "outcome_code": "robot"}
    assert log.to_dict()["ended"] == said
    assert "ended early  aborted: arm ended first (status 1)" in format_summary(log)


def test_the_run_of_a_runner_that_was_killed_is_completed_and_no_other_one(tmp_path):
    path = tmp_path / "run.json"
    end_run(tmp_path)
    note_end(tmp_path, Ended("episode", -9))
    end_run(tmp_path)
    assert not path.exists(), "there was no run yet"
    write_run(path, summary())
    end_run(tmp_path)
    run = json.loads(path.read_text())
    assert run["ended"]["outcome"] == "aborted: episode ended first (status -9, killed by SIGKILL)"
    assert run["ended"]["outcome_code"] == "computer" and run["episodes"] == 3
    assert run["events"] is None and not (tmp_path / FILE).exists()
    write_run(path, summary(events=append_event(tmp_path, "start")))
    end_run(tmp_path)
    end_run(tmp_path)
    ends = [json.loads(line) for line in (tmp_path / FILE).read_text().splitlines()]
    assert [line["kind"] for line in ends] == ["start", "end"] and ends[1]["outcome"] == run["ended"]["outcome"]
    assert json.loads(path.read_text())["events"]["lines"] == 2 and check_events(tmp_path) == ""
    said = EpisodeOutcome("aborted: shut down", INFRASTRUCTURE, "shutdown")
    write_run(path, summary(ended=said))
    end_run(tmp_path)
    assert json.loads(path.read_text())["ended"]["outcome"] == said.text
