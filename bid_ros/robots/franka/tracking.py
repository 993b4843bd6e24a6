"""How a Franka follows set-points: Cartesian impedance for the tool's, joint impedance for the joints'."""

from collections.abc import Callable
from typing import TypeAlias

import franky
import numpy as np

from bid_ros.control.setpoint import JointSetpoint, Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.robots.base import ArmState, Array
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.motion import TORQUE_STEP, stop_motion


class ToolTracking:
    """Cartesian impedance control. franky sets critical damping, and the present pose as the first target.

    Args:
        robot: takes control of it.
        config: stiffness, and the force that a set-point out of reach can cause.
        measured: not needed.
    """

    def __init__(self, robot: franky.Robot, config: FrankaConfig, measured: Callable[[], ArmState]) -> None:
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

    def send(self, setpoint: Setpoint) -> None:
        """Hand a set-point to the control loop. Raises what franky raises."""
        pose = franky.Affine(setpoint.position, setpoint.quaternion)
        self._tracker.set_target(pose, franky.Twist(setpoint.linear_velocity, setpoint.angular_velocity))

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
        measured: returns the newest measured state.
    """

    def __init__(self, robot: franky.Robot, config: FrankaConfig, measured: Callable[[], ArmState]) -> None:
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

    def send(self, setpoint: JointSetpoint) -> None:
        """Hand a set-point to the control loop. Raises what franky raises, or ArmError for one that does not fit."""
        state = self._measured()
        here = state.joint_positions
        positions, velocities = setpoint.positions, setpoint.velocities
        if positions.shape != here.shape or velocities.shape != here.shape:
            raise ArmError(
                f"a set-point has {positions.size} joints and {velocities.size} speeds; valid are {here.size}"
            )
        if not (np.isfinite(positions).all() and np.isfinite(velocities).all()):
            raise ArmError(f"a set-point has the joints {positions.tolist()}; valid are finite joints and speeds")
        self._tracker.set_target(*self._within_torque(setpoint, state))

    def _within_torque(self, setpoint: JointSetpoint, state: ArmState) -> tuple[Array, Array]:
        """Return joints and speeds near the set-point's at which spring and damper keep ``max_joint_torque``."""
        spring = np.clip(self._stiffness * (setpoint.positions - state.joint_positions), -self._most, self._most)
        damper = self._damping * (setpoint.velocities - state.joint_velocities)
        damper = np.clip(damper, -self._most - spring, self._most - spring)
        return state.joint_positions + spring / self._stiffness, state.joint_velocities + damper / self._damping

    def stop(self) -> None:
        """Damp the arm to rest and leave control. Raises what franky raises."""
        self._tracker.stop(stop_motion())


Tracking: TypeAlias = ToolTracking | JointTracking


def _friction(config: FrankaConfig) -> franky.FrictionCompensationParams:
    return franky.FrictionCompensationParams(
        coulomb=list(config.friction_coulomb), viscous=list(config.friction_viscous), velocity_epsilon=0.02
    )
