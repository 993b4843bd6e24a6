"""The thread that steps a twin."""

import threading
import time

import pytest

from bid_ros.core.errors import ArmError
from bid_ros.sim.loop import StepLoop


@pytest.fixture
def run():
    loops = []

    def start(step, **options):
        loop = StepLoop("the twin", 1_000_000, step, catch_up_ns=5_000_000, **options)
        loops.append(loop)
        loop.start()
        return loop

    yield start
    for loop in loops:
        loop.stop()


def test_work_is_done_between_two_steps_in_the_thread_that_steps(run):
    threads = set()
    loop = run(lambda: threads.add(threading.get_ident()))
    assert loop.call(lambda: threading.get_ident()) in threads | {loop.call(threading.get_ident)}
    with pytest.raises(ValueError, match="its own"):
        loop.call(lambda: int("its own"))
    assert threads == {loop.call(threading.get_ident)}
    assert loop.statistics()["steps"] > 0


def test_a_large_backlog_is_left_out_and_counted(run):
    left_out = []
    loop = run(lambda: None, left_out=left_out.append)
    loop.call(lambda: time.sleep(0.02))  # holds the loop up
    loop.call(lambda: None)
    statistics = loop.statistics()
    assert statistics["overruns"] >= 1 and statistics["lost_s"] == pytest.approx(sum(left_out) / 1e9)
    assert statistics["longest_gap_ms"] == pytest.approx(max(left_out) / 1e6)
    assert min(left_out) > 5_000_000


def test_a_step_that_fails_ends_the_loop_with_its_reason(run, monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    failed = threading.Event()

    def step():
        raise RuntimeError("the physics exploded")

    loop = run(step, failed=failed.set)
    assert failed.wait(5.0)
    with pytest.raises(ArmError, match="the twin has ended: the physics exploded"):
        loop.call(lambda: None)


def test_a_loop_that_does_not_run_says_so():
    loop = StepLoop("the twin", 1_000_000, lambda: None)
    with pytest.raises(ArmError, match="the twin does not run; start it first"):
        loop.call(lambda: None)
    loop.stop()
