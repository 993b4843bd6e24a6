"""How a goal's tolerances join those of the controller's parameters."""

import numpy as np
import pytest
from memory_bus import message

from bid_ros.robots.ros.twin.trajectory_controller import Tolerances

NAMES = ("a", "b")
OWN = Tolerances(np.array([0.1, 0.2]), np.array([0.01, 0.02]), 0.5)


def goal(path=(), at_goal=(), seconds=0):
    def told(items):
        return [{"name": name, "position": value} for name, value in items]

    time = {"sec": seconds, "nanosec": 0}
    return message({"path_tolerance": told(path), "goal_tolerance": told(at_goal), "goal_time_tolerance": time})


def test_what_a_goal_does_not_say_stays_and_minus_one_erases():
    found = OWN.of_goal(goal([("b", 0.3)], [("a", 0.0), ("b", -1.0)]), NAMES)
    assert found.path.tolist() == [0.1, 0.3] and found.goal.tolist() == [0.01, 0.0] and found.goal_time_s == 0.5
    assert OWN.of_goal(goal(seconds=2), NAMES).goal_time_s == 2.0
    assert OWN.path.tolist() == [0.1, 0.2], "those of the parameters stay as they are"


@pytest.mark.parametrize("wrong", [{"path": [("c", 0.1)]}, {"at_goal": [("a", -0.5)]}, {"seconds": -3}])
def test_what_is_illegal_leaves_all_of_them(wrong):
    assert OWN.of_goal(goal(**wrong), NAMES) is OWN


def test_zero_is_any_distance():
    free = Tolerances.alike(2, path=0.0, goal=0.1)
    assert not free.astray(np.array([9.0, 9.0]))
    assert free.missed(np.array([0.0, 0.2])) and not free.missed(np.array([0.1, 0.1]))
