"""The arm seam: what every robot driver offers, whatever protocol is behind it.

A driver streams one Cartesian set-point at a time. It never decides what to do: limits, chunks and silence are the
servo's work, and a robot that is lost says so in :attr:`ArmState.fault`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bid_ros.errors import ArmError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ArmInfo:
    """What an arm is, known before it is connected.

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
        stamp_ns: when it was read, nanoseconds since 1970. It stands still while the robot is silent.
        joint_positions, joint_velocities: ``(7,)`` or ``(6,)``, rad and rad/s.
        tool_position: ``(3,)`` m, base frame.
        tool_quaternion: ``(4,)`` xyzw, tool to base.
        gripper_width: measured opening in m, NaN without a gripper.
        gripper_busy: a gripper command is running.
        in_control: set-points are being followed.
        fault: one sentence if the robot refuses to go on, else empty. Only :meth:`Arm.recover` clears it.
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


@dataclass(frozen=True)
class Setpoint:
    """Where the tool should be now, and how it moves there.

    Attributes:
        position: ``(3,)`` m, base frame.
        quaternion: ``(4,)`` xyzw, unit, tool to base.
        linear_velocity, angular_velocity: ``(3,)`` m/s and rad/s, along base axes.
    """

    position: Array
    quaternion: Array
    linear_velocity: Array
    angular_velocity: Array


@dataclass(frozen=True)
class Dynamics:
    """Share of the robot's own limits that a joint motion may use, each above 0 and up to 1.

    Raises:
        ArmError: a share is out of its range.
    """

    velocity: float
    acceleration: float
    jerk: float

    def __post_init__(self) -> None:
        for item in fields(self):
            share = getattr(self, item.name)
            if not 0 < share <= 1:
                raise ArmError(f"dynamics: {item.name} is {share}; valid is above 0 and up to 1")


@runtime_checkable
class Arm(Protocol):
    """A robot arm. Every method may be called from any thread; all errors are :class:`bid_ros.errors.ArmError`."""

    @property
    def info(self) -> ArmInfo:
        """What the arm is."""
        ...

    def connect(self) -> None:
        """Connect and configure, without moving.

        Raises:
            ArmError: nothing answers within a few seconds, or the robot refuses the configuration.
        """
        ...

    def state(self) -> ArmState:
        """Return the newest state without waiting for the robot.

        Raises:
            ArmError: not connected.
        """
        ...

    def start(self) -> None:
        """Begin to follow set-points, holding the present pose. Does nothing if it already does.

        Raises:
            ArmError: not connected, or a fault is pending.
        """
        ...

    def command(self, setpoint: Setpoint) -> None:
        """Hand over the newest set-point; returns at once.

        Raises:
            ArmError: not in control, or a fault is pending.
        """
        ...

    def command_gripper(self, width: float) -> None:
        """Ask for an opening in m; returns at once, and the newest request wins.

        Raises:
            ArmError: not connected, no gripper, or ``width`` is not finite.
        """
        ...

    def stop(self) -> None:
        """Bring the arm to rest in a controlled way and leave control. Never raises; may be called twice."""
        ...

    def recover(self) -> None:
        """Clear a fault, connecting again if needed. Only ever called because a person asked for it.

        Raises:
            ArmError: the fault remains.
        """
        ...

    def move_to_joints(self, positions: Array, dynamics: Dynamics | None = None) -> None:
        """Move to joint positions in rad and wait, on a person's request; ends out of control.

        Raises:
            ArmError: wrong shape, not connected, a fault is pending, or the motion failed.
        """
        ...

    def close(self) -> None:
        """Stop, disconnect and end all threads. May be called twice."""
        ...
