"""What the joint trajectory controller of ros2_control does with trajectories and goals, cycle by cycle.

Written from its documentation (control.ros.org, "joint_trajectory_controller") and from
``joint_trajectory_controller.cpp`` (github.com/ros-controls/ros2_controllers), with position commands:

- A valid trajectory replaces the one that runs. Before its first point, the controller interpolates from the measured
  joints. After its last point it holds that point.
- A trajectory of the topic leaves a goal of the action as it is: that goal then ends with the new trajectory. A new
  goal aborts the one that runs.
- A joint outside its path tolerance aborts the goal, and the measured joints are held. So does one that is not at the
  goal in time. The tolerances of the newest goal count until the next one, also without a goal.
- A goal that is cancelled, or whose controller is deactivated, ends. The measured joints are held.

Tolerances: ``joint_trajectory_controller/tolerances.hpp`` (the same repository) and control_msgs, JointTolerance.

Trajectories are splines between points: linear with positions alone, cubic with velocities.
"""

import itertools
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import numpy as np

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.rotation import Array
from bid_ros.core.stamps import stamp_ns, stamp_to_ns
from bid_ros.robots.bus import Channel, ServedGoal

LOG = logging.getLogger(__name__)
ERASE: Final = -1.0
# Error codes of control_msgs/action/FollowJointTrajectory.
SUCCESSFUL: Final = 0
INVALID_GOAL: Final = -1
PATH_TOLERANCE_VIOLATED: Final = -4
GOAL_TOLERANCE_VIOLATED: Final = -5


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


@dataclass(frozen=True, eq=False)
class Tolerances:
    """Tolerances of the joints; 0 is any distance.

    Attributes:
        path, goal: ``(n,)`` rad, on the way and after its end.
        goal_time_s: s after the end within which the joints must be there; 0: any time.
    """

    path: Array
    goal: Array
    goal_time_s: float = 0.0

    @classmethod
    def alike(cls, joints: int, path: float = 0.0, goal: float = 0.0, goal_time_s: float = 0.0) -> Self:
        """Return the same for every joint."""
        return cls(np.full(joints, path), np.full(joints, goal), goal_time_s)

    def of_goal(self, goal: Any, names: Sequence[str]) -> "Tolerances":
        """Return what a goal of FollowJointTrajectory makes of these: 0 keeps them, -1 erases them.

        Unknown joints and other numbers below 0 leave all of them as they are.
        """
        try:
            time_s = _resolved(self.goal_time_s, stamp_to_ns(goal.goal_time_tolerance) / 1e9)
            path = _changed(self.path, goal.path_tolerance, names)
            return Tolerances(path, _changed(self.goal, goal.goal_tolerance, names), time_s)
        except ValueError as error:
            LOG.error("tolerances of a goal are ignored: %s", error)
            return self

    def astray(self, off: Array) -> bool:
        """Return whether joints that are ``(n,)`` rad off are too far from their way."""
        return bool(((self.path > 0) & (off > self.path)).any())

    def missed(self, off: Array) -> bool:
        """Return whether joints that are ``(n,)`` rad off are not at the goal."""
        return bool(((self.goal > 0) & (off > self.goal)).any())


def _changed(own: Array, told: Sequence[Any], names: Sequence[str]) -> Array:
    values = own.copy()
    for item in told:
        if item.name not in names:
            raise ValueError(f"there is no joint '{item.name}'; valid are {', '.join(names)}")
        number = list(names).index(item.name)
        values[number] = _resolved(own[number], item.position)
    return values


def _resolved(own: float, told: float) -> float:
    if told > 0:
        return told
    if abs(told - ERASE) < np.finfo(np.float32).eps:
        return 0.0
    if told < 0:
        raise ValueError(f"{told} is illegal; valid is 0 or more, or -1")
    return own


class TrajectoryController:
    """The joint trajectory controller, with position commands.

    Args:
        names: of its joints.
        tolerances: those of its parameters; None: any distance.

    Attributes:
        refused, aborted: number of messages that it did not take, and of trajectories that it gave up.
    """

    name = "joint_trajectory_controller"
    topic = f"{name}/joint_trajectory"
    type_name = "trajectory_msgs/msg/JointTrajectory"
    action = Channel(f"{name}/follow_joint_trajectory", "control_msgs/action/FollowJointTrajectory")

    def __init__(self, names: Sequence[str], tolerances: Tolerances | None = None) -> None:
        self._names = tuple(names)
        self._own = self._tolerances = tolerances or Tolerances.alike(len(self._names))
        self._path: list[Knot] = []
        self._new: list[Knot] = []
        self._holding = True
        self._goal: ServedGoal | None = None
        self.refused = self.aborted = 0

    def activate(self, joints: Array) -> None:
        """Hold the measured joints ``(n,)`` rad."""
        self._path, self._new, self._holding = [Knot(0, joints.copy(), None)], [], True

    def deactivate(self) -> None:
        """Give up the goal that runs."""
        self._end("aborted", INVALID_GOAL, "Current goal cancelled during deactivate transition.")

    def take(self, message: Any, now_ns: int) -> None:
        """Take a trajectory that is valid."""
        if not self.refuses(message, now_ns):
            self.follow(knots(message, self._names, now_ns))

    def refuses(self, message: Any, now_ns: int) -> str:
        """Return why a trajectory is refused, and count it; empty if it is valid."""
        why = refusal(message, self._names, now_ns)
        if why:
            self.refused += 1
            LOG.warning("%s refuses a trajectory: %s", self.name, why)
        return why

    def accept(self, goal: ServedGoal, now_ns: int) -> None:
        """Begin a goal, whose trajectory is valid, instead of the one that runs."""
        self._end("aborted", INVALID_GOAL, "Current goal preempted by new incoming action.")
        self.follow(knots(goal.message.trajectory, self._names, now_ns))
        self._goal, self._tolerances = goal, self._own.of_goal(goal.message, self._names)

    def follow(self, path: Sequence[Knot]) -> None:
        """Follow points from the next cycle on, instead of those that are followed."""
        self._new = list(path)

    def update(self, now_ns: int, joints: Array) -> Array | None:
        """Return the joints ``(n,)`` rad of the trajectory; None in the cycle in which it gives the trajectory up."""
        if self._goal is not None and self._goal.canceled:
            self._end("canceled", SUCCESSFUL, "")
            self.activate(joints)
        first = self._begin(now_ns, joints)
        off, late_s = np.abs(self._at(now_ns) - joints), (now_ns - self._path[-1].time_ns) / NANOSECONDS
        if self._holding:
            return self._at(now_ns)
        if (late_s < 0 or first) and self._tolerances.astray(off):
            self._abort(joints, PATH_TOLERANCE_VIOLATED, "Aborted due to path tolerance violation")
            return None
        if late_s >= 0:
            if not self._tolerances.missed(off):
                self._end("succeeded", SUCCESSFUL, "Goal successfully reached!")
            elif 0 < self._tolerances.goal_time_s < late_s:
                text = f"Aborted due to goal_time_tolerance exceeding by {late_s:f} seconds"
                self._abort(joints, GOAL_TOLERANCE_VIOLATED, text)
                return None
        return self._at(now_ns)

    def _begin(self, now_ns: int, joints: Array) -> bool:
        """Begin with new points. Return whether there are any."""
        if not self._new:
            return False
        still = None if self._new[0].speeds is None else np.zeros(len(joints))
        # The bridge to the first point begins where the joints are.
        self._path, self._new, self._holding = [Knot(now_ns, joints.copy(), still), *self._new], [], False
        if self._path[1].time_ns <= now_ns:
            del self._path[0]
        return True

    def _abort(self, joints: Array, code: int, text: str) -> None:
        self.aborted += 1
        LOG.warning("%s: %s", self.name, text)
        self._end("aborted", code, text)
        self.activate(joints)

    def _end(self, status: Literal["succeeded", "canceled", "aborted"], code: int, text: str) -> None:
        goal, self._goal = self._goal, None
        if goal is not None:
            goal.finish({"error_code": code, "error_string": text}, status)

    def _at(self, now_ns: int) -> Array:
        if now_ns >= self._path[-1].time_ns or len(self._path) == 1:
            return self._path[-1].joints
        after = next(number for number, knot in enumerate(self._path) if knot.time_ns > now_ns)
        return between(self._path[after - 1], self._path[after], now_ns)[0]
