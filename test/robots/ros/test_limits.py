"""The limits of the joints, and how far they may go in a while."""

import math
from dataclasses import replace

import numpy as np
import pytest

from bid_ros.core.errors import ArmError
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.limits import BURST_S, NEAR_RAD, DriverLimits, JointPace
from bid_ros.robots.ros.urdf import UrdfChain

CHAIN = UrdfChain(("a", "b"), (-1.0, -math.inf), (1.0, math.inf), (2.0, 3.0), None, "")
LIMITS = DriverLimits(("a", "b"), "x", np.full(2, -3.0), np.full(2, 3.0), np.array([1.0, 2.0]), 4.0)
PERIOD_S = 0.01


def limits(chain=CHAIN, **parts):
    return DriverLimits.of(RosConfig("arm", ("a", "b"), **parts), chain)


def test_the_configuration_goes_before_the_urdf():
    assert limits().speed.tolist() == [2.0, 3.0]
    narrow = limits(joint_min=(-0.5, -0.5), joint_max=(0.5, 0.5), joint_speed=(1.0, 1.0))
    assert (narrow.lower.tolist(), narrow.upper.tolist(), narrow.speed.tolist()) == ([-0.5] * 2, [0.5] * 2, [1.0] * 2)


def test_what_breaks_a_limit_is_one_sentence_with_the_joint():
    found = limits(joint_acceleration=4.0)
    assert found.outside(np.array([0.9, 40.0])) == ""
    assert found.outside(np.array([1.2, 0.0])) == (
        "joint 'a' of the robot at arm would be at 1.200 rad; valid is -1.000 to 1.000"
    )
    assert "joint 'b'" in found.outside(np.array([0.0, math.nan]))
    assert found.too_fast(np.array([-2.0, 3.0])) == ""
    assert found.too_fast(np.array([0.0, -3.5])).startswith("a set-point needs 3.50 rad/s of joint 'b'")
    assert found.too_fast(np.array([math.nan, 0.0]))
    assert found.stopping_s(np.array([-2.0, 1.0])) == 0.5


def test_a_joint_that_turns_on_and_on_takes_the_shorter_way():
    turn = 2 * math.pi
    assert limits().way(np.array([0.9, 0.1]), np.array([-0.9, turn - 0.1])) == pytest.approx([-1.8, -0.2])
    bounded = limits(joint_min=(-9.0, -9.0), joint_max=(9.0, 9.0))
    assert bounded.way(np.zeros(2), np.array([0.0, 6.0])).tolist() == [0.0, 6.0]


@pytest.mark.parametrize("field", ["lower", "upper", "speed"])
def test_a_limit_that_nobody_knows_is_one_sentence(field):
    values = {"lower": CHAIN.lower, "upper": CHAIN.upper, "speed": CHAIN.speed, field: (0.0, math.nan)}
    name = {"lower": "joint_min", "upper": "joint_max", "speed": "joint_speed"}[field]
    with pytest.raises(ArmError, match=f"the URDF has no limit for {name} of joint 'b'; valid is {name} in robot.yaml"):
        limits(replace(CHAIN, **values))


def test_joints_in_another_order_than_the_urdf_are_refused():
    with pytest.raises(ArmError, match=r"joint_names are a, b; valid is the order of the URDF .*: b, a"):
        limits(replace(CHAIN, joint_names=("b", "a")))


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"joint_names": ("a", "a")}, "valid are names that differ"),
        ({"joint_names": ()}, "joint_names"),
        ({"joint_speed": (1.0,)}, "joint_speed has 1 numbers; valid are 2, one a joint, or none"),
        ({"joint_min": (0.0, 0.0), "joint_max": (1.0, 0.0)}, "valid is joint_min < joint_max"),
        ({"command": "torque"}, "command is 'torque'"),
        ({"address": ""}, "address is empty"),
        ({"state_timeout_s": 9.0}, "state_timeout_s is 9"),
    ],
)
def test_a_configuration_that_cannot_be_is_one_sentence(parts, said):
    with pytest.raises(ArmError, match=said):
        RosConfig(**{"address": "arm", "joint_names": ("a", "b"), **parts})


def gone(step, seconds):
    """How far joints get with a step in every period before one is refused, and the refusal."""
    pace, way = JointPace(LIMITS), np.zeros(2)
    pace.begin(0.0)
    for number in range(1, round(seconds / PERIOD_S) + 1):
        refusal = pace.take(np.array(step), number * PERIOD_S)
        if refusal:
            return way, refusal
        way += np.abs(step)
    return way, ""


def test_steps_at_the_limit_go_on_and_on():
    assert gone([0.01, -0.02], 10.0)[1] == ""


def test_what_early_steps_add_up_to_is_bounded():
    way, refusal = gone([0.0, 0.05], 10.0)
    assert refusal.startswith("a set-point needs") and "joint 'b' of the robot at x; valid is up to 2" in refusal
    assert way[1] < NEAR_RAD + 2.0 * (BURST_S + way[1] / 0.05 * PERIOD_S) + 1e-9


def test_a_late_step_may_be_as_long_as_the_pause():
    pace = JointPace(LIMITS)
    pace.begin(5.0)
    assert pace.take(np.array([0.3, 0.0]), 5.3) == "" and pace.since_s(5.31) < BURST_S
    assert pace.since_s(9.0) == BURST_S
    assert pace.take(np.array([0.3, 0.0]), 5.31), "the pause counts once"
