"""What a UR's joints can do: which set-points a UR can follow, and the model for tasks that command joints."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Final

from bid_ros.control.arm_model import ArmModel, JointLimits
from bid_ros.control.chain import classic_chain
from bid_ros.control.joint_follower import moved
from bid_ros.control.link_shapes import Capsule, capsules
from bid_ros.control.spatial import Quaternion, Vector, add, norm, times, turn_between, turned
from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import matrix_from_quaternion
from bid_ros.robots.protocol import TimedJoints, TimedSetpoint
from bid_ros.robots.ur.config import JOINT_NAMES, JOINTS, UrConfig
from bid_ros.robots.ur.kinematics import MODELS

# The joints are checked over the time of a stop, and over at least this long, s.
SHORTEST_S: Final = 0.02
NO_TURN: Final[Quaternion] = (0.0, 0.0, 0.0, 1.0)
SHARE: Final = 0.8  # of the stream's limits that chunks may use: with the rest it catches up with its set-points
OFFSETS: Final = {"ur5e": (0.138, 0.007), "ur5": (0.136, 0.016)}  # m of upper arm and forearm along the elbow's axis
NEVER_MEET: Final = ((0, 2), (4, 6))  # the upper arm turns beside the base, wrist 3 around wrist 1


def links(model: str) -> tuple[Capsule, ...]:
    """Return capsules around housings and tubes of a model of :data:`bid_ros.robots.ur.kinematics.MODELS`.

    Measured on the pictures of the twin (:mod:`bid_ros.robots.ur.twin.model`) for a UR5e. A UR5 has the same housings.
    """
    arm, (upper, fore) = MODELS[model], OFFSETS[model]
    d1, a2, a3, d4, d5, d6 = arm.d1, arm.a2, arm.a3, arm.d4, arm.d5, arm.d6
    return (
        (0, (0.0, 0.0, 0.02), (0.0, 0.0, 0.05), 0.075),
        (1, (0.0, 0.0, d1 - 0.04), (0.0, 0.0, d1 + 0.03), 0.068),
        (1, (0.0, 0.0, d1), (0.0, -0.03, d1), 0.068),
        (2, (0.0, 0.0, upper - 0.033), (0.0, 0.0, upper + 0.042), 0.068),
        (2, (0.0, 0.0, upper), (a2, 0.0, upper), 0.05),
        (2, (a2, 0.0, upper - 0.034), (a2, 0.0, upper + 0.039), 0.062),
        (3, (0.0, 0.0, fore - 0.031), (0.0, 0.0, fore + 0.04), 0.06),
        (3, (0.0, 0.0, fore), (a3, 0.0, fore), 0.042),
        (3, (a3, 0.0, fore - 0.036), (a3, 0.0, fore + 0.031), 0.048),
        (4, (0.0, 0.0, d4 - 0.049), (0.0, 0.0, d4 + 0.029), 0.047),
        (4, (0.0, 0.0, d4), (0.0, -0.028, d4), 0.047),
        (5, (0.0, 0.0, d5 - 0.026), (0.0, 0.0, d5 + 0.027), 0.047),
        (5, (0.0, 0.0, d5), (0.0, 0.028, d5), 0.047),
        (6, (0.0, 0.0, d6 - 0.026), (0.0, 0.0, d6 - 0.021), 0.043),
    )


class Reach:
    """Checks with the nominal kinematics. They differ from the controller's calibrated ones by millimetres.

    A check takes less than 0.1 ms.

    Args:
        config: model, tool and limits.
    """

    def __init__(self, config: UrConfig) -> None:
        self._config = config
        self._kinematics = MODELS[config.model]
        self._tool = config.tool

    def outside(self, joints: Sequence[float]) -> str:
        """Return one sentence if joint positions ``(6,)`` rad lie outside the limits; otherwise an empty text."""
        limits = zip(joints, self._config.joint_min, self._config.joint_max, strict=True)
        for number, (value, low, high) in enumerate(limits, 1):
            if not low <= value <= high:
                return (
                    f"joint {number} of the robot at {self._config.address} would be at {value:.3f} rad; "
                    f"valid is {low:.3f} to {high:.3f}"
                )
        return ""

    def refusal(self, setpoint: TimedSetpoint, joints: Sequence[float]) -> str:
        """Return one sentence if the arm cannot follow a set-point and stop after it; otherwise an empty text.

        Args:
            setpoint: the set-point.
            joints: measured joints, ``(6,)`` rad.
        """
        posture = self._posture(setpoint.position, setpoint.quaternion, joints)
        if posture is None:
            return self._unreachable(setpoint.position, "a set-point")
        soon_s = self._braking(setpoint)
        postures = [posture]
        for seconds in (soon_s, soon_s + self._config.extrapolate_s):
            place = add(setpoint.position, setpoint.linear_velocity, seconds)
            turn = turned(setpoint.quaternion, times(setpoint.angular_velocity, seconds))
            reached = self._posture(place, turn, postures[-1])
            if reached is None:
                return self._unreachable(place, "the stop after a set-point")
            postures.append(reached)
        # The shorter time: near a singular posture, a mean over a longer time would hide the peak.
        for number, (now, then) in enumerate(zip(posture, postures[1], strict=True), 1):
            rate = abs(then - now) / soon_s
            if rate > self._config.max_joint_speed:
                return (
                    f"a set-point needs {rate:.2f} rad/s of joint {number} of the robot at {self._config.address}, "
                    f"near a singular posture; valid is up to {self._config.max_joint_speed:g}"
                )
        return self.outside(posture) or self.outside(postures[-1])

    def joint_refusal(self, setpoint: TimedJoints) -> str:
        """Return one sentence if the arm cannot follow a set-point of the joints and stop after it; otherwise none."""
        config = self._config
        for number, rate in enumerate(setpoint.velocities, 1):
            if abs(rate) > config.max_joint_speed:
                return (
                    f"a set-point asks for {abs(rate):.2f} rad/s of joint {number} of the robot at {config.address}; "
                    f"valid is up to {config.max_joint_speed:g}"
                )
        stopping_s = 0.5 * max(map(abs, setpoint.velocities)) / config.max_joint_acceleration
        stopped = moved(setpoint.positions, setpoint.velocities, stopping_s + config.extrapolate_s)
        return self.outside(setpoint.positions) or self.outside(stopped)

    def _braking(self, setpoint: TimedSetpoint) -> float:
        """Return the s in which the set-point's own motion passes what it passes until it has braked to rest."""
        config = self._config
        speed = min(norm(setpoint.linear_velocity), config.max_speed)
        turn_rate = min(norm(setpoint.angular_velocity), config.max_turn_rate)
        return max(SHORTEST_S, 0.5 * speed / config.max_acceleration, 0.5 * turn_rate / config.max_turn_acceleration)

    def _posture(self, position: Vector, quaternion: Quaternion, near: Sequence[float]) -> list[float] | None:
        pose = (*position, *turn_between(NO_TURN, quaternion))
        try:
            # Without a limit: a joint at its end must be seen to pass it, not to take a whole turn back.
            posture: list[float] = self._kinematics.inverse(pose, near, self._tool, limit=math.inf).tolist()
        except ArmError:
            return None
        return posture

    def _unreachable(self, place: Vector, what: str) -> str:
        x, y, z = place
        distance = math.sqrt(x * x + y * y + z * z)
        return (
            f"{what} at [{x:.3f}, {y:.3f}, {z:.3f}] m has no inverse kinematics solution: the {self._config.model} at "
            f"{self._config.address} cannot hold its tool there, {distance:.2f} m from its base"
        )


def arm_model(config: UrConfig) -> ArmModel:
    """Return kinematics and limits of the joints of a UR, with the tool of its configuration.

    The limits are the configuration's. Those of position are by default those of Universal Robots, "UR5e technical
    specifications": 360 degrees either way. Speed and acceleration are :data:`SHARE` of the stream's: the data sheet
    allows 180 degrees a second, and names no acceleration.
    """
    names = tuple(f"{config.joint_prefix}{name}_joint" for name in JOINT_NAMES)
    speed = (SHARE * config.max_joint_speed,) * JOINTS
    acceleration = (SHARE * config.max_joint_acceleration,) * JOINTS
    limits = JointLimits(names, config.joint_min, config.joint_max, speed, acceleration)
    chain = classic_chain(MODELS[config.model].table)
    tool = chain.with_tool(config.tool_offset, matrix_from_quaternion(config.tool_quaternion))
    return ArmModel(tool, limits, (0.0,) * JOINTS, partial(capsules, links(config.model)), NEVER_MEET)
