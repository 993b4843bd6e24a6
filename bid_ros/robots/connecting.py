"""Connects to a robot that may not be there yet."""

import time
from collections.abc import Callable
from typing import Final

from bid_ros.core.errors import ArmError
from bid_ros.robots.base import Arm

AGAIN_S: Final = 0.2  # between two tries


def connect_within(arm: Arm, wait_s: float, ended: Callable[[], bool]) -> None:
    """Connect to an arm, and go on trying for a while. A twin needs some time to start.

    Args:
        arm: not connected.
        wait_s: how long to go on trying, s.
        ended: whether nobody waits for the arm any more.

    Raises:
        ArmError: what the last try raised.
    """
    deadline = time.monotonic() + wait_s
    while True:
        try:
            arm.connect()
            return
        except ArmError:
            if time.monotonic() > deadline or ended():
                raise
            time.sleep(AGAIN_S)
