"""Configuration of a UR arm: where it is, how its servo loop runs, how fast it may be, what it carries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from bid_ros.arms.base import Dynamics
from bid_ros.arms.gripper import GripperThresholds
from bid_ros.arms.robotiq import RobotiqConfig
from bid_ros.arms.spatial import turn_between
from bid_ros.checks import check_range
from bid_ros.errors import ArmError
from bid_ros.kinematics.ur import MODELS

JOINTS: Final = 6
RATES: Final = (0, 125, 500)
MOST_JOINT: Final = math.radians(363)  # what a UR's own safety limits allow at most
RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "lookahead_time_s": (0.03, 0.2),
    "gain": (100.0, 2000.0),
    "max_speed": (0.01, 2.0),
    "max_acceleration": (0.1, 20.0),
    "max_turn_rate": (0.01, 3.0),
    "max_turn_acceleration": (0.1, 40.0),
    "max_joint_speed": (0.1, math.pi),
    "joint_deceleration": (1.0, 20.0),
    "silence_timeout_s": (0.02, 0.2),
    "extrapolate_s": (0.0, 0.1),
    # Between two of its commands the robot is not heard from for up to 40 ms at 125 Hz.
    "watchdog_hz": (5.0, 20.0),
    "payload_mass": (0.0, 5.0),
    "connect_timeout_s": (0.5, 30.0),
    "state_timeout_s": (0.1, 0.5),  # a set-point is reported back after up to 24 ms at 125 Hz
}
SIZES: Final = {
    "joint_min": JOINTS,
    "joint_max": JOINTS,
    "payload_center": 3,
    "tool_offset": 3,
    "tool_quaternion": 4,
}


@dataclass(frozen=True)
class UrConfig:
    """A UR5 (CB3) or UR5e (e-Series), or the twin of one.

    Attributes:
        address: host name or IP address of the controller.
        twin: the address is a twin.
        model: ``ur5e`` or ``ur5``; its nominal kinematics check set-points, the controller's own ones move the arm.
        joint_prefix: of the joint names.
        rate_hz: set-points a second that the robot gets: 125, 500 (e-Series only), or 0 for the controller's own rate.
        lookahead_time_s: s that ``servoj`` looks ahead. Longer is smoother; the arm lags about that much. 0.03 to 0.2.
        gain: proportional gain of ``servoj``, 100 to 2000. Higher follows closer and shakes sooner.
        max_speed, max_acceleration: of the tool, m/s and m/s^2, whatever the set-points do. Keep them above the task's
            limits: an arm that may not go faster than its set-points never makes up for where it fell behind.
        max_turn_rate, max_turn_acceleration: of the tool, rad/s and rad/s^2.
        max_joint_speed: rad/s. A set-point that needs more, as near a singular posture, is refused.
        joint_min, joint_max: rad, ``(6,)``. A set-point or joint target outside is refused.
        joint_deceleration: rad/s^2 of the stop of a joint motion.
        dynamics: share of 3.14 rad/s and of 10 rad/s^2 that joint motions use; a UR takes no jerk, it is ignored.
        silence_timeout_s: s without a new set-point until a moving arm is stopped. A set-point at rest may stay as
            long as it likes.
        extrapolate_s: s for which a set-point is carried on with its velocity, two or three periods of those who send
            them; from there on it stands still. In that time a tool may leave the workspace: 9 mm at 0.3 m/s. 0 to 0.1.
        watchdog_hz: the controller stops its program when it hears from us less often than this, 5 to 20.
        payload_mass: kg at the flange, gripper included; payload_center: m from the flange.
        tool_offset, tool_quaternion: pose of the tool frame in the flange's, m and xyzw.
        gripper: of a Robotiq 2F-85, or None without one; gripper_thresholds: widths that mean open and closed.
        connect_timeout_s: s to wait for the robot to answer and to start its program.
        state_timeout_s: age in s at which the arm counts as lost: of the newest state, or of a set-point that the robot
            has not reported back.

    Raises:
        ArmError: a value is out of its range.
    """

    address: str
    twin: bool = False
    model: str = "ur5e"
    joint_prefix: str = ""
    rate_hz: int = 0
    lookahead_time_s: float = 0.1
    gain: float = 300.0
    max_speed: float = 0.6
    max_acceleration: float = 6.0
    max_turn_rate: float = 1.8
    max_turn_acceleration: float = 15.0
    max_joint_speed: float = 2.5
    joint_min: tuple[float, ...] = (-2 * math.pi,) * JOINTS
    joint_max: tuple[float, ...] = (2 * math.pi,) * JOINTS
    joint_deceleration: float = 6.0
    dynamics: Dynamics = field(default_factory=lambda: Dynamics(0.1, 0.1, 1.0))
    silence_timeout_s: float = 0.12
    extrapolate_s: float = 0.03
    watchdog_hz: float = 10.0
    payload_mass: float = 0.0
    payload_center: tuple[float, ...] = (0.0, 0.0, 0.0)
    tool_offset: tuple[float, ...] = (0.0, 0.0, 0.0)
    tool_quaternion: tuple[float, ...] = (0.0, 0.0, 0.0, 1.0)
    gripper: RobotiqConfig | None = field(default_factory=RobotiqConfig)
    gripper_thresholds: GripperThresholds = field(default_factory=lambda: GripperThresholds(0.045, 0.06))
    connect_timeout_s: float = 10.0
    state_timeout_s: float = 0.15

    @property
    def tool(self) -> tuple[float, ...]:
        """Pose of the tool frame in the flange's as UR writes it, ``(6,)``: x y z in m and a rotation vector in rad."""
        x, y, z, w = self.tool_quaternion
        return (*self.tool_offset, *turn_between((0.0, 0.0, 0.0, 1.0), (x, y, z, w)))

    def __post_init__(self) -> None:
        if not self.address:
            raise ArmError("ur: address is empty; valid is the host name or IP address of the robot or its twin")
        if self.model not in MODELS:
            raise ArmError(f"ur: model is '{self.model}'; valid are {', '.join(MODELS)}")
        if self.rate_hz not in RATES:
            raise ArmError(f"ur: rate_hz is {self.rate_hz}; valid are 125, 500 and 0 for the controller's own rate")
        for name, (low, high) in RANGES.items():
            check_range("ur", name, getattr(self, name), low, high, ArmError)
        for name, size in SIZES.items():
            values = getattr(self, name)
            if len(values) != size or not np.isfinite(values).all():
                raise ArmError(f"ur: {name} is {list(values)}; valid is {size} finite numbers")
        for low, high in zip(self.joint_min, self.joint_max, strict=True):
            if not -MOST_JOINT <= low < high <= MOST_JOINT:
                raise ArmError(
                    f"ur: a joint's limits are {low} and {high}; valid is -{MOST_JOINT:.3f} <= joint_min < joint_max "
                    f"<= {MOST_JOINT:.3f}"
                )
        if abs(float(np.linalg.norm(self.tool_quaternion)) - 1.0) > 1e-3:
            raise ArmError(f"ur: tool_quaternion is {list(self.tool_quaternion)}; valid is a unit quaternion xyzw")
