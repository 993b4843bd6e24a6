"""How an episode ended: for people, for programs, and in the messages of each version."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bid_msgs.msg import EpisodeEvent
from bid_ros.core.outcome import CLASSES, INFRASTRUCTURE, SAFETY, TASK, outcome_from_event, outcome_from_text
from bid_ros.episodes.log import EpisodeResult

LISTED = [
    ("success", TASK, "success"),
    ("timeout", TASK, "timeout"),
    ("not judged", TASK, "not_judged"),
    ("stopped: speed is 0.7 m/s; the limit is 0.5 m/s", SAFETY, "stopped"),
    ("aborted: shut down", INFRASTRUCTURE, "aborted"),
]


def test_the_classes_have_the_numbers_of_the_message():
    numbers = [EpisodeEvent.NONE, EpisodeEvent.TASK, EpisodeEvent.SAFETY, EpisodeEvent.INFRASTRUCTURE]
    assert [CLASSES[number] for number in numbers] == ["", TASK, SAFETY, INFRASTRUCTURE]


@pytest.mark.parametrize(("text", "kind", "code"), LISTED)
def test_a_text_alone_says_who_ended_the_episode(text, kind, code):
    found = outcome_from_text(text)
    assert (found.text, found.kind, found.code, found.success) == (text, kind, code, text == "success")
    older = SimpleNamespace(outcome=text)  # a message of the earlier version
    assert outcome_from_event(older) == found
    result = EpisodeResult(0, 7, found.success, text, 1.0)
    assert (result.outcome_class, result.outcome_code) == (kind, code)


def test_an_event_says_more_than_its_text():
    event = EpisodeEvent(outcome="stopped: too fast", outcome_class=EpisodeEvent.SAFETY, outcome_code="speed")
    found = outcome_from_event(event)
    assert (found.kind, found.code, found.success) == (SAFETY, "speed", False)
    event.outcome_class = 200  # of a later version
    assert outcome_from_event(event).code == "stopped"
