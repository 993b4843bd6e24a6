from dataclasses import replace

import pytest
from run_logs import RESULTS, run_log, stopped

from bid_ros.core.outcome import INFRASTRUCTURE, SAFETY, EpisodeOutcome
from bid_ros.episodes.log import EpisodeResult
from bid_ros.episodes.summary import format_summary


def test_the_table_shows_the_result_and_its_interval():
    text = format_summary(run_log())
    assert "2 of 3 = 67%" in text and "95 %" in text
    assert "episode 2: timeout after 20.0 s" in text
    assert "missed 2 of 103 = 1.9%" in text
    assert "p50 51.0  p99 100.0  max 101.0 ms" in text
    assert "moving 3 cm/s" in text and "N = 16" in text
    assert "safety stop  none" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_table_of_an_empty_or_open_loop_run():
    text = format_summary(
        run_log(results=(), decision_ms=(), missed=0, moving=0.0, action_horizon=15, stops=stopped("x"))
    )
    assert "0 of 0" in text and "scene static" in text and "15 actions a decision" in text
    assert "not measured" in text and "safety stop  x" in text


@pytest.mark.parametrize("changes", [{"hardware": "rehearsal"}, {"decoder": ""}])
def test_a_rehearsal_and_a_run_that_nobody_decides_have_no_times_of_decisions(changes):
    text = format_summary(run_log(**changes, decision_ms=(), command_age_ms=(), missed=0))
    assert "decisions" not in text and "command age" not in text and "2 of 3 = 67%" in text
    assert ("decoder      bid" in text) == ("decoder" not in changes)


def test_a_rehearsal_tells_what_safety_stopped_though_nothing_latches_there():
    ended = EpisodeResult(3, 10, False, "stopped: too fast", 1.0)
    assert "safety stop  too fast" in format_summary(run_log(hardware="rehearsal", results=(*RESULTS, ended)))
    twice = format_summary(run_log(hardware="rehearsal", results=(*RESULTS, ended, replace(ended, episode=4))))
    assert "safety stop  2, the last: too fast" in twice
    assert "safety stop  none" in format_summary(run_log(hardware="rehearsal"))


def test_the_table_names_few_failures():
    failed = tuple(EpisodeResult(i, i, False, "dropped", 5.0) for i in range(20))
    lines = format_summary(run_log(results=failed)).splitlines()
    assert sum("dropped" in line for line in lines) == 5
    assert any("and 15 more" in line for line in lines)


def test_episodes_that_nobody_judges_are_no_failures():
    ended = tuple(EpisodeResult(i, i, False, "not judged", 20.0) for i in range(3))
    text = format_summary(run_log(results=ended))
    assert "not judged: 3 episodes timed out" in text and "episode 1" not in text and "0%" not in text
    assert max(map(len, text.splitlines())) <= 80
    mixed = format_summary(run_log(results=(*ended, EpisodeResult(3, 3, False, "stopped: workspace", 1.0))))
    assert "0 of 4" in mixed and "episode 4: stopped: workspace" in mixed


FAILED = (
    EpisodeResult(3, 10, False, "stopped: too fast", 1.0, "", SAFETY, "speed"),
    EpisodeResult(4, 11, False, "stopped: no frame", 1.0, "", INFRASTRUCTURE, "camera"),
    EpisodeResult(5, 12, False, "aborted: shut down", 1.0),
)


def test_a_success_that_was_disturbed_counts_in_no_rate_and_is_told_beside_it():
    disturbed = EpisodeResult(3, 10, True, "success, but the twin kept 0.71", 9.0, "", INFRASTRUCTURE, "computer")
    log = run_log(results=(*RESULTS, disturbed))
    run = log.to_dict()
    assert (run["counted"], run["successes"], run["not_counted_successes"]) == (3, 2, 1)
    text = format_summary(log)
    assert "2 of 3 = 67%" in text and "not counted  1 of 4 episodes: computer 1; with success: 1" in text
    assert "too busy or too slow; end other work on it, and run again" in text


def test_what_failed_beside_the_policy_counts_in_no_rate_and_is_told_beside_it():
    log = run_log(results=(*RESULTS, *FAILED), stops=stopped("too fast", "no frame"))
    run = log.to_dict()
    assert (run["episodes"], run["counted"], run["successes"]) == (6, 4, 2)
    assert run["success_interval_95"] == [0.15, 0.85]
    assert run["outcomes"]["safety"] == {"speed": 1}
    assert run["outcomes"]["infrastructure"] == {"camera": 1, "aborted": 1}
    text = format_summary(log)
    assert "2 of 4 = 50%" in text and "not counted  2 of 6 episodes: aborted 1, camera 1" in text
    assert "end other work" not in text
    assert "safety stop  2, the last: no frame" in text
    assert run["safety_stops"] == 2 and [stop["rule"] for stop in run["stops"]] == ["speed", "speed"]


def test_a_run_that_ended_early_says_why():
    ended = EpisodeOutcome("aborted: arm ended first (status 1)", INFRASTRUCTURE, "robot")
    log = run_log(ended=ended)
    said = {"outcome": ended.text, "outcome_class": "infrastructure", "outcome_code": "robot"}
    assert log.to_dict()["ended"] == said
    assert "ended early  aborted: arm ended first (status 1)" in format_summary(log)
