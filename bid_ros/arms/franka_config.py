"""Configuration of a Franka arm: where it is, how stiff, how gentle, what it carries."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from bid_ros.arms.base import Dynamics
from bid_ros.arms.gripper import GripperThresholds
from bid_ros.errors import ArmError

HOME = (0.0, -math.pi / 4, 0.0, -3 * math.pi / 4, 0.0, math.pi / 2, math.pi / 4)
RANGES = {
    "translational_stiffness": (10.0, 3000.0),
    "rotational_stiffness": (1.0, 300.0),
    "posture_stiffness": (0.0, 50.0),
    "max_force": (1.0, 100.0),
    "max_torque": (0.5, 30.0),
    "torque_threshold": (1.0, 100.0),
    "force_threshold": (1.0, 100.0),
    "payload_mass": (0.0, 3.0),
    "gripper_open_width": (0.01, 0.08),
    "gripper_speed": (0.01, 0.1),
    "gripper_force": (1.0, 70.0),
    "connect_timeout_s": (0.5, 30.0),
    "state_timeout_s": (0.05, 1.0),
}
SIZES = {
    "home": 7,
    "friction_coulomb": 7,
    "friction_viscous": 7,
    "payload_center": 3,
    "payload_inertia": 9,
    "tool_offset": 3,
    "tool_quaternion": 4,
}


@dataclass(frozen=True)
class FrankaConfig:
    """A Franka Panda or FR3, or its twin.

    Attributes:
        address: host name or IP address of the robot (not of the Desk).
        twin: the address is a twin. A robot gets ``RealtimeConfig.Enforce``, a twin does not.
        joint_prefix: of the joint names, ``fr3`` or ``panda``.
        home: joint positions in rad of the posture that the redundant joint is drawn to.
        dynamics: share of the robot's limits for joint motions. The default suits a first run.
        translational_stiffness, rotational_stiffness: of the Cartesian impedance, N/m and Nm/rad, critically damped.
        posture_stiffness: Nm/rad with which the null space is drawn to ``home``.
        friction_coulomb, friction_viscous: per joint, Nm and Nm s/rad, added in the direction of motion. A robot
            compensates its friction by itself; only the twin needs them.
        max_force, max_torque: N and Nm per axis that a set-point out of reach can cause at the tool: the
            controller's error is clipped at ``max_force / translational_stiffness`` and so on.
        torque_threshold, force_threshold: Nm and N of contact at which the robot stops by itself.
        payload_mass: kg held beside the hand; payload_center: m from the flange; payload_inertia: kg m^2, row-major.
        tool_offset, tool_quaternion: pose of the tool frame in the nominal end-effector frame of the Desk, m, xyzw.
        gripper: whether a Franka Hand is mounted.
        gripper_open_width: m; gripper_speed: m/s; gripper_force: N when closing.
        gripper_thresholds: widths that mean open and closed.
        connect_timeout_s: s to wait for the robot to answer.
        state_timeout_s: s without a new state after which the arm counts as lost.

    Raises:
        ArmError: a value is out of its range.
    """

    address: str
    twin: bool = False
    joint_prefix: str = "fr3"
    home: tuple[float, ...] = HOME
    dynamics: Dynamics = field(default_factory=lambda: Dynamics(0.05, 0.05, 0.05))
    translational_stiffness: float = 1000.0
    rotational_stiffness: float = 60.0
    posture_stiffness: float = 5.0
    friction_coulomb: tuple[float, ...] = (0.0,) * 7
    friction_viscous: tuple[float, ...] = (0.0,) * 7
    max_force: float = 40.0
    max_torque: float = 8.0
    torque_threshold: float = 20.0
    force_threshold: float = 20.0
    payload_mass: float = 0.0
    payload_center: tuple[float, ...] = (0.0, 0.0, 0.0)
    payload_inertia: tuple[float, ...] = (0.0,) * 9
    tool_offset: tuple[float, ...] = (0.0, 0.0, 0.0)
    tool_quaternion: tuple[float, ...] = (0.0, 0.0, 0.0, 1.0)
    gripper: bool = True
    gripper_open_width: float = 0.08
    gripper_speed: float = 0.1
    gripper_force: float = 40.0
    gripper_thresholds: GripperThresholds = field(default_factory=lambda: GripperThresholds(0.045, 0.06))
    connect_timeout_s: float = 5.0
    state_timeout_s: float = 0.5

    def __post_init__(self) -> None:
        if not self.address:
            raise ArmError("franka: address is empty; valid is the host name or IP address of the robot or its twin")
        for name, (low, high) in RANGES.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise ArmError(f"franka: {name} is {value}; valid is {low} to {high}")
        for name, size in SIZES.items():
            values = getattr(self, name)
            if len(values) != size or not np.isfinite(values).all():
                raise ArmError(f"franka: {name} is {list(values)}; valid is {size} finite numbers")
        for name in ("friction_coulomb", "friction_viscous"):
            if not all(0 <= value <= 1 for value in getattr(self, name)):
                raise ArmError(f"franka: {name} is {list(getattr(self, name))}; valid is 0 to 1 for each joint")
        if abs(float(np.linalg.norm(self.tool_quaternion)) - 1.0) > 1e-3:
            raise ArmError(f"franka: tool_quaternion is {list(self.tool_quaternion)}; valid is a unit quaternion xyzw")
