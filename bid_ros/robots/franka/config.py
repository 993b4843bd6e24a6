"""Configuration of a Franka arm: address, stiffness, contact thresholds, payload, gripper."""

import math
from typing import Annotated, Final

from pydantic import Field

from bid_ros.core.errors import ArmError
from bid_ros.core.settings import BY_CALLER, Quaternion, ToolPlace, settings
from bid_ros.robots.base import Dynamics
from bid_ros.robots.gripper import GripperThresholds

LEAST_DAMPING: Final = 0.5  # of franky's; with a quarter of it joints 1 and 3 of the twin swing for a second
OPEN_WIDTH = 0.08  # m, of the Franka Hand
HOME = (0.0, -math.pi / 4, 0.0, -3 * math.pi / 4, 0.0, math.pi / 2, math.pi / 4)
# Rad: what is beyond a turn is in degrees.
Joints = Annotated[tuple[Annotated[float, Field(ge=-6.3, le=6.3)], ...], Field(min_length=7, max_length=7)]
# kg m^2, and no load of a Franka has more.
Inertia = Annotated[tuple[Annotated[float, Field(ge=-1, le=1)], ...], Field(min_length=9, max_length=9)]
Friction = Annotated[tuple[Annotated[float, Field(ge=0, le=1)], ...], Field(min_length=7, max_length=7)]

JointStiffness = Annotated[tuple[Annotated[float, Field(ge=1, le=1000)], ...], Field(min_length=7, max_length=7)]
JointDamping = Annotated[tuple[Annotated[float, Field(ge=0, le=150)], ...], Field(min_length=7, max_length=7)]


@settings(error=ArmError)
class FrankaConfig:
    """A Franka Panda or FR3, or its twin.

    Attributes:
        address: host name or IP address of the robot (not of the Desk).
        twin: the address is a twin. A robot gets ``RealtimeConfig.Enforce``, a twin does not.
        joint_prefix: prefix of the joint names, ``fr3`` or ``panda``.
        home: joint positions in rad towards which the redundant joint is pulled.
        dynamics: share of the robot's limits for joint motions. The default suits a first run.
        translational_stiffness: stiffness of the Cartesian impedance, N/m, critically damped.
        rotational_stiffness: the same for rotation, Nm/rad.
        posture_stiffness: stiffness in Nm/rad that pulls the null space towards ``home``.
        joint_stiffness: stiffness of each joint where joints are commanded, Nm/rad. The default is that of libfranka's
            example ``joint_impedance_control``.
        joint_damping: damping of each joint, Nm s/rad, at least half of the default. Default: franky's, critical for a
            joint that carries 1 kg m^2. The first and the third joint turn the same mass, and overshoot with it.
        max_joint_torque: largest torque in Nm that a joint set-point out of reach can cause, by stiffness and damping
            together.
        friction_coulomb: friction of each joint, Nm, added in the direction of motion. Only the twin needs it, because
            a robot compensates its friction by itself.
        friction_viscous: the same in proportion to the joint speed, Nm s/rad.
        max_force: largest force in N per axis that a set-point out of reach can cause at the tool. The controller's
            error is clipped at ``max_force / translational_stiffness``.
        max_torque: the same for the torque, Nm per axis.
        torque_threshold: Nm of contact at which the robot stops by itself.
        force_threshold: N of contact at which the robot stops by itself.
        payload_mass: mass of the held object, without the hand, kg.
        payload_center: centre of mass of the payload from the flange, m.
        payload_inertia: inertia of the payload, kg m^2, row-major.
        tool_offset, tool_quaternion: pose of the tool frame in the nominal end-effector frame of the Desk, m, xyzw.
        gripper: whether a Franka Hand is mounted.
        gripper_open_width: opening of the open gripper, m.
        gripper_speed: speed of the gripper, m/s.
        gripper_force: force when closing, N.
        gripper_thresholds: widths that mean open and closed.
        connect_timeout_s: s to wait for an answer of the robot.
        state_timeout_s: s without a new state after which the arm counts as lost.
        silence_timeout_s: s without a new set-point after which a moving arm is stopped. An arm at rest may wait.
        beat_timeout_s: s without a beat of the process that drives the robot after which it is ended. The robot's own
            watchdog then stops a moving arm.

    Raises:
        ArmError: a value is out of its range.
    """

    address: Annotated[str, BY_CALLER]
    twin: Annotated[bool, BY_CALLER] = False
    joint_prefix: str = "fr3"
    home: Joints = HOME
    dynamics: Dynamics = Dynamics(0.05, 0.05, 0.05)
    translational_stiffness: Annotated[float, Field(ge=10, le=3000)] = 1000.0
    rotational_stiffness: Annotated[float, Field(ge=1, le=300)] = 60.0
    posture_stiffness: Annotated[float, Field(ge=0, le=50)] = 5.0
    joint_stiffness: JointStiffness = (600.0, 600.0, 600.0, 600.0, 250.0, 150.0, 50.0)
    joint_damping: JointDamping | None = None
    max_joint_torque: Annotated[float, Field(ge=1, le=40)] = 20.0
    friction_coulomb: Friction = (0.0,) * 7
    friction_viscous: Friction = (0.0,) * 7
    max_force: Annotated[float, Field(ge=1, le=100)] = 40.0
    max_torque: Annotated[float, Field(ge=0.5, le=30)] = 8.0
    torque_threshold: Annotated[float, Field(ge=1, le=100)] = 20.0
    force_threshold: Annotated[float, Field(ge=1, le=100)] = 20.0
    payload_mass: Annotated[float, Field(ge=0, le=3)] = 0.0
    payload_center: ToolPlace = (0.0, 0.0, 0.0)
    payload_inertia: Inertia = (0.0,) * 9
    tool_offset: ToolPlace = (0.0, 0.0, 0.0)
    tool_quaternion: Quaternion = (0.0, 0.0, 0.0, 1.0)
    gripper: bool = True
    gripper_open_width: Annotated[float, Field(ge=0.01, le=OPEN_WIDTH)] = OPEN_WIDTH
    gripper_speed: Annotated[float, Field(ge=0.01, le=0.1)] = 0.1
    gripper_force: Annotated[float, Field(ge=1, le=70)] = 40.0
    gripper_thresholds: GripperThresholds = GripperThresholds(0.045, 0.06)
    connect_timeout_s: Annotated[float, Field(ge=0.5, le=30)] = 5.0
    state_timeout_s: Annotated[float, Field(ge=0.05, le=1)] = 0.1
    silence_timeout_s: Annotated[float, Field(ge=0.02, le=0.5)] = 0.1
    beat_timeout_s: Annotated[float, Field(ge=0.05, le=1)] = 0.1

    def __post_init__(self) -> None:
        if not self.address:
            raise ArmError("franka: address is empty; valid is the host name or IP address of the robot or its twin")
        self.gripper_thresholds.check_reached(self.gripper_open_width)
        damping = self.joint_damping or (math.inf,) * 7
        for number, (own, stiffness) in enumerate(zip(damping, self.joint_stiffness, strict=True), start=1):
            least = LEAST_DAMPING * 2 * math.sqrt(stiffness)
            if own < least:
                raise ArmError(
                    f"franka: joint_damping of joint {number} is {own:g} Nm s/rad; valid with {stiffness:g} Nm/rad is "
                    f"at least {least:.1f}, half of franky's: with less the arm swings"
                )
