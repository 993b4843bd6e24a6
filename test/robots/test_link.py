"""A computer that has nothing left to start a driver's process with."""

import gc
import resource
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace

import pytest

from bid_ros.core.errors import ArmError
from bid_ros.episodes.causes import COMPUTER, outcome_of_safety
from bid_ros.robots.link import DriverLink

NEEDED = 4  # descriptors of memory and requests; the start of a process opens others, but not always as many
CONFIG = SimpleNamespace(address="10.0.0.2", connect_timeout_s=1.0)


def open_now() -> set[int]:
    found = list(Path("/proc/self/fd").iterdir())  # it lists its own, which is closed by then
    return {int(path.name) for path in found if path.is_symlink()}


def refused() -> str:
    try:
        DriverLink("none", CONFIG, False, 0.1, "franky")
    except ArmError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("left", range(NEEDED))
def test_used_up_descriptors_are_one_sentence_and_leave_none_behind(left):
    gc.collect()  # what is collected meanwhile would leave descriptors free
    before, limits = open_now(), resource.getrlimit(resource.RLIMIT_NOFILE)
    free = (number for number in count() if number not in before)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (next(islice(free, left, None)), limits[1]))
        said = refused()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert said.startswith("the process that drives the robot at 10.0.0.2 cannot be started (Too many open files): end")
    assert outcome_of_safety("fault", said).code == COMPUTER
    gc.collect()
    assert open_now() <= before
