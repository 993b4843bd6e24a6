"""Torques that a Franka tells against those that were sent."""

import re

import numpy as np
import pytest

from bid_ros.core.margins import Margins
from bid_ros.robots.franka.torques import OLD_MS, SENT_MS, ToldTorques


def wave(ms):
    """Torques of a slow motion, ``(7,)`` Nm at 2 to 3 Hz: none is ever 2 Nm from another time's."""
    t = ms / 1000.0
    return tuple(float(0.9 * np.sin((2.0 + 0.15 * k) * 2 * np.pi * t + k)) for k in range(7))


def judged(told, ms=1500, every=2):
    """Return the first finding and its time in ms, and the margins, where ``told(ms)`` is said."""
    margins = Margins()
    check = ToldTorques(0, margins)
    for now in range(0, ms, every):
        found = check.doubt(now, told(now), wave(now))
        if found:
            return found, now, margins
    return "", ms, margins


def test_torques_that_are_told_as_sent_are_new():
    found, _, margins = judged(wave)
    assert found == "" and margins["old torque"] == 0.0 and margins["sent torque"] == 0.0


@pytest.mark.parametrize("late_ms", [OLD_MS + 10, 100, 400, 800])
def test_torques_of_long_ago_are_old_and_it_is_said_by_how_much(late_ms):
    found, now, _ = judged(lambda ms: wave(max(0, ms - late_ms)))
    assert now < 200, "as long as nothing came, they are as old as the motion"
    said = re.fullmatch(r"its torques are those sent (\d+) ms before; valid is up to 30 ms", found)
    assert said and int(said[1]) == pytest.approx(min(now, late_ms), abs=4)


@pytest.mark.parametrize("lost", [1, 5, 15])
def test_commands_that_are_lost_leave_torques_that_are_not_old(lost):
    """The robot goes on with the last one that it received."""
    found, _, margins = judged(lambda ms: wave(ms - ms % (lost + 1)), every=1)
    assert found == "" and margins["old torque"] <= 0.5


def test_torques_that_nobody_sent_are_not_called_old():
    found, now, margins = judged(lambda ms: tuple(torque + 1.5 for torque in wave(ms)))
    assert found == "" and now == 1500 and margins["old torque"] == 0.0


def test_what_nobody_knows_is_no_disagreement():
    check = ToldTorques(0, Margins())
    for now in range(0, 400, 2):
        if now % 10 == 0:
            check.unknown(now)
        else:
            assert check.doubt(now, wave(max(0, now - 300)), wave(now)) == "", SENT_MS
