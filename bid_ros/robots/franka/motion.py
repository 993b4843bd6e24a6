"""What a Franka robot is told to do: to follow set-points, to stop, to recover; and how the end of it is awaited.

It follows set-points by impedance: Cartesian for the tool's, joint impedance for the joints'.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeAlias

import franky
import numpy as np

from bid_ros.robots.base import Array
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.errors import FRANKY_ERRORS
from bid_ros.robots.protocol import TimedJoints, TimedSetpoint

# The stop damps each joint, Nm s/rad, after a ramp in s. From 0.4 m/s it takes half as long as franky's default. At
# 1 rad/s it stays within the torque of the wrist joints.
STOP_DAMPING = (30.0, 30.0, 30.0, 30.0, 12.0, 12.0, 12.0)
STOP_RAMP_S = 0.1
# franky changes a commanded torque by at most `max_delta_tau` a cycle. libfranka's low-pass filter of 100 Hz then lets
# 0.386 of each change through. A robot takes 1 Nm a cycle: 2.5 Nm come out as 0.965. With franky's default of 1 Nm a
# fast motion is past the limit, and the arm swings about its set-points.
TORQUE_STEP: Final = 2.5

# How much of a commanded torque libfranka's filter lets through in a cycle of 1 ms. Source: libfranka, `lowpassFilter`.
PASSED: Final = 0.001 / (0.001 + 1.0 / (2.0 * math.pi * 100.0))
SENT: Final = 64  # torques that are kept

Measured: TypeAlias = Callable[[], tuple[tuple[float, ...], tuple[float, ...]]]
"""Returns the newest joints and joint speeds, rad and rad/s."""


def stop_motion() -> franky.TorqueStopMotion:
    """Return the motion that damps the arm to rest and leaves control."""
    return franky.TorqueStopMotion(damping=np.array(STOP_DAMPING), ramp_duration=STOP_RAMP_S, max_delta_tau=TORQUE_STEP)


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


class SentTorques:
    """The torques that libfranka sends: those that franky commands, through the filter.

    Each is computed from the one before, so that nothing that the robot reports later changes them.
    franky hands over what it commands in a thread of its own. In a twin that would cost a core that others need.

    Args:
        motion: of franky, which commands torques.
        config: of the arm.
    """

    def __init__(self, motion: Any, config: FrankaConfig) -> None:
        self._newest: tuple[float, ...] = ()
        self._kept: list[tuple[int, tuple[float, ...]]] = [(-1, ())] * SENT
        if not config.twin:
            motion.register_callback(self.commanded)

    def commanded(self, state: franky.RobotState, _: Any, __: Any, ___: Any, torques: franky.Torques) -> None:
        """Take the torques with which franky answers a state."""
        before = self._newest or tuple(np.asarray(state.tau_J_d).tolist())
        pairs = zip(before, torques.tau_J, strict=True)
        self._newest = tuple(sent + PASSED * (torque - sent) for sent, torque in pairs)
        told_ms = int(state.time.to_msec()) + 1
        self._kept[told_ms % SENT] = told_ms, self._newest

    def told(self, robot_ms: int) -> tuple[float, ...] | None:
        """Return the torques that the state of a robot's time should tell, ``(7,)`` Nm; None if nobody knows."""
        kept_ms, sent = self._kept[robot_ms % SENT]
        return sent if kept_ms == robot_ms else None


class ToolTracking:
    """Cartesian impedance control. franky sets critical damping, and the present pose as the first target.

    Args:
        robot: takes control of it.
        config: stiffness, and the force that a set-point out of reach can cause.
        measured: not needed.

    Attributes:
        sent: torques that were sent.
    """

    def __init__(self, robot: franky.Robot, config: FrankaConfig, measured: Measured) -> None:
        self._tracker = franky.CartesianImpedanceTracker(
            robot,
            translational_stiffness=config.translational_stiffness,
            rotational_stiffness=config.rotational_stiffness,
            translational_error_clip=np.full(3, config.max_force / config.translational_stiffness),
            rotational_error_clip=np.full(3, config.max_torque / config.rotational_stiffness),
            posture_task=franky.PostureTask(np.array(config.home), config.posture_stiffness),
            friction=_friction(config),
            max_delta_tau=TORQUE_STEP,
        )
        self.sent = SentTorques(self._tracker._motion, config)

    def send(self, setpoint: TimedSetpoint) -> None:
        """Hand a set-point to the control loop. Raises what franky raises."""
        pose = franky.Affine(np.array(setpoint.position), np.array(setpoint.quaternion))
        twist = franky.Twist(np.array(setpoint.linear_velocity), np.array(setpoint.angular_velocity))
        self._tracker.set_target(pose, twist)

    def stop(self) -> None:
        """Damp the arm to rest and leave control. Raises what franky raises."""
        self._tracker.stop(stop_motion())


class JointTracking:
    """Joint impedance control. franky sets the present joints as the first target.

    franky has no clip of the joint error. So a set-point is moved towards the measured joints, and its speeds towards
    the measured ones, until spring and damper together cannot pull with more than ``max_joint_torque``.

    Args:
        robot: takes control of it.
        config: stiffness, damping, and the torque that a set-point out of reach can cause.
        measured: returns the newest measured joints.

    Attributes:
        sent: torques that were sent.
    """

    def __init__(self, robot: franky.Robot, config: FrankaConfig, measured: Measured) -> None:
        self._stiffness = np.array(config.joint_stiffness)
        self._damping = 2.0 * np.sqrt(self._stiffness)  # franky's own
        if config.joint_damping is not None:
            self._damping = np.array(config.joint_damping)
        self._measured, self._most = measured, config.max_joint_torque
        self._tracker = franky.JointImpedanceTracker(
            robot,
            stiffness=self._stiffness,
            damping=self._damping,
            friction=_friction(config),
            max_delta_tau=TORQUE_STEP,
        )
        self.sent = SentTorques(self._tracker._motion, config)

    def send(self, setpoint: TimedJoints) -> None:
        """Hand a set-point to the control loop. Raises what franky raises."""
        self._tracker.set_target(*self._within_torque(setpoint))

    def _within_torque(self, setpoint: TimedJoints) -> tuple[Array, Array]:
        """Return joints and speeds near the set-point's at which spring and damper keep ``max_joint_torque``."""
        joints, speeds = map(np.array, self._measured())
        spring = np.clip(self._stiffness * (setpoint.positions - joints), -self._most, self._most)
        damper = self._damping * (setpoint.velocities - speeds)
        damper = np.clip(damper, -self._most - spring, self._most - spring)
        return joints + spring / self._stiffness, speeds + damper / self._damping

    def stop(self) -> None:
        """Damp the arm to rest and leave control. Raises what franky raises."""
        self._tracker.stop(stop_motion())


Tracking: TypeAlias = ToolTracking | JointTracking


def _friction(config: FrankaConfig) -> franky.FrictionCompensationParams:
    return franky.FrictionCompensationParams(
        coulomb=list(config.friction_coulomb), viscous=list(config.friction_viscous), velocity_epsilon=0.02
    )
