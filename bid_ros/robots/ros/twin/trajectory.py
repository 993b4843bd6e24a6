"""Joint trajectories as ros2_control's joint trajectory controller reads them.

Source: ros2_controllers, "joint_trajectory_controller", trajectory representation (control.ros.org): splines between
points, linear with positions alone, cubic with velocities; what a valid trajectory is.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bid_ros.core.rotation import Array
from bid_ros.core.stamps import stamp_ns, stamp_to_ns


@dataclass(frozen=True)
class Knot:
    """A point of a trajectory.

    Attributes:
        time_ns: wall time, ns.
        joints: ``(n,)`` rad, in the controller's order.
        speeds: ``(n,)`` rad/s; None: the trajectory tells positions alone.
    """

    time_ns: int
    joints: Array
    speeds: Array | None


def refusal(message: Any, names: Sequence[str], now_ns: int) -> str:
    """Return why a controller refuses a ``trajectory_msgs/JointTrajectory``; empty if it takes it.

    Args:
        message: the trajectory.
        names: joints of the controller, all of which it must name, in any order.
        now_ns: wall time, ns.
    """
    if sorted(message.joint_names) != sorted(names):
        return f"its joints are {', '.join(message.joint_names)}; valid are {', '.join(names)}"
    if not message.points:
        return "it has no points"
    times = [stamp_to_ns(point.time_from_start) for point in message.points]
    if any(later <= before for before, later in itertools.pairwise(times)):
        return "the times of its points do not increase"
    for point in message.points:
        if len(point.positions) != len(names) or len(point.velocities) not in (0, len(names)):
            return f"a point has {len(point.positions)} positions and {len(point.velocities)} velocities"
    if any(abs(speed) > np.finfo(np.float32).eps for speed in message.points[-1].velocities):
        return "its last point moves"
    start_ns = stamp_ns(message)
    return "it ends in the past" if start_ns and start_ns + times[-1] < now_ns else ""


def knots(message: Any, names: Sequence[str], now_ns: int) -> list[Knot]:
    """Return the points of a valid trajectory; a stamp of zero means now."""
    order = [list(message.joint_names).index(name) for name in names]
    start_ns = stamp_ns(message) or now_ns
    return [
        Knot(
            start_ns + stamp_to_ns(point.time_from_start),
            np.array(point.positions)[order],
            np.array(point.velocities)[order] if len(point.velocities) else None,
        )
        for point in message.points
    ]


def between(before: Knot, after: Knot, time_ns: int) -> tuple[Array, Array]:
    """Return joints and speeds ``(n,)``, rad and rad/s, at a time between two knots: the Hermite cubic, or a line."""
    seconds = (after.time_ns - before.time_ns) / 1e9
    s = min(max((time_ns - before.time_ns) / 1e9 / seconds, 0.0), 1.0) if seconds > 0 else 1.0
    if before.speeds is None or after.speeds is None or seconds <= 0:
        step = after.joints - before.joints
        return before.joints + s * step, step / seconds if seconds > 0 else np.zeros(len(step))
    a, b = seconds * before.speeds, seconds * after.speeds
    step = after.joints - before.joints
    joints = before.joints + a * s + (3 * step - 2 * a - b) * s**2 + (a + b - 2 * step) * s**3
    return joints, (a + 2 * (3 * step - 2 * a - b) * s + 3 * (a + b - 2 * step) * s**2) / seconds
