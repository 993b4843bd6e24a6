"""A plugin of pytest that ends a test which nothing in Python can end: one that hangs in compiled code.

pytest-timeout raises an exception in the test, once. A test that waits for a lock in C++ never sees it, nor does a
fixture that hangs after it, and the suite waits for ever. Here a thread of ``faulthandler`` prints where each thread
hangs and ends the process. pytest-xdist names the test, which has failed, and goes on in a new worker.
"""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Generator
from typing import Any

import pytest

GRACE_S = 60.0
"""After the time that pytest-timeout gives a test."""
ERRORS = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep the standard error before a test's output is captured."""
    if "PYTEST_XDIST_WORKER" in os.environ:  # nobody's debugger
        config.stash[ERRORS] = os.dup(2)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Watch a test and its fixtures."""
    watch(item)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Watch the end of the fixtures; pytest itself ends the watch when a test fails."""
    watch(item)


def watch(item: pytest.Item) -> None:
    """From now on, end this process with status 1 if the test takes too long."""
    if ERRORS not in item.config.stash:
        return
    marker = item.get_closest_marker("timeout")
    seconds = GRACE_S + float(marker.args[0] if marker else item.config.getini("timeout"))
    faulthandler.dump_traceback_later(seconds, exit=True, file=item.config.stash[ERRORS])
