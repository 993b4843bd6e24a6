"""When a recorded message is due."""

from __future__ import annotations

import threading

import pytest

from bid_ros.replay.publishing import BEHIND_NS, ReplayPace

MS = 1_000_000


class Clock:
    """A clock that stands until somebody waits: then it is as late as that wait asks for."""

    def __init__(self):
        self.now = 5_000 * MS

    def __call__(self):
        return self.now


def waits_of(pace, clock, stamps):
    """Return the clock's times in ms at which each message is let through, with a clock that jumps through waits."""
    times = []
    real = pace._news.wait

    def jump(timeout=None):
        clock.now += round(timeout * 1e9)
        return True

    pace._news.wait = jump
    for stamp in stamps:
        assert pace.wait(stamp)
        times.append((clock.now - 5_000 * MS) / MS)
    pace._news.wait = real
    return times


@pytest.mark.parametrize(("speed", "factor"), [(1.0, 1.0), (2.0, 0.5), (0.25, 4.0), (0.0, 0.0)])
def test_messages_are_due_at_the_recorded_distances_times_the_speed(speed, factor):
    clock = Clock()
    pace = ReplayPace(speed, clock=clock)
    assert waits_of(pace, clock, [1_000 * MS, 1_040 * MS, 1_100 * MS]) == [0.0, 40 * factor, 100 * factor]
    assert pace.stalled_ns == 0


def test_a_replay_that_fell_behind_goes_on_from_there():
    clock = Clock()
    pace = ReplayPace(1.0, clock=clock)
    assert pace.wait(0)
    clock.now += 10 * MS + 2 * BEHIND_NS
    assert pace.wait(10 * MS)
    assert pace.stalled_ns == 2 * BEHIND_NS
    assert waits_of(pace, clock, [40 * MS]) == [(10 + 30) + 2 * BEHIND_NS / MS]


def test_paused_it_waits_for_steps_and_a_step_ends_with_a_decision():
    pace, passed = ReplayPace(1.0, paused=True), []
    passing = threading.Event()

    def play():
        while pace.wait(0):
            passed.append(1)
            pace.stepped()
            passing.set()

    thread = threading.Thread(target=play)
    thread.start()
    for count in (1, 2):
        passing.clear()
        pace.step()
        assert passing.wait(5.0) and len(passed) == count
    pace.close()
    thread.join(5.0)
    assert not thread.is_alive() and len(passed) == 2


def test_closing_ends_a_wait():
    pace, answers = ReplayPace(0.001), []
    assert pace.wait(0)
    thread = threading.Thread(target=lambda: answers.append(pace.wait(10**9)))
    thread.start()
    pace.close()
    thread.join(5.0)
    assert answers == [False]


def test_two_decisions_that_are_due_together_take_a_step_each():
    pace, decided = ReplayPace(0.0, paused=True), threading.Semaphore(0)

    def play():
        assert pace.wait(0)
        for _ in range(2):
            if pace.hold():
                decided.release()
                pace.stepped()

    thread = threading.Thread(target=play)
    thread.start()
    for _ in range(2):
        pace.step()
        assert decided.acquire(timeout=5.0)
        assert not decided.acquire(timeout=0.2)
    thread.join(5.0)
    assert not thread.is_alive()
