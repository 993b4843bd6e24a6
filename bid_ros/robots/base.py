"""The arm interface: what every robot driver offers, whatever its protocol.

A driver streams one set-point of the tool at a time; a :class:`JointArm` also those of its joints. It decides nothing:
the servo handles limits, chunks and silence. A lost robot sets :attr:`ArmState.fault`.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bid_ros.control.setpoint import JointSetpoint, Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.core.margins import Margins
from bid_ros.core.settings import Share, settings

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ArmInfo:
    """Properties of an arm that are known before it is connected.

    Attributes:
        name: driver name, for example ``franka``.
        address: host name or IP address.
        joint_names: names as in the robot's URDF, base to flange.
        finger_names: names of the gripper's finger joints, empty without a gripper.
        gripper_max: widest opening in m, 0 without a gripper.
    """

    name: str
    address: str
    joint_names: tuple[str, ...]
    finger_names: tuple[str, ...]
    gripper_max: float


@dataclass(frozen=True)
class ArmState:
    """One measured state.

    Attributes:
        stamp_ns: time at which it was read, nanoseconds since 1970. It does not advance while the robot is silent.
        joint_positions, joint_velocities: ``(7,)`` or ``(6,)``, rad and rad/s.
        tool_position: ``(3,)`` m, base frame.
        tool_quaternion: ``(4,)`` xyzw, tool to base.
        gripper_width: measured opening in m, NaN without a gripper.
        gripper_busy: a gripper command is running.
        in_control: the arm follows set-points.
        fault: one sentence if the robot refuses to go on; otherwise empty. Only :meth:`Arm.recover` clears it.
    """

    stamp_ns: int
    joint_positions: Array
    joint_velocities: Array
    tool_position: Array
    tool_quaternion: Array
    gripper_width: float
    gripper_busy: bool
    in_control: bool
    fault: str


@settings(error=ArmError)
class Dynamics:
    """Share of the robot's own limits that a joint motion may use, each above 0 and up to 1.

    Attributes:
        velocity, acceleration, jerk: share of the robot's limit.

    Raises:
        ArmError: a share is out of its range.
    """

    velocity: Share
    acceleration: Share
    jerk: Share


@runtime_checkable
class Arm(Protocol):
    """A robot arm. Every method may be called from any thread; all errors are :class:`bid_ros.core.errors.ArmError`."""

    @property
    def info(self) -> ArmInfo:
        """Properties of the arm."""

    def connect(self) -> None:
        """Connect and configure, without moving.

        Raises:
            ArmError: nothing answers within a few seconds, or the robot refuses the configuration.
        """

    def state(self) -> ArmState:
        """Return the newest state without waiting for the robot.

        Raises:
            ArmError: not connected.
        """

    def start(self) -> None:
        """Begin to follow set-points, from the present pose. A second call does nothing.

        Raises:
            ArmError: not connected, or a fault is pending.
        """

    def command(self, setpoint: Setpoint) -> None:
        """Take the newest set-point. Returns at once.

        Raises:
            ArmError: not in control, or a fault is pending.
        """

    def command_gripper(self, width: float) -> None:
        """Command an opening in m. Returns at once. The newest request wins.

        Raises:
            ArmError: not connected, no gripper, or ``width`` is not finite.
        """

    def stop(self) -> None:
        """Bring the arm to rest in a controlled way and leave control. Never raises; may be called twice."""

    def recover(self) -> None:
        """Clear a fault; connect again if needed. Call it only on a person's request.

        Raises:
            ArmError: the fault remains.
        """

    def move_to_joints(self, positions: Array, dynamics: Dynamics | None = None) -> None:
        """Move to joint positions in rad and wait. Call it only on a person's request. The arm ends out of control.

        Raises:
            ArmError: the shape is wrong, the arm is not connected, a fault is pending, or the motion failed.
        """

    def close(self) -> None:
        """Stop, disconnect and end all threads. May be called twice."""


@runtime_checkable
class CheckedArm(Protocol):
    """An arm whose states are checked, and that says how near honest ones came to the limits."""

    def margins(self) -> Margins:
        """Return how near they came since the arm was connected, without waiting."""


@runtime_checkable
class JointArm(Arm, Protocol):
    """An arm that also follows set-points of its joints. Faults, stops and silence are the same either way."""

    def start_joints(self) -> None:
        """Begin to follow set-points of the joints, from the present posture. A second call does nothing.

        Raises:
            ArmError: not connected, a fault is pending, or the arm follows set-points of the tool.
        """

    def command_joints(self, setpoint: JointSetpoint) -> None:
        """Take the newest set-point of the joints. Returns at once.

        Raises:
            ArmError: not in control of the joints, a fault is pending, or the set-point does not fit the arm.
        """
