"""Follows Cartesian set-points with joint targets, inside the limits of the joints."""

import math
import time
from collections.abc import Callable
from typing import Final, Protocol

import numpy as np

from bid_ros.control.setpoint import JointSetpoint, Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import Array, matrix_from_quaternion
from bid_ros.robots.bus import Bus
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.kinematics import ChainKinematics, kinematics_of
from bid_ros.robots.ros.limits import DriverLimits, JointPace
from bid_ros.robots.ros.streams import ForwardStream, TargetStream, TimedTarget, TrajectoryStream, braking
from bid_ros.robots.ros.tool import Pose
from bid_ros.robots.ros.urdf import UrdfChain

PLACE_TOLERANCE_M: Final = 0.001
APART_M: Final = 0.05  # by which a URDF without calibration may be wrong, and rad
APART_RAD: Final = 0.1
PULL: Final = 0.05  # share of the joints' speed limits that the pull towards the posture may use


class SetpointFollower(Protocol):
    """What turns set-points into commands of a controller."""

    def begin(self, joints: Array) -> None:
        """Begin to follow, at measured joints ``(n,)`` rad."""

    def command(self, setpoint: Setpoint) -> None:
        """Follow a set-point; ArmError if the arm cannot."""

    def brake(self) -> float:
        """Begin a stop, and return the s that it takes."""

    def lag(self, joints: Array) -> tuple[float, int]:
        """Return how far off a joint is at most, rad, and its number."""


class JointFollower:
    """Turns set-points into joint targets.

    Args:
        kinematics: of the arm and its tool.
        limits: of the joints.
        stream: takes the targets.
        ahead_s: s for which a target goes on before the joints brake.
        rotation_tolerance: largest difference of the tool's turn from the set-point's, rad.
        posture: ``(n,)`` rad, see :meth:`bid_ros.robots.ros.kinematics.ChainKinematics.inverse`.
        measured: returns where the tool was measured, position ``(3,)`` m and rotation ``(3, 3)``; None: where the
            kinematics have it. Set-points are followed as if the kinematics were off by what they are off at the start.

    Attributes:
        target: the newest; None while nothing is followed.
        sent_s: steady time of the newest command, s.
    """

    def __init__(
        self,
        kinematics: ChainKinematics,
        limits: DriverLimits,
        stream: TargetStream,
        ahead_s: float,
        rotation_tolerance: float,
        posture: Array | None,
        measured: Callable[[], Pose] | None = None,
    ) -> None:
        self._kinematics, self._limits, self._stream = kinematics, limits, stream
        self._ahead_s, self._rotation_tolerance, self._posture = ahead_s, rotation_tolerance, posture
        self._measured, self._pace = measured, JointPace(limits)
        self.target: TimedTarget | None = None
        self.sent_s = -math.inf

    def begin(self, joints: Array) -> None:
        """Begin at measured joints ``(n,)`` rad, at rest.

        Raises:
            ArmError: they lie outside the limits, or the tool was measured far from where they should have it.
        """
        self._demand(self._limits.outside(joints))
        if self._measured is not None:
            self._demand(self._apart(*self._kinematics.fit(joints, *self._measured())))
        self._pace.begin(time.monotonic())
        self.follow(joints, np.zeros(len(joints)))

    def follow(self, joints: Array, speeds: Array) -> None:
        """Stream a joint target of now, ``(n,)`` rad and rad/s, unchecked."""
        self.sent_s = time.monotonic()
        self.target = TimedTarget(time.time_ns(), joints, speeds)
        self._stream.follow(self.target, self._limits.stopping_s(speeds))

    def expect(self, joints: Array, speeds: Array) -> None:
        """Know where the joints should be now, ``(n,)`` rad and rad/s: something else sends them there."""
        self.target = TimedTarget(time.time_ns(), joints, speeds)

    def release(self) -> None:
        """Follow nothing any more, and send nothing."""
        self.target = None

    def command(self, setpoint: Setpoint) -> None:
        """Follow a set-point.

        Raises:
            ArmError: the arm cannot hold its tool there, not as fast, or could not stop inside its limits.
        """
        assert self.target is not None, "begin comes first"
        near, rotation = self.target.joints, matrix_from_quaternion(setpoint.quaternion)
        now_s = time.monotonic()
        most = PULL * self._limits.speed * self._pace.since_s(now_s)
        posture = None if self._posture is None else near + self._limits.way(near, self._posture)
        reached = self._kinematics.inverse(setpoint.position, rotation, near, posture, most)
        if reached.off_m > PLACE_TOLERANCE_M or reached.off_rad > self._rotation_tolerance:
            self._demand(self._unreachable(setpoint, reached.off_m, reached.off_rad))
        twist = np.concatenate([setpoint.linear_velocity, setpoint.angular_velocity])
        self._go(reached.joints, self._kinematics.speeds(reached.joints, twist), now_s)

    def command_joints(self, setpoint: JointSetpoint) -> None:
        """Follow a set-point of the joints, ``(n,)`` and finite.

        Raises:
            ArmError: it is outside the limits, too fast, or the arm could not stop inside its limits.
        """
        self._go(setpoint.positions.copy(), setpoint.velocities.copy(), time.monotonic())

    def _go(self, joints: Array, speeds: Array, now_s: float) -> None:
        """Stream a joint target, ``(n,)`` rad and rad/s, at a steady time in s, if it keeps the limits."""
        assert self.target is not None, "begin comes first"
        self._demand(self._limits.too_fast(speeds) or self._pace.take(joints - self.target.joints, now_s))
        rest = braking(TimedTarget(0, joints, speeds), self._ahead_s, self._limits.stopping_s(speeds))
        self._demand(self._limits.outside(joints) or self._limits.outside(rest))
        self.follow(joints, speeds)

    def brake(self) -> float:
        """Bring the joints to rest and follow nothing any more. Return the s that takes. Does not wait."""
        target, self.target = self.target, None
        if target is None:
            return 0.0
        now = self._stream.reference(target, self._limits.stopping_s(target.speeds), time.time_ns())
        stop_s, self.sent_s = self._limits.stopping_s(now.speeds), time.monotonic()
        self._stream.brake(now, stop_s)
        return stop_s

    def lag(self, joints: Array) -> tuple[float, int]:
        """Return how far joints ``(n,)`` rad are from where they should be at most, rad, and the joint's number."""
        if self.target is None:
            return 0.0, 0
        now = self._stream.reference(self.target, self._limits.stopping_s(self.target.speeds), time.time_ns())
        off = np.abs(self._limits.way(now.joints, joints))
        return float(off.max()), int(off.argmax())

    def _demand(self, refusal: str) -> None:
        if refusal:
            raise ArmError(refusal)

    def _apart(self, off_m: float, off_rad: float) -> str:
        """Return one sentence if the measured tool is so far from where the URDF has it that a frame is wrong."""
        if off_m <= APART_M and off_rad <= APART_RAD:
            return ""
        return (
            f"the transforms of the robot at {self._limits.address} have the tool {1000 * off_m:.0f} mm and "
            f"{off_rad:.2f} rad from where its URDF has it; valid is up to {1000 * APART_M:.0f} mm and {APART_RAD:g} "
            "rad: check tf_base and tf_tool, which must be base_link and tool_link"
        )

    def _unreachable(self, setpoint: Setpoint, off_m: float, off_rad: float) -> str:
        x, y, z = setpoint.position.tolist()
        return (
            f"a set-point at [{x:.3f}, {y:.3f}, {z:.3f}] m has no inverse kinematics solution near the posture of the "
            f"robot at {self._limits.address}: the nearest is {1000 * off_m:.1f} mm and {off_rad:.3f} rad off"
        )


def joint_follower(
    config: RosConfig, bus: Bus, chain: UrdfChain, limits: DriverLimits, measured: Callable[[], Pose] | None = None
) -> JointFollower:
    """Return what drives a robot's joints, ready to publish; see :class:`JointFollower` for what was measured.

    Raises:
        ArmError: a message type is not there.
    """
    trajectories = config.command == "joint_trajectory"
    stream: TargetStream = (
        TrajectoryStream(bus, config.command_topic, config.joint_names, config.ahead_s, config.stamped)
        if trajectories
        else ForwardStream(bus, config.command_topic)
    )
    stream.begin()
    ahead_s = config.ahead_s if trajectories else 0.0
    posture = np.array(config.home) if config.home else None
    tolerance = config.rotation_tolerance
    return JointFollower(kinematics_of(config, chain), limits, stream, ahead_s, tolerance, posture, measured)


def check_setpoint(setpoint: Setpoint) -> None:
    """Raise ArmError if a value of a set-point is not finite, or its quaternion is no rotation."""
    values = (setpoint.position, setpoint.quaternion, setpoint.linear_velocity, setpoint.angular_velocity)
    if not all(np.isfinite(value).all() for value in values):
        raise ArmError("a set-point has a value that is not finite; valid are finite numbers")
    length = float(np.linalg.norm(setpoint.quaternion))
    if not 0.99 < length < 1.01:
        raise ArmError(f"a set-point's quaternion has the length {length:.3f}; valid is 1")
