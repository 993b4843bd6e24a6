"""What a UR does with set-points of its joints: the stream's limits, its refusals, and its faults."""

import time
from itertools import pairwise

import numpy as np
import pytest
from robots.ur_sweep import at_rest, wait_until

from bid_ros.control.setpoint import JointSetpoint
from bid_ros.control.spatial import Pose
from bid_ros.core.errors import ArmError
from bid_ros.core.margins import Margins
from bid_ros.robots.base import Dynamics
from bid_ros.robots.protocol import TimedJoints, timed_joints
from bid_ros.robots.registry import build_arm
from bid_ros.robots.ur.config import JOINTS, UrConfig
from bid_ros.robots.ur.consistency import joint_course
from bid_ros.robots.ur.follower import UrJointFollower
from bid_ros.robots.ur.reach import Reach
from bid_ros.robots.ur.status import UrReading, near_joints
from bid_ros.robots.ur.twin.pendant import INITIAL_Q

MS = 1_000_000
PERIOD_S = 0.01
SPEED, ACCELERATION = (2.5,) * JOINTS, (12.0,) * JOINTS
STILL = (0.0,) * JOINTS
CONFIG = UrConfig("127.0.0.9", gripper=None)


def only(joint, value):
    return tuple(value * (number == joint) for number in range(JOINTS))


@pytest.mark.parametrize("seed", range(4))
def test_no_set_points_break_a_limit_of_the_stream(seed):
    random = np.random.default_rng(seed)
    follower = UrJointFollower(SPEED, ACCELERATION, 0.12, 0.03)
    follower.start(STILL, 0)
    now, places, times = 0, [np.zeros(JOINTS)], [0.0]
    for _ in range(400):
        now += int(random.integers(1, 10)) * MS
        if random.uniform() < 0.3:
            goal, rate = random.normal(0, 1, JOINTS), random.normal(0, 2, JOINTS)
            follower.accept(TimedJoints(now, tuple(goal.tolist()), tuple(rate.tolist())))
        places.append(np.array(follower.step(now)))
        times.append(now / 1e9)
    rates = [(b - a) / (t - s) for (a, b), (s, t) in zip(pairwise(places), pairwise(times), strict=True)]
    assert (np.abs(rates) <= 2.5 + 1e-9).all()
    steps = np.diff(times)[1:]
    assert (np.abs(np.diff(rates, axis=0)) <= 12.0 * steps[:, None] + 1e-9).all()


def test_silence_while_the_arm_moves_brakes_it_and_silence_at_rest_does_not():
    follower = UrJointFollower(SPEED, ACCELERATION, 0.12, 0.03)
    follower.start(STILL, 0)
    follower.accept(TimedJoints(0, STILL, STILL))
    for now in range(0, 500 * MS, 2 * MS):
        follower.step(now)
    assert not follower.silent
    follower.accept(TimedJoints(500 * MS, only(0, 0.1), only(0, 0.5)))
    for now in range(500 * MS, 1000 * MS, 2 * MS):
        follower.step(now)
    assert follower.silent and follower.at_rest


def test_the_reach_refuses_what_joints_cannot_do_and_names_them():
    reach = Reach(UrConfig("127.0.0.9", gripper=None, joint_max=(1.0,) * JOINTS))
    assert reach.joint_refusal(TimedJoints(0, STILL, STILL)) == ""
    assert "joint 2" in reach.joint_refusal(TimedJoints(0, only(1, 1.1), STILL))
    # Inside, but not where it could come to rest.
    assert "joint 3" in reach.joint_refusal(TimedJoints(0, only(2, 0.99), only(2, 1.0)))
    fast = reach.joint_refusal(TimedJoints(0, STILL, only(3, 2.6)))
    assert "2.60 rad/s of joint 4" in fast and "valid is up to 2.5" in fast


@pytest.mark.parametrize("bad", [np.full(6, np.nan), np.full(6, 1e9), np.zeros(5)])
def test_a_set_point_that_is_none_is_one_sentence(bad):
    with pytest.raises(ArmError, match="valid are 6 finite joints"):
        timed_joints(JointSetpoint(bad, np.zeros(6)), 6, 0)


def test_the_course_notices_joints_that_do_not_follow():
    pose = Pose((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))

    def doubts(shown):
        course = joint_course(CONFIG, Margins())
        course.begin(STILL, STILL, 0)
        found = []
        for step in range(100):
            now = step * 10 * MS
            course.sent(only(4, 0.5 * step * 0.01), now)
            joints = only(4, shown(step * 0.01))
            found.append(course.doubt(UrReading(step * 0.01, joints, STILL, pose, pose, 7, 1, 2), now, 0.0))
        return [what for what in found if what]

    assert doubts(lambda t: max(0.0, 0.5 * (t - 0.1))) == []
    assert "joint 5" in doubts(lambda t: 0.0)[0]
    assert "though no joint moves" in doubts(lambda t: 0.0)[0]
    assert doubts(lambda t: -0.5 * t)
    assert doubts(lambda t: float("nan"))


def test_a_posture_is_near_none_that_has_other_joints_or_nan():
    assert near_joints(STILL, only(0, 0.09)) and not near_joints(STILL, only(0, 0.11))
    assert not near_joints((), STILL) and not near_joints(STILL, (float("nan"),) * JOINTS)


@pytest.fixture(scope="module")
def robot(module_servers):
    return module_servers("ur_server.py", "e-series")


@pytest.fixture
def arm(robot):
    config = UrConfig(robot.address, twin=True, gripper=None, lookahead_time_s=0.05, gain=500.0, state_timeout_s=0.2)
    built = build_arm("ur", config)
    built.connect()
    built.move_to_joints(INITIAL_Q, Dynamics(1.0, 1.0, 1.0))
    built.start_joints()
    yield built
    built.recover()
    built.close()


def turn(arm, rate, seconds, joint=0):
    """Turn a joint at ``rate`` rad/s, ramped up in 0.2 s."""
    place, still = arm.state().joint_positions.copy(), np.zeros(JOINTS)
    begin = due = time.monotonic()
    while time.monotonic() < begin + seconds:
        speed = rate * min((time.monotonic() - begin) / 0.2, 1.0)
        place[joint] += speed * PERIOD_S
        still[joint] = speed
        arm.command_joints(JointSetpoint(place.copy(), still.copy()))
        due += PERIOD_S
        time.sleep(max(0.0, due - time.monotonic()))


def test_a_protective_stop_ends_as_it_does_for_the_tool(arm, robot):
    turn(arm, 0.3, 0.4)
    assert robot.ask("protective stop test") == "ok"
    with pytest.raises(ArmError, match="made a protective stop: look at what it met"):
        turn(arm, 0.3, 1.0)
    wait_until(lambda: at_rest(arm), 0.5, "rest")
    assert not arm.state().in_control
    with pytest.raises(ArmError, match="recover first"):
        arm.start_joints()


def test_silence_in_motion_stops_it_and_is_a_fault(arm):
    turn(arm, 0.3, 0.4)
    wait_until(lambda: arm.state().fault, 1.0, "the fault")
    assert "no set-point for 0.12 s" in arm.state().fault
    wait_until(lambda: at_rest(arm), 0.5, "rest")


def test_a_set_point_out_of_the_limits_stops_it_and_is_a_fault(arm):
    turn(arm, 0.3, 0.3)
    place = arm.state().joint_positions.copy()
    place[2] = 7.0
    with pytest.raises(ArmError, match=r"joint 3 of the robot at .* would be at 7\.000 rad"):
        arm.command_joints(JointSetpoint(place, np.zeros(JOINTS)))
    assert "joint 3" in arm.state().fault
    wait_until(lambda: at_rest(arm), 0.5, "rest")
