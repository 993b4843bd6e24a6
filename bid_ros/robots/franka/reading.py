"""A Franka robot's state with the times that belong to it."""

import time
from dataclasses import dataclass
from typing import Final

import franky

POLL_S: Final = 0.004  # between two readings


@dataclass(frozen=True)
class FrankaReading:
    """A robot state, when it came (wall and steady ns) and the robot's own time of it (ms)."""

    state: franky.RobotState
    stamp_ns: int
    steady_ns: int
    robot_ms: int


def read(robot: franky.Robot) -> FrankaReading:
    """Return the newest state that libfranka has, with the present times."""
    state = robot.state
    return FrankaReading(state, time.time_ns(), time.monotonic_ns(), int(state.time.to_msec()))
