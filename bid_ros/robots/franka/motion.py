"""The two motions of a Franka arm under set-points: impedance control, and the stop that ends it."""

from __future__ import annotations

import franky
import numpy as np

from bid_ros.robots.franka.config import FrankaConfig

# The stop damps each joint, Nm s/rad, after a ramp in s. From 0.4 m/s it takes half as long as franky's default. At
# 1 rad/s it stays within the torque of the wrist joints.
STOP_DAMPING = (30.0, 30.0, 30.0, 30.0, 12.0, 12.0, 12.0)
STOP_RAMP_S = 0.1


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
