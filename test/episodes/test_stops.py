import pytest

from bid_ros.core.outcome import INFRASTRUCTURE, SAFETY, EpisodeOutcome
from bid_ros.episodes.stops import IN_A_ROW, EpisodeStopped, Stops, aborted

CAMERA = EpisodeStopped(EpisodeOutcome("stopped: no frame", INFRASTRUCTURE, "camera"), "heartbeat:camera")
SPEED = EpisodeStopped(EpisodeOutcome("stopped: too fast", SAFETY, "speed"), "speed")


def test_a_stop_says_whose_it_was_and_whether_it_is_latched():
    assert SPEED.latched and (SPEED.outcome.kind, SPEED.outcome.code, str(SPEED)) == (
        SAFETY,
        "speed",
        "stopped: too fast",
    )
    end = aborted("no scene", "reset")
    assert not end.latched and (end.outcome.kind, end.outcome.code) == (INFRASTRUCTURE, "reset")
    assert str(end) == "aborted: no scene"


def many(*stops, prepared=True):
    found = Stops()
    for episode, stop in enumerate(stops):
        found.add(stop, episode, prepared)
    return found


def test_three_failures_in_a_row_end_a_run():
    assert not many(*[CAMERA] * (IN_A_ROW - 1)).too_many()
    sentence = many(*[CAMERA] * IN_A_ROW).too_many()
    assert sentence == "3 stops in a row that are not the policy's; the last, camera: stopped: no frame"


@pytest.mark.parametrize("between", [SPEED, None])
def test_what_comes_between_begins_the_count_anew(between):
    stops = many(*[CAMERA] * (IN_A_ROW - 1))
    stops.ended() if between is None else stops.add(between, 2, True)
    stops.add(CAMERA, 3, True)
    assert not stops.too_many()


def test_a_policy_may_fail_as_often_as_it_likes_and_a_preparation_may_not():
    assert not many(*[SPEED] * 20).too_many()
    assert many(*[SPEED] * IN_A_ROW, prepared=False).too_many()
    assert many(*[SPEED] * IN_A_ROW, prepared=False).found[0].phase == "preparation"


def test_only_what_was_latched_is_a_safety_stop():
    stops = many(CAMERA, aborted("no scene", "reset"), SPEED)
    assert [stop.rule for stop in stops.latched()] == ["heartbeat:camera", "speed"]
    assert stops.to_list()[1] == {
        "episode": 1,
        "phase": "episode",
        "outcome": "aborted: no scene",
        "outcome_class": "infrastructure",
        "outcome_code": "reset",
        "rule": "",
        "reset_by": "",
        "reset_s": 0.0,
    }
