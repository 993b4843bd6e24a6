"""What a Franka robot is told to do beside tracking, and how the end of it is awaited."""

import time
from contextlib import suppress
from typing import Final

import franky
import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.robots.base import Array
from bid_ros.robots.franka.link import FRANKY_ERRORS
from bid_ros.robots.franka.reading import POLL_S

ARRIVED_RAD: Final = 0.01
SETTLE_S: Final = 1.0
# The stop damps each joint, Nm s/rad, after a ramp in s. From 0.4 m/s it takes half as long as franky's default. At
# 1 rad/s it stays within the torque of the wrist joints.
STOP_DAMPING = (30.0, 30.0, 30.0, 30.0, 12.0, 12.0, 12.0)
STOP_RAMP_S = 0.1
# franky changes a commanded torque by at most `max_delta_tau` a cycle. libfranka's low-pass filter of 100 Hz then lets
# 0.386 of each change through. A robot takes 1 Nm a cycle: 2.5 Nm come out as 0.965. With franky's default of 1 Nm a
# fast motion is past the limit, and the arm swings about its set-points.
TORQUE_STEP: Final = 2.5


def stop_motion() -> franky.TorqueStopMotion:
    """Return the motion that damps the arm to rest and leaves control."""
    return franky.TorqueStopMotion(damping=np.array(STOP_DAMPING), ramp_duration=STOP_RAMP_S, max_delta_tau=TORQUE_STEP)


def settle(robot: franky.Robot, target: Array, address: str) -> None:
    """Wait until the joints have followed the end of a motion.

    Args:
        robot: is read.
        target: joint positions ``(7,)``, rad.
        address: of the robot, for the error.

    Raises:
        ArmError: a joint stays more than ``ARRIVED_RAD`` away for ``SETTLE_S``.
    """
    end = time.monotonic() + SETTLE_S
    while (missed := float(np.abs(np.asarray(robot.state.q) - target).max())) > ARRIVED_RAD:
        if time.monotonic() > end:
            raise ArmError(f"robot at {address} ended {missed:.2f} rad from the goal: look at what holds it")
        time.sleep(POLL_S)


def recovered(robot: franky.Robot) -> bool:
    """Whether the robot is free of errors after its own recovery. An error of a past motion is dropped."""
    try:
        with suppress(franky.ControlException):
            if robot.is_in_control:
                robot.move(stop_motion(), asynchronous=True)
                robot.join_motion(2.0)
            robot.poll_motion()
        return bool(robot.recover_from_errors())
    except FRANKY_ERRORS:
        return False
