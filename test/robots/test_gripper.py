import threading
import time

import pytest
from real_time import HoldUps, wait_until

from bid_ros.core.errors import ArmError
from bid_ros.robots.gripper import RETRY_S, GripperThread, GripperThresholds

THRESHOLDS = GripperThresholds(0.045, 0.06)


class Hand:
    """A hand whose commands end when the test says so, which may refuse them or be lost."""

    def __init__(self):
        self.position, self.goal = 0.08, 0.08
        self.release = threading.Event()
        self.release.set()
        self.refuses = self.lost = False
        self.begun = []

    def width(self):
        if self.lost:
            raise ConnectionError("gone")
        return self.position

    def begin(self, name, goal):
        self.begun.append(name)
        self.goal = goal
        return self.ended

    def ended(self):
        if not self.release.is_set():
            return False
        if not self.refuses:
            self.position = self.goal
        return True

    def begin_open(self):
        return self.begin("open", 0.08)

    def begin_close(self):
        return self.begin("close", 0.04)


@pytest.fixture
def rig():
    hand, errors = Hand(), []
    thread = GripperThread(hand, THRESHOLDS, (ConnectionError,), errors.append)
    thread.start()
    yield hand, thread, errors
    hand.release.set()
    thread.stop()


def test_the_newest_request_wins_once_the_running_command_has_ended(rig):
    hand, thread, _ = rig
    hand.release.clear()
    thread.request(0.0)
    wait_until(lambda: thread.busy)
    for width in (0.08, 0.0, 0.08):
        thread.request(width)
    assert hand.begun == ["close"]
    hand.release.set()
    wait_until(lambda: hand.begun == ["close", "open"] and not thread.busy)
    assert thread.width == 0.08


def test_repeated_and_undecided_widths_give_no_command(rig):
    hand, thread, _ = rig
    thread.request(0.05)
    thread.request(0.03)
    wait_until(lambda: hand.begun == ["close"] and not thread.busy)
    for width in (0.03, 0.02, 0.05, 0.059, 0.046):
        thread.request(width)
    thread.request(0.061)
    wait_until(lambda: not thread.busy and thread.width == 0.08)
    assert hand.begun == ["close", "open"]


def test_a_command_without_effect_is_given_again_but_not_at_once(rig):
    hand, thread, _ = rig
    hand.refuses = True
    begin = time.monotonic()
    thread.request(0.0)
    wait_until(lambda: len(hand.begun) == 1)
    hand.refuses = False
    wait_until(lambda: thread.width == 0.04, RETRY_S + 1.0)
    assert hand.begun == ["close", "close"]
    assert time.monotonic() - begin >= RETRY_S


def test_a_lost_hand_is_reported_once_and_ends_the_thread(rig):
    hand, thread, errors = rig
    hand.lost = True
    wait_until(lambda: errors)
    thread.stop()
    assert [str(error) for error in errors] == ["gone"]


def test_a_device_that_is_closed_under_a_stopped_thread_is_no_fault(rig):
    hand, thread, errors = rig
    reading, closed = threading.Event(), threading.Event()

    def width():
        reading.set()
        closed.wait()
        raise ConnectionError("closed")

    hand.width = width
    assert reading.wait(2.0)
    thread.stop(0.01)
    closed.set()
    thread.stop()
    assert errors == []


def test_stopping_does_not_wait_for_a_command(rig):
    hand, thread, _ = rig
    hand.release.clear()
    thread.request(0.0)
    wait_until(lambda: thread.busy)
    with HoldUps() as since:
        thread.stop()
        assert since.seconds() < 0.5


@pytest.mark.parametrize("values", [(0.06, 0.045), (0.05, 0.05), (0.0, 0.05), (float("nan"), 0.05)])
def test_thresholds_are_checked(values):
    with pytest.raises(ArmError, match=r"close_below is .*; valid is"):
        GripperThresholds(*values)
