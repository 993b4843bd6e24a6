"""What a UR can follow to rest."""

import math
from dataclasses import replace

import numpy as np
import pytest

from bid_ros.control.setpoint import Setpoint
from bid_ros.control.spatial import ZERO
from bid_ros.core.errors import ArmError
from bid_ros.robots.protocol import TimedSetpoint, timed
from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.kinematics import UR5E
from bid_ros.robots.ur.reach import Reach
from bid_ros.robots.ur.status import pose_from_numbers
from bid_ros.robots.ur.twin.pendant import INITIAL_Q


def at(pose, stamp_ns=0, velocity=ZERO, turn_rate=ZERO):
    return TimedSetpoint(stamp_ns, pose.position, pose.quaternion, velocity, turn_rate)


INITIAL = pose_from_numbers(UR5E.forward(INITIAL_Q))


def test_a_set_point_is_timed_and_checked():
    place, turn = np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.0, 0.6, 0.8])
    assert timed(Setpoint(place, 1.005 * turn, place, place), 7) == TimedSetpoint(
        7, (1.0, 2.0, 3.0), pytest.approx((0.0, 0.0, 0.6, 0.8)), (1.0, 2.0, 3.0), (1.0, 2.0, 3.0)
    )
    for name in ("position", "quaternion", "linear_velocity", "angular_velocity"):
        for value in (math.nan, math.inf, -1e200):
            good = Setpoint(place, turn, place, place)
            bad = replace(good, **{name: np.append(getattr(good, name)[:-1], value)})
            with pytest.raises(ArmError, match="has a value that is not finite"):
                timed(bad, 7)


def test_reach_refuses_what_the_arm_cannot_follow_to_rest():
    config = UrConfig("a")
    reach, pose = Reach(config), INITIAL
    assert reach.refusal(at(pose), INITIAL_Q) == ""
    assert reach.refusal(at(pose, velocity=(0.0, 0.3, 0.0)), INITIAL_Q) == ""
    away = replace(pose, position=(-1.5, 0.0, 0.5))
    assert "a set-point at [-1.500, 0.000, 0.500] m has no inverse" in reach.refusal(at(away), INITIAL_Q)
    fast = at(pose, turn_rate=(0.0, 0.0, 9.0))
    assert "rad/s of joint" in reach.refusal(fast, INITIAL_Q)
    # The pose itself lies within reach, the stop from half a metre a second does not.
    edge = UR5E.forward([0.0, -0.06, 0.12, -0.06, -1.5708, 0.0])
    outwards = tuple(0.5 * edge[:3] / np.linalg.norm(edge[:3]))
    joints = [0.0, -0.06, 0.12, -0.06, -1.5708, 0.0]
    assert reach.refusal(at(pose_from_numbers(edge)), joints) == ""
    refusal = reach.refusal(at(pose_from_numbers(edge), velocity=outwards), joints)
    assert "the stop after a set-point" in refusal
    x = float(refusal.split("[")[1].split(",")[0])
    assert abs(x) > abs(edge[0]), "it names where the arm would come to rest"


def test_reach_keeps_the_joint_limits():
    low = [-6.28] * 6
    low[1] = -1.5
    assert Reach(UrConfig("robot", joint_min=tuple(low))).refusal(at(INITIAL), INITIAL_Q) == (
        "joint 2 of the robot at robot would be at -1.571 rad; valid is -1.500 to 6.283"
    )


def test_reach_keeps_room_to_brake_before_a_joint_limit():
    rate = 1.5
    config = UrConfig("a")
    stop = (config.extrapolate_s + 0.5 * rate / config.max_turn_acceleration) * rate
    for room, refused in ((0.9 * stop, True), (1.1 * stop, False)):
        high = [6.28] * 6
        high[5] = INITIAL_Q[5] + room
        # The flange looks straight down, so joint 6 turns about the base's z axis, the other way round.
        reason = Reach(UrConfig("a", joint_max=tuple(high))).refusal(
            at(INITIAL, turn_rate=(0.0, 0.0, -rate)), INITIAL_Q
        )
        assert reason.startswith("joint 6 of the robot at a would be at") == refused, reason


@pytest.mark.parametrize("joint", [0, 5])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_joint_at_its_end_does_not_count_as_one_a_whole_turn_away(joint, sign):
    """The controller would have to turn back the whole way, or to pass the limit."""
    joints = list(INITIAL_Q)
    joints[joint] = sign * 6.27
    beyond = list(joints)
    beyond[joint] = sign * 6.31
    reason = Reach(UrConfig("a")).refusal(at(pose_from_numbers(UR5E.forward(beyond))), joints)
    assert reason == f"joint {joint + 1} of the robot at a would be at {sign * 6.31:.3f} rad; valid is -6.283 to 6.283"
