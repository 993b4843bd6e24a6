"""How far joints may be from their trajectory, for the joint trajectory controller.

Source: ros2_controllers, ``joint_trajectory_controller/tolerances.hpp`` (github.com/ros-controls/ros2_controllers);
control_msgs, JointTolerance.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from bid_ros.core.rotation import Array
from bid_ros.core.stamps import stamp_to_ns

LOG = logging.getLogger(__name__)
ERASE: Final = -1.0


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
