"""How exact the joint speeds must be that a Franka says."""

import numpy as np
import pytest

from bid_ros.core.margins import Margins
from bid_ros.robots.franka.speeds import OFF, WINDOW_S, SaidSpeeds

PERIOD_S = 0.002
LATE_S = 0.0029  # as an FR3's speeds


def judged(speed, said, seconds=1.0, period_s=PERIOD_S):
    """Return the first finding, when it came, and the margins of a joint that turns at ``speed`` and says ``said``."""
    margins, joint = Margins(), 0.0
    check = SaidSpeeds(0.0, (joint,), (said(0.0),), 1.0, margins)
    for number in range(1, round(seconds / period_s)):
        fine = (np.arange(10) + 0.5) / 10 + number - 1
        joint += period_s * float(np.mean([speed(period_s * at) for at in fine]))
        found = check.doubt(period_s * number, (joint,), (said(period_s * number),))
        if found:
            return found, period_s * number, margins
    return "", seconds, margins


def swing(t):
    return 0.9 * np.sin(8.0 * t)  # up to 7 rad/s^2


def impact(t):
    return 0.5 if t < 0.5 else max(0.0, 0.5 - 75.0 * (t - 0.5))


@pytest.mark.parametrize("speed", [swing, impact])
@pytest.mark.parametrize("period_s", [0.001, 0.002, 0.004])
def test_speeds_that_are_as_late_as_those_of_an_fr3_use_half_of_the_limit(speed, period_s):
    found, _, margins = judged(speed, lambda t: speed(t - LATE_S), period_s=period_s)
    assert found == ""
    assert 0.2 < margins["speeds"] < 0.5


@pytest.mark.parametrize(("share", "within_s"), [(0.6, 0.014), (0.7, 0.018), (0.8, 0.022), (0.9, 0.04), (1.3, 0.018)])
def test_a_share_of_the_speed_is_found_before_a_control_law_has_followed_it(share, within_s):
    found, after_s, _ = judged(lambda t: 0.47, lambda t: 0.47 * (share if t > 0.1 else 1.0))
    assert after_s - 0.1 <= within_s
    assert found.startswith("joint 1 is 0.00") and " over 0.05" in found


def test_a_slow_joint_tells_less_of_its_speed():
    slowest = OFF[0] / WINDOW_S / 0.3
    assert judged(lambda t: 0.9 * slowest, lambda t: 0.7 * 0.9 * slowest)[0] == ""
    assert judged(lambda t: 1.2 * slowest, lambda t: 0.7 * 1.2 * slowest)[0]


def test_a_gap_between_states_tells_nothing():
    margins = Margins()
    check = SaidSpeeds(0.0, (0.0,), (0.0,), 1.0, margins)
    assert check.doubt(0.002, (0.0,), (0.0,)) == ""
    assert check.doubt(0.3, (0.1,), (0.5,)) == "", "it may have turned"
    assert check.doubt(0.302, (0.101,), (0.5,)) == ""
    assert check.doubt(0.304, (0.104,), (0.5,)), "and does not since"


def test_a_wrist_that_swings_between_few_states_is_no_lie():
    """As a busy computer reads it: 8 to 20 ms between two states, in which the speed went up and down again."""
    assert judged(lambda t: 0.3 * np.sin(400.0 * t), lambda t: 0.3 * np.sin(400.0 * t), period_s=0.008)[0] == ""
    assert judged(lambda t: 0.3 * np.sin(400.0 * t), lambda t: 0.3 * np.sin(400.0 * t), period_s=0.016)[0] == ""


def test_a_number_that_is_none_is_a_doubt():
    check = SaidSpeeds(0.0, (0.0, 0.0), (0.0, 0.0), 1.0, Margins())
    assert check.doubt(0.002, (0.0, float("nan")), (0.0, 0.0)).startswith("joint 2 is nan rad")
