"""Connects to a robot that may not be there yet."""

import sys
import time
from collections.abc import Callable
from typing import Final

from bid_ros.core.errors import ArmError, RobotAwayError
from bid_ros.robots.base import Arm

AGAIN_S: Final = 0.2  # between two tries
ROBOT_AGAIN_S: Final = 1.0  # of a robot, which takes a minute to start
TELL_S: Final = 30.0  # between two sentences that say the same


def connect(arm: Arm, twin: bool, wait_s: float, ended: Callable[[], bool]) -> str:
    """Connect to a twin or a robot; return why a robot had to be waited for. Arguments and errors: as the other two."""
    if not twin:
        return await_robot(arm, wait_s, ended)
    connect_within(arm, wait_s, ended)
    return ""


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


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def await_robot(
    arm: Arm,
    wait_s: float,
    ended: Callable[[], bool],
    say: Callable[[str], None] = _tell,
    again_s: float = ROBOT_AGAIN_S,
) -> str:
    """Connect to a robot that a person may switch on only now.

    Args:
        arm: not connected.
        wait_s: how long to go on trying, s.
        ended: whether nobody waits for the robot any more.
        say: is told why the robot is not there, at once, whenever that changes, and every 30 s.
        again_s: s between two tries.

    Returns:
        Why it was not there last; empty if the robot was there at once.

    Raises:
        ArmError: what waiting cannot change, or what the last try raised.
    """
    deadline, said, said_at = time.monotonic() + wait_s, "", 0.0
    while True:
        try:
            arm.connect()
            return said
        except RobotAwayError as error:
            now = time.monotonic()
            if now >= deadline or ended():
                raise
            if str(error) != said or now - said_at > TELL_S:
                said, said_at = str(error), now
                say(f"error: {said}; waiting for it, {wait_s:g} s in all: Ctrl-C ends the run")
        until = time.monotonic() + again_s
        while time.monotonic() < until and not ended():
            time.sleep(min(again_s, AGAIN_S))
