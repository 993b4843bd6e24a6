"""The names of numbers are those of the installed message types."""

import pytest
from diagnostic_msgs.msg import DiagnosticStatus

from bid_msgs.msg import ArmStatus, EpisodeEvent, SafetyState
from bid_ros.views.message_values import EVENTS, LEVELS, MODES, SAFETY, state, word


@pytest.mark.parametrize(
    ("kind", "words"), [(SafetyState, SAFETY), (ArmStatus, MODES), (EpisodeEvent, EVENTS), (DiagnosticStatus, LEVELS)]
)
def test_each_word_is_the_constant_of_its_number(kind, words):
    for number, name in enumerate(words):
        value = getattr(kind, name)
        assert (value[0] if isinstance(value, bytes) else value) == number


def test_a_number_of_a_later_version_is_shown_as_it_is():
    assert word(SAFETY, 1) == "STOPPED" and word(SAFETY, 9) == "9"
    assert state("STOPPED", "") == "STOPPED" and state("STOPPED", "why") == "STOPPED: why"
