"""When the goals of the kitchen count as done."""

import numpy as np
import pytest

from bid_ros.bench.kitchen.catalogue import GOALS, NEAR, OBJECTS

START = np.zeros(OBJECTS)
START[14:18] = [-0.269, 0.35, 1.619, 1.0]


def test_there_are_the_seven_published_goals_and_none_is_done_at_the_start():
    assert set(GOALS) == {
        "bottom burner",
        "top burner",
        "light switch",
        "slide cabinet",
        "hinge cabinet",
        "microwave",
        "kettle",
    }
    assert not [name for name, goal in GOALS.items() if goal.done(START)]


@pytest.mark.parametrize("name", GOALS)
def test_a_goal_is_done_near_its_values_only(name):
    goal, objects = GOALS[name], START.copy()
    objects[list(goal.at)] = goal.values
    assert [each for each, other in GOALS.items() if other.done(objects)] == [name]
    objects[goal.at[-1]] += NEAR - 0.01
    assert goal.done(objects)
    objects[goal.at[-1]] += 0.02
    assert not goal.done(objects)
