"""How often a system decides, and how its decoder remembers then."""

from dataclasses import replace

import pytest

from bid_ros.core.errors import DecodingError
from bid_ros.core.schema import json_schema
from bid_ros.policy.decision_rate import (
    FASTEST_HZ,
    budget_within,
    decisions_a_step,
    decoder_between,
    remembered_as,
    scenes_a_second,
)
from bid_ros.system.folder import PolicySettings


@pytest.mark.parametrize(("rate_hz", "count"), [(0, 1), (10, 1), (20, 2), (30, 3), (100, 10)])
def test_a_step_holds_a_whole_number_of_decisions(task, rate_hz, count):
    assert decisions_a_step(task, rate_hz) == count


def test_a_twin_has_a_scene_for_each_decision_and_no_rounded_number_of_them(task):
    odd = replace(task, rate_hz=12.5)
    assert [scenes_a_second(odd, rate_hz) for rate_hz in (25.0, 50.0, 100.0)] == [25, 50, 100]
    for rate_hz in (12.5, 37.5):
        with pytest.raises(DecodingError, match=rf"decision_rate_hz is {rate_hz}, and .* are 25, 50, 75, 100, 0$"):
            scenes_a_second(odd, rate_hz)


def test_a_system_file_takes_decisions_as_fast_as_the_arguments_of_a_run():
    assert json_schema(PolicySettings)["properties"]["decision_rate_hz"]["maximum"] == FASTEST_HZ


@pytest.mark.parametrize("rate_hz", [1, 5, 12, 25, 29.97])
def test_another_rate_is_refused(task, rate_hz):
    with pytest.raises(DecodingError, match=f"decision_rate_hz is {rate_hz:g}; valid are .* 10, 20, 30 and"):
        decisions_a_step(task, rate_hz)


@pytest.mark.parametrize(
    ("text", "count", "wanted"),
    [
        ("bid", 1, "bid"),
        ("bid", 3, "bid:memory=between"),
        ("bid+ema:ema_weight=0.3", 3, "bid+ema:ema_weight=0.3,memory=between"),
        ("bid:memory=nearest", 3, "bid:memory=nearest"),
    ],
)
def test_a_decoder_that_is_asked_more_than_once_a_step_interpolates(text, count, wanted):
    assert decoder_between(text, count) == wanted


def test_a_decision_ends_before_the_next_one_begins(task):
    assert budget_within(45.0, task, 1) == 45.0 and budget_within(150.0, task, 1) == 150.0
    assert budget_within(45.0, task, 3) == pytest.approx(100 / 3) and budget_within(20.0, task, 3) == 20.0
    assert budget_within(0.0, task, 3) == 0.0


@pytest.mark.parametrize(
    ("changed", "recorded", "wanted"),
    [
        ("bid+lead", "bid:memory=between", "bid+lead:memory=between"),
        ("bid:memory=nearest", "bid:memory=between", "bid:memory=nearest"),
        ("bid:decay=0.3", "bid", "bid:decay=0.3"),
        (None, "bid:memory=between", "bid:memory=between"),
        ("", "bid", "bid"),
    ],
)
def test_a_replay_with_another_decoder_remembers_as_the_recorded_one(changed, recorded, wanted):
    assert remembered_as(changed, recorded) == wanted
