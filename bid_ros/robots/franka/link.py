"""The connection to a Franka robot: its time limit and configuration, errors as sentences, the two motions it makes."""

import threading

import franky
import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import matrix_from_quaternion
from bid_ros.robots.franka.config import FrankaConfig

# franky raises RuntimeError("Net Exception") if libfranka passes on an error of its socket library.
FRANKY_ERRORS: tuple[type[Exception], ...] = (
    franky.Exception,
    franky.InvalidMotionTypeException,
    RuntimeError,
    ValueError,
)
# The stop damps each joint, Nm s/rad, after a ramp in s. From 0.4 m/s it takes half as long as franky's default. At
# 1 rad/s it stays within the torque of the wrist joints.
STOP_DAMPING = (30.0, 30.0, 30.0, 30.0, 12.0, 12.0, 12.0)
STOP_RAMP_S = 0.1


def open_robot(config: FrankaConfig) -> franky.Robot:
    """Connect to the robot and configure it, without moving it.

    libfranka waits a minute for an address that does not answer. So it waits in a thread that is abandoned.

    Raises:
        ArmError: the robot does not answer in time, or refuses.
    """
    result: list[franky.Robot | Exception] = []

    def connect() -> None:
        try:
            result.append(_configured(config))
        except FRANKY_ERRORS as error:
            result.append(error)

    thread = threading.Thread(target=connect, name="connect", daemon=True)
    thread.start()
    thread.join(config.connect_timeout_s)
    if not result:
        raise ArmError(
            f"no answer from the robot at {config.address} within {config.connect_timeout_s:g} s: check its power, the "
            "cable and the address, and that no other program is connected to it"
        )
    if isinstance(result[0], Exception):
        raise ArmError(sentence(config.address, result[0])) from result[0]
    return result[0]


def sentence(address: str, error: Exception) -> str:
    """Return one sentence with the robot, the message of libfranka, and what to check."""
    text = " ".join(str(error).split()).removeprefix("libfranka: ").rstrip(".")
    return f"robot at {address}: {text}: {_advice(error, text)}"


def impedance_tracker(robot: franky.Robot, config: FrankaConfig) -> franky.CartesianImpedanceTracker:
    """Start impedance control. franky sets critical damping, and the present pose as the first target."""
    friction = franky.FrictionCompensationParams(
        coulomb=list(config.friction_coulomb), viscous=list(config.friction_viscous), velocity_epsilon=0.02
    )
    return franky.CartesianImpedanceTracker(
        robot,
        translational_stiffness=config.translational_stiffness,
        rotational_stiffness=config.rotational_stiffness,
        translational_error_clip=np.full(3, config.max_force / config.translational_stiffness),
        rotational_error_clip=np.full(3, config.max_torque / config.rotational_stiffness),
        posture_task=franky.PostureTask(np.array(config.home), config.posture_stiffness),
        friction=friction,
    )


def stop_motion() -> franky.TorqueStopMotion:
    """Return the motion that damps the arm to rest and leaves control."""
    return franky.TorqueStopMotion(damping=np.array(STOP_DAMPING), ramp_duration=STOP_RAMP_S)


def _advice(error: Exception, text: str) -> str:
    if isinstance(error, franky.IncompatibleVersionException):
        return "check that the robot's system image and the installed libfranka fit (matrix in the README)"
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
