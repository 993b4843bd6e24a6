"""The connection to a Franka robot: its time limit and configuration, its newest state, and errors as sentences."""

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

import franky
import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import matrix_from_quaternion
from bid_ros.robots.franka.config import FrankaConfig

POLL_S: Final = 0.004  # between two readings
# franky raises RuntimeError("Net Exception") if libfranka passes on an error of its socket library.
FRANKY_ERRORS: tuple[type[Exception], ...] = (
    franky.Exception,
    franky.InvalidMotionTypeException,
    RuntimeError,
    ValueError,
)


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


def open_robot(config: FrankaConfig) -> franky.Robot:
    """Connect to the robot and configure it, without moving it.

    libfranka waits a minute for an address that does not answer. So it waits in a thread that is abandoned.

    Raises:
        ArmError: the robot does not answer in time, or refuses.
    """
    opened: Future[franky.Robot] = Future()

    def connect() -> None:
        try:
            opened.set_result(_configured(config))
        except FRANKY_ERRORS as error:
            opened.set_exception(error)

    threading.Thread(target=connect, name="connect", daemon=True).start()
    try:
        return opened.result(config.connect_timeout_s)
    except TimeoutError as error:
        raise ArmError(
            f"no answer from the robot at {config.address} within {config.connect_timeout_s:g} s: check its power, the "
            "cable and the address, and that no other program is connected to it"
        ) from error
    except FRANKY_ERRORS as error:
        raise ArmError(sentence(config.address, error)) from error


def sentence(address: str, error: Exception) -> str:
    """Return one sentence with the robot, the message of libfranka, and what to check."""
    text = " ".join(str(error).split()).removeprefix("libfranka: ").rstrip(".")
    return f"robot at {address}: {text}: {_advice(error, text)}"


def _advice(error: Exception, text: str) -> str:
    if isinstance(error, franky.IncompatibleVersionException):
        return "check that the robot's system image and the installed libfranka fit (versions: docs/how-to/franka.md)"
    if isinstance(error, franky.RealtimeException):
        return "check that a PREEMPT_RT kernel is running and that this user may set real-time priorities"
    if "refused" in text:
        return "check the address and that FCI is activated in Desk, or that the twin is running"
    if isinstance(error, franky.NetworkException) or "Net Exception" in text:
        return "check the cable, the robot's power and that the address is its own"
    if isinstance(error, franky.ControlException):
        return "look at the robot, clear what it met, then reset"
    return "check that the brakes are open, the user stop is released and Desk is in execution mode"


def _configured(config: FrankaConfig) -> franky.Robot:
    realtime = franky.RealtimeConfig.Ignore if config.twin else franky.RealtimeConfig.Enforce
    robot = franky.Robot(config.address, realtime_config=realtime)
    share = config.dynamics
    robot.relative_dynamics_factor = franky.RelativeDynamicsFactor(share.velocity, share.acceleration, share.jerk)
    robot.set_collision_behavior(config.torque_threshold, config.force_threshold)
    inertia = np.reshape(config.payload_inertia, (3, 3)).ravel(order="F").tolist()
    robot.set_load(config.payload_mass, list(config.payload_center), inertia)
    tool = np.eye(4)
    tool[:3, :3] = matrix_from_quaternion(config.tool_quaternion)
    tool[:3, 3] = config.tool_offset
    robot.set_ee(tool.ravel(order="F").tolist())
    return robot
