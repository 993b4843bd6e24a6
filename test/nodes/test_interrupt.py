"""Ctrl-C while rclpy converts a message."""

import signal
import threading

import pytest

from bid_ros.nodes.interrupt import interrupt_after


def test_an_interrupt_is_raised_when_the_block_has_ended_and_the_handler_is_back():
    former, done = signal.getsignal(signal.SIGINT), []
    with pytest.raises(KeyboardInterrupt), interrupt_after():
        signal.raise_signal(signal.SIGINT)
        done.append("the rest of the block")
    assert done and signal.getsignal(signal.SIGINT) is former
    with interrupt_after():
        pass


def test_an_error_of_the_block_comes_through_and_another_thread_has_no_signals():
    former = signal.getsignal(signal.SIGINT)
    with pytest.raises(ValueError, match="mine"), interrupt_after():
        raise ValueError("mine")
    assert signal.getsignal(signal.SIGINT) is former
    done = threading.Event()

    def work() -> None:
        with interrupt_after():
            done.set()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done.is_set()
