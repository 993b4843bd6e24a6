"""Set-points for a controller that takes the tool's pose or twist itself, such as CRISP's or MoveIt Servo.

Its inverse kinematics and limits are its own. Nothing here checks joints.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Final

import numpy as np

from bid_ros.control.setpoint import Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import (
    Array,
    matrix_from_quaternion,
    matrix_from_vector,
    quaternion_from_matrix,
    vector_from_matrix,
)
from bid_ros.robots.bus import Bus, Channel, Values, stamp
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.tool import Pose

HISTORY: Final = 256  # set-points that are kept: more than come in the longest lag
# A twist makes up for so much at most. More would be a jump of the measured pose, or a tool that something holds: it
# must not get faster and faster.
CORRECTED_M: Final = 0.05
CORRECTED_RAD: Final = 0.2
FAR_M: Final = 0.2  # from where it is due, at which the tool does not follow
FAR_RAD: Final = 0.5


class ToolFollower:
    """Passes set-points on.

    Args:
        bus: of the robot.
        topic: of PoseStamped or TwistStamped.
        frame: that the values count in.
        measured: returns position ``(3,)`` m and rotation ``(3, 3)`` of the tool.
        pose_gain: 1/s, how fast a twist makes up for a wrong pose. None: poses are published.
        tool: position ``(3,)`` m and rotation ``(3, 3)`` of the tool in the link that the controller moves. What is
            published is of that link.
        lag_s: s after which the tool is where a twist sends it. The measured pose is held against the set-point of that
            much earlier: against the newest one it would be behind in every motion, and pushed beyond its end.
    """

    def __init__(
        self,
        bus: Bus,
        topic: str,
        frame: str,
        measured: Callable[[], Pose],
        pose_gain: float | None,
        tool: Pose,
        lag_s: float = 0.0,
    ) -> None:
        self._bus, self._topic, self._frame = bus, topic, frame
        self._measured, self._pose_gain, self._tool, self._lag_s = measured, pose_gain, tool, lag_s
        self._past: deque[tuple[float, Setpoint]] = deque(maxlen=HISTORY)  # steady times, s
        self._sent: Pose | None = None  # position and quaternion of the newest pose

    def begin(self, joints: Array) -> None:
        """Ask for the measured pose, or for standing still, whatever the joints are.

        Raises:
            ArmError: the measured pose is not finite.
        """
        self._past.clear()
        if self._pose_gain is None:
            position, rotation = self._measured()
            if not (np.isfinite(position).all() and np.isfinite(rotation).all()):
                raise ArmError(f"the tool is measured at {position.tolist()} m; valid are finite numbers")
            self._publish_pose(position, quaternion_from_matrix(rotation))
        else:
            self._publish_twist(np.zeros(3), np.zeros(3))

    def command(self, setpoint: Setpoint) -> None:
        """Publish a set-point. Raises ArmError if twists send the tool, and it is far from where it is due."""
        if self._pose_gain is None:
            self._publish_pose(setpoint.position, setpoint.quaternion)
            return
        position, rotation = self._measured()
        place, turned = self._due(setpoint, time.monotonic())
        way, turn = place - position, vector_from_matrix(turned @ rotation.T)
        _demand_near(float(np.linalg.norm(way)), float(np.linalg.norm(turn)))
        linear = setpoint.linear_velocity + self._pose_gain * _shortened(way, CORRECTED_M)
        angular = setpoint.angular_velocity + self._pose_gain * _shortened(turn, CORRECTED_RAD)
        from_tool = -(rotation @ self._tool[1].T @ self._tool[0])
        self._publish_twist(linear + np.cross(angular, from_tool), angular)

    def _due(self, newest: Setpoint, now_s: float) -> Pose:
        """Keep a set-point of now, s of steady time. Return where the tool should be now, as it lags."""
        self._past.append((now_s, newest))
        while len(self._past) > 1 and self._past[1][0] <= now_s - self._lag_s:
            self._past.popleft()
        (from_s, before), (until_s, after) = self._past[0], self._past[min(1, len(self._past) - 1)]
        share = min(max((now_s - self._lag_s - from_s) / max(until_s - from_s, 1e-9), 0.0), 1.0)
        rotation = matrix_from_quaternion(before.quaternion)
        way = vector_from_matrix(matrix_from_quaternion(after.quaternion) @ rotation.T)
        return before.position + share * (after.position - before.position), matrix_from_vector(share * way) @ rotation

    def brake(self) -> float:
        """Ask for the newest pose again, or for standing still. Return 0: how long that takes is the controller's.

        A stop may come because the measured pose is old or not a number. So it is not asked for.
        """
        if self._pose_gain is not None:
            self._publish_twist(np.zeros(3), np.zeros(3))
        elif self._sent is not None:
            self._publish_pose(*self._sent)
        return 0.0

    def lag(self, joints: Array) -> tuple[float, int]:
        """Return zeros: where the joints should be is the controller's."""
        return 0.0, 0

    def offer(self) -> None:
        """Get ready to publish. Raises ArmError for an unknown message type."""
        kind = "PoseStamped" if self._pose_gain is None else "TwistStamped"
        self._bus.offer(Channel(self._topic, f"geometry_msgs/msg/{kind}"))

    def _header(self) -> Values:
        return {"stamp": stamp(time.time_ns()), "frame_id": self._frame}

    def _publish_pose(self, position: Array, quaternion: Array) -> None:
        self._sent = position.copy(), quaternion.copy()
        offset, turn = self._tool
        rotation = matrix_from_quaternion(quaternion) @ turn.T
        pose = {
            "position": _named("xyz", position - rotation @ offset),
            "orientation": _named("xyzw", quaternion_from_matrix(rotation)),
        }
        self._bus.publish(self._topic, {"header": self._header(), "pose": pose})

    def _publish_twist(self, linear: Array, angular: Array) -> None:
        twist = {"linear": _named("xyz", linear), "angular": _named("xyz", angular)}
        self._bus.publish(self._topic, {"header": self._header(), "twist": twist})


def tool_follower(config: RosConfig, bus: Bus, measured: Callable[[], Pose]) -> ToolFollower:
    """Return what drives a robot's tool, ready to publish. Raises ArmError for an unknown message type."""
    gain = config.pose_gain if config.command == "twist" else None
    tool = np.array(config.tool_offset), matrix_from_quaternion(config.tool_quaternion)
    frame = config.command_frame or config.base_link
    follower = ToolFollower(bus, config.command_topic, frame, measured, gain, tool, config.twist_lag_s)
    follower.offer()
    return follower


def _demand_near(off_m: float, off_rad: float) -> None:
    """Raise ArmError if a tool is so far from where it is due that it cannot be following."""
    if not (off_m <= FAR_M and off_rad <= FAR_RAD):
        raise ArmError(
            f"the tool is measured {1000 * off_m:.0f} mm and {off_rad:.2f} rad from where it was sent; valid is up to "
            f"{1000 * FAR_M:.0f} mm and {FAR_RAD:g} rad: look at what holds it, and at who publishes its pose"
        )


def _shortened(way: Array, longest: float) -> Array:
    """Return a way ``(3,)`` in its direction, no longer than ``longest``."""
    return way * min(1.0, longest / max(float(np.linalg.norm(way)), 1e-12))


def _named(names: str, values: Array) -> Values:
    return dict(zip(names, np.asarray(values, dtype=np.float64).tolist(), strict=True))
