"""The heartbeat of a node: it goes on while the work does, whatever computes beside it, and pauses when work stalls."""

from __future__ import annotations

import threading
from typing import Self

import pytest

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.schedule import PeriodicThread, Tick
from bid_ros.nodes.heartbeat import PERIOD_S, HeartbeatThread

LIMIT_S = 0.2


class Listener:
    def __init__(self) -> None:
        self.ages: list[float] = []
        self.heard = threading.Condition()

    def __call__(self, age_s: float) -> None:
        with self.heard:
            self.ages.append(age_s)
            self.heard.notify_all()

    def hears(self, count: int, within_s: float = 5.0) -> bool:
        """Whether there are so many more heartbeats within the time."""
        with self.heard:
            goal = len(self.ages) + count
            return self.heard.wait_for(lambda: len(self.ages) >= goal, within_s)


class Control:
    """A thread that wakes on a schedule and counts."""

    def __init__(self, period_s: float) -> None:
        self.count = 0
        self._thread = PeriodicThread("control", round(period_s * NANOSECONDS), self._wake)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.stop()

    def _wake(self, _: Tick) -> None:
        self.count += 1


@pytest.fixture
def listener():
    return Listener()


@pytest.fixture
def heartbeat(listener):
    heartbeat = HeartbeatThread(listener, LIMIT_S)
    heartbeat.start()
    yield heartbeat
    heartbeat.stop()


def test_there_is_no_heartbeat_before_the_first_work(heartbeat, listener):
    assert not listener.hears(1, 4 * PERIOD_S)
    heartbeat.worked()
    assert listener.hears(1)


def test_the_heartbeat_pauses_while_the_work_stalls_and_says_its_age(heartbeat, listener):
    heartbeat.worked()
    assert listener.hears(2)
    while listener.hears(1, LIMIT_S + 4 * PERIOD_S):
        pass
    assert 0.0 <= max(listener.ages) <= LIMIT_S
    assert listener.ages == sorted(listener.ages)
    heartbeat.worked()
    assert listener.hears(1) and listener.ages[-1] < listener.ages[-2]


def test_a_failure_silences_it_at_once_until_the_next_step(heartbeat, listener):
    heartbeat.worked()
    assert listener.hears(1)
    heartbeat.failed()
    listener.hears(1, 2 * PERIOD_S)  # one may be under way
    assert not listener.hears(1, 4 * PERIOD_S)
    heartbeat.worked()
    assert listener.hears(1)


def test_a_long_computation_in_python_delays_no_heartbeat(heartbeat, listener):
    """It holds the interpreter like the longest decision would, if it computed in Python only.

    A control thread wakes as often as a heartbeat is due, so on a busy computer both are late.
    """
    heartbeat.limit_s = 60.0
    heartbeat.worked()
    total = 0
    with Control(PERIOD_S) as control:
        while control.count < 6:
            total += sum(range(1000))
        beats = len(listener.ages)  # nothing waits for one here: they came while this thread computed
    assert total and beats >= 5


def test_nothing_is_sent_after_the_stop(heartbeat, listener):
    heartbeat.worked()
    assert listener.hears(1)
    heartbeat.stop()
    assert not listener.hears(1, 4 * PERIOD_S)


def test_a_rare_heartbeat_has_a_longer_period(listener):
    heartbeat = HeartbeatThread(listener, 60.0, period_s=0.4)
    heartbeat.worked()
    heartbeat.start()
    try:
        assert listener.hears(1)
        with Control(0.4) as control:
            assert listener.hears(3, 20.0)
            assert 2 <= control.count <= 4, "a control thread of the same period did not wake as often"
    finally:
        heartbeat.stop()
