"""Keeps Ctrl-C away from what it would break."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupt_after() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of this block where Ctrl-C comes within it.

    While rclpy converts a message, Python's own handler would raise it there, and rclpy make a RuntimeError of it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = threading.Event()
    former = signal.signal(signal.SIGINT, lambda *_: asked.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
    if asked.is_set():
        raise KeyboardInterrupt
