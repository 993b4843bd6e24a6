"""An episode that the computer disturbed counts in no rate, whichever way it ended."""

import pytest

from bid_ros.core.outcome import INFRASTRUCTURE, SAFETY, TASK, EpisodeOutcome, outcome_from_text
from bid_ros.episodes.causes import CAMERA, COMPUTER
from bid_ros.episodes.disturbance import disturbance
from bid_ros.episodes.pauses import Pause
from bid_ros.recording.episodes import DISCARDED
from bid_ros.tasks.base import NOT_JUDGED

CALM = (0.0, 20.0, None)
FROZEN = (2.1, 20.0, Pause(0, 3.0, 2.1, "images of 'wrist' are frozen", CAMERA))
ENDS = [*map(outcome_from_text, ("success", "timeout", "dropped")), EpisodeOutcome("stopped: fast", SAFETY, "speed")]


@pytest.mark.parametrize("outcome", ENDS, ids=lambda item: item.code)
@pytest.mark.parametrize(
    ("blamed", "behind_s", "pace", "part", "why"),
    [
        (CALM, 0.0, 0.89, COMPUTER, "the twin kept 0.89 of real time"),
        (CALM, 2.2, 1.0, COMPUTER, "the twin kept 0.89 of real time"),
        (FROZEN, 0.0, 1.0, CAMERA, "the arm could not move for 2.1 s of 20.0: images of 'wrist' are frozen"),
    ],
)
def test_what_was_disturbed_is_left_out_whichever_way_it_ended(outcome, blamed, behind_s, pace, part, why):
    found = disturbance(blamed, behind_s, pace)
    told = found.applied(outcome)
    assert (told.kind, told.code, told.text) == (INFRASTRUCTURE, part, f"{outcome.text}, but {why}")
    assert told.success is outcome.success, "what was done stays done, for whoever looks for demonstrations"


@pytest.mark.parametrize(
    ("blamed", "behind_s", "pace"),
    [(CALM, 0.0, 1.0), (CALM, 1.9, 0.9), ((1.9, *FROZEN[1:]), 0.0, 1.0), ((0.0, 0.0, None), 0.0, 1.0)],
)
def test_less_than_a_tenth_disturbs_nothing(blamed, behind_s, pace):
    assert disturbance(blamed, behind_s, pace) is None


def test_what_counts_nowhere_stays_what_it_was():
    found = disturbance(CALM, 20.0, 0.1)
    for outcome in (EpisodeOutcome("stopped: no frame", INFRASTRUCTURE, CAMERA), outcome_from_text(NOT_JUDGED)):
        assert found.applied(outcome) is outcome
    discarded = EpisodeOutcome(DISCARDED, TASK, DISCARDED)
    assert found.applied(discarded) is discarded, "it is prepared again"
