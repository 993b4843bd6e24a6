"""Absolute schedules: ticks stay on the grid, late ones are skipped and counted."""

import threading

import pytest

from bid_ros.core.schedule import AbsoluteSchedule, PeriodicThread, Tick, is_fresh, phase_aligned_start

PERIOD = 100


def test_ticks_stay_on_the_grid_however_late_the_one_before_was():
    schedule = AbsoluteSchedule(PERIOD, start_ns=1000, tolerance_ns=60)
    assert schedule.take(999) is None
    assert schedule.take(1000) == Tick(0, 1000, 0, 0)
    assert schedule.take(1155) == Tick(1, 1100, 55, 0)
    assert schedule.take(1200) == Tick(2, 1200, 0, 0)


def test_late_ticks_are_skipped_not_queued():
    schedule = AbsoluteSchedule(PERIOD, start_ns=0, tolerance_ns=40)
    assert schedule.take(0) is not None
    assert schedule.take(345) is None  # 1, 2 and 3 came too late, 4 is not due yet
    assert schedule.take(400) == Tick(4, 400, 0, 0)
    assert schedule.skipped == 3


def test_a_skip_just_before_a_tick_is_reported_with_it():
    schedule = AbsoluteSchedule(PERIOD, start_ns=0, tolerance_ns=40)
    assert schedule.take(320) == Tick(3, 300, 20, 3)


@pytest.mark.parametrize("wall", [0, 1, 29, 30, 31, 99, 12345])
def test_the_start_has_the_asked_phase_in_wall_time(wall):
    steady = 777
    start = phase_aligned_start(PERIOD, 30, wall, steady)
    assert 0 <= start - steady < PERIOD
    assert (wall + start - steady) % PERIOD == 30


def test_a_period_of_zero_is_refused():
    with pytest.raises(ValueError, match="period is 0"):
        AbsoluteSchedule(0, 0, 0)


def test_the_thread_runs_the_callback_and_stops():
    seen: list[int] = []
    enough = threading.Event()

    def callback(tick: Tick) -> None:
        seen.append(tick.index)
        if len(seen) == 5:
            enough.set()

    thread = PeriodicThread("test", 2_000_000, callback)
    thread.start()
    assert enough.wait(5.0)
    thread.stop()
    count = len(seen)
    assert seen == sorted(set(seen))
    assert len(seen) == count


def test_an_exception_ends_the_thread_and_is_handed_over():
    errors: list[BaseException] = []
    ended = threading.Event()

    def callback(tick: Tick) -> None:
        raise RuntimeError("broken")

    def on_error(error: BaseException) -> None:
        errors.append(error)
        ended.set()

    PeriodicThread("test", 1_000_000, callback, on_error=on_error).start()
    assert ended.wait(5.0)
    assert str(errors[0]) == "broken"


@pytest.mark.parametrize("phase_ms", range(0, 100, 5))
def test_no_decision_is_a_frame_behind_wherever_the_cameras_phase_lies(phase_ms):
    """A decision every 100 ms and a frame every 100 ms, ``phase_ms`` later: what the rule makes of every phase."""
    period, decision = 100_000_000, 1_000_000_000
    complete = decision - period + phase_ms * 1_000_000
    fresh = is_fresh(complete, decision, period)
    age, wait = (decision - complete, 0) if fresh else (0, complete + period - decision)
    assert age <= period // 2 and 0 <= wait < period // 2
