"""Joint motions as goals of the trajectory controller: what is sent, and each way in which it fails."""

import time
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from memory_bus import MemoryBus, MemoryGoal, message
from ros_domain import own_domain
from ros_robot import TRAJECTORIES, ros_arm

from bid_ros.core.errors import ArmError
from bid_ros.robots.base import Dynamics
from bid_ros.robots.bus import Channel
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.driver import RosArm
from bid_ros.robots.ros.motion import GoalMotion, MinimumJerkCourse, StreamedMotion, joint_motion, trajectory
from bid_ros.robots.ros.twin.trajectory_controller import between, knots, refusal

NAMES = ("a", "b")
COURSE = MinimumJerkCourse(np.array([0.1, 0.2]), np.array([0.8, -0.4]), 1.7)
SHORT = MinimumJerkCourse(np.array([0.1, 0.2]), np.array([0.01, 0.0]), 0.05)
STAY = MinimumJerkCourse(np.array([0.1, 0.2]), np.zeros(2), 1e-6)
ACTION = "arm_controller/follow_joint_trajectory"


def test_a_goal_keeps_to_the_course_between_its_points():
    found = message({"header": {"stamp": {"sec": 0, "nanosec": 0}}, **trajectory(COURSE, NAMES)})
    assert refusal(found, NAMES, 0) == ""
    path = knots(found, NAMES, 5_000_000_000)
    for before, after in pairwise(path):
        for share in (0.25, 0.5, 0.75):
            at_ns = round(before.time_ns + share * (after.time_ns - before.time_ns))
            assert between(before, after, at_ns)[0] == pytest.approx(COURSE.at(at_ns / 1e9 - 5.0)[0], abs=2e-5)
    assert path[-1].joints == pytest.approx([0.9, -0.2]) and not path[-1].speeds.any()


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ({"motion": "action"}, ACTION),
        ({"motion": "action", "command_topic": "/left/c/joint_trajectory"}, "/left/c/follow_joint_trajectory"),
        ({}, ""),
    ],
)
def test_the_action_is_beside_the_topic_of_trajectories(parts, name):
    assert (
        RosConfig("arm", NAMES, **{"command_topic": "arm_controller/joint_trajectory", **parts}).motion_action == name
    )


class Follower:
    """Knows what it is told; it is no robot."""

    def __init__(self, sent_s=-1e9):
        self.told, self.sent_s = [], sent_s

    def expect(self, joints, speeds):
        self.told.append(joints)

    def release(self):
        self.told.append("released")

    def brake(self):
        self.told.append("braked")
        return 0.1


@pytest.fixture
def bus():
    made = MemoryBus()
    made.serve(Channel(ACTION, ""))
    return made


def motion(bus):
    made = GoalMotion(bus, ACTION, NAMES, Follower(), "arm")
    made.begin()
    return made


def on(action):
    action()
    return True


def ending(bus, status, code, text):
    """A step of a motion, after which the server ends its goal."""

    def step(action):
        action()
        for taken in bus.goals(ACTION):
            taken.finish({"error_code": code, "error_string": text}, status)
        return True

    return step


def test_a_goal_that_ends_well_leaves_nothing_behind(bus):
    made = motion(bus)
    assert made.run(STAY, ending(bus, "succeeded", 0, "")) and made.leave(True) == 0.0
    first, last = made._follower.told
    assert first == pytest.approx(STAY.start, abs=1e-3) and last == "released"


def test_a_goal_that_is_at_its_end_too_soon_was_replaced(bus):
    with pytest.raises(ArmError, match="robot at arm did not reach the goal: another trajectory took its place"):
        motion(bus).run(COURSE, ending(bus, "succeeded", 0, ""))


def test_a_goal_waits_until_nothing_of_the_topic_is_on_its_way(bus):
    begin = time.monotonic()
    made = GoalMotion(bus, ACTION, NAMES, Follower(begin), "arm")
    made.begin()
    assert not made.run(COURSE, lambda action: False)
    assert time.monotonic() - begin > 0.099


def test_a_stop_before_the_goal_was_sent_sends_none(bus):
    made = motion(bus)
    assert not made.run(COURSE, lambda action: False)
    assert bus.goals(ACTION) == []
    made.leave(False)
    made.clear()


@pytest.mark.parametrize(
    ("status", "code", "text", "said"),
    [
        ("aborted", -4, "Aborted due to path\ntolerance", r"a joint left its path \(Aborted due to path tolerance\)"),
        ("aborted", -5, "", r"a joint was not at the goal in time \(its controller says no more\)"),
        ("aborted", -1, "preempted", r"the goal is not valid, or was given up for another \(preempted\)"),
        ("aborted", -9, "x", r"did not reach the goal: error -9 \(x\)"),
        ("canceled", 0, "", "did not reach the goal: somebody cancelled it"),
        ("unknown", 0, "", "did not reach the goal: its controller knows nothing of it; was it restarted?"),
    ],
)
def test_a_goal_that_fails_says_why(bus, status, code, text, said):
    with pytest.raises(ArmError, match=said) as caught:
        motion(bus).run(COURSE, ending(bus, status, code, text))
    assert str(caught.value).startswith("robot at arm did not reach") and "\n" not in str(caught.value)


def stopped(bus):
    """A motion that was stopped after its goal was sent, and that goal."""
    made, steps = motion(bus), iter((True, True, False))
    assert not made.run(COURSE, lambda action: next(steps))
    (taken,) = bus.goals(ACTION)
    assert made.leave(False) == 0.1 and made._follower.told == ["braked"]
    assert not taken.canceled, "its controller would hold the joints at once"
    return made, taken


def test_a_goal_that_was_stopped_is_cancelled_after_the_stop_until_it_has_ended(bus):
    made, taken = stopped(bus)
    asked, begin = [], time.monotonic()

    def cancel():
        asked.append(time.monotonic() - begin)
        if len(asked) == 3:
            taken.finish({}, "canceled")

    taken.cancel = cancel
    made.clear()
    assert len(asked) == 3 and asked[0] > 0.09, "not before the arm is at rest, and not only once"


def test_a_goal_that_cannot_be_cancelled_is_one_sentence(bus, monkeypatch):
    monkeypatch.setattr("bid_ros.robots.ros.motion.CLEAR_S", 0.1)
    made, _ = stopped(bus)
    with pytest.raises(ArmError, match=f"robot at arm: /{ACTION} did not cancel a goal: look at the arm"):
        made.clear()


def test_an_action_that_never_ends_is_cancelled(bus, monkeypatch):
    monkeypatch.setattr("bid_ros.robots.ros.motion.LATE_S", 0.05)
    taken = []

    def step(action):
        action()
        for goal in bus.goals(ACTION):
            taken.append(goal)
            goal.cancel = partial(goal.finish, {}, "canceled")
        return True

    made = motion(bus)
    with pytest.raises(ArmError, match=f"robot at arm: /{ACTION} did not end a goal in time"):
        made.run(SHORT, step)
    made.clear()
    assert [goal.status for goal in taken] == ["canceled"]


@pytest.mark.parametrize(("ends", "fault"), [(False, f"robot at arm: /{ACTION} did not cancel a goal"), (True, "")])
def test_a_goal_that_neither_ends_nor_can_be_cancelled_is_a_fault(bus, monkeypatch, ends, fault):
    """Its controller, or the way to it, is gone in the middle of the goal: the arm may go on by itself."""
    monkeypatch.setattr("bid_ros.robots.ros.motion.LATE_S", 0.05)
    monkeypatch.setattr("bid_ros.robots.ros.motion.CLEAR_S", 0.1)
    arm, made = RosArm(RosConfig("arm", NAMES), bus), motion(bus)
    if ends:
        monkeypatch.setattr(MemoryGoal, "cancel", lambda goal: goal.finish({}, "canceled"))
    with pytest.raises(ArmError, match="did not end a goal in time"):
        arm._run(SHORT, made)
    assert vars(arm)["_robot"].fault.startswith(fault) and bool(vars(arm)["_robot"].fault) is not ends


def test_an_action_that_nobody_serves_or_that_refuses_is_one_sentence():
    bus = MemoryBus()
    made = motion(bus)
    bus.offered.clear()
    with pytest.raises(ArmError, match=f"robot at arm: nobody takes goals on /{ACTION}: start its joint trajectory"):
        made.run(COURSE, on)
    bus.serve(Channel(ACTION, ""), lambda goal: "inactive")
    with pytest.raises(ArmError, match="refused a goal"):
        made.run(COURSE, on)


def test_a_motion_is_streamed_unless_the_action_is_asked_for():
    bus = MemoryBus()
    config = {"command_topic": "arm_controller/joint_trajectory"}
    assert isinstance(joint_motion(RosConfig("arm", NAMES, **config), bus, Follower()), StreamedMotion)
    assert isinstance(joint_motion(RosConfig("arm", NAMES, motion="action", **config), bus, Follower()), GoalMotion)
    assert list(bus.offered) == [ACTION]


def test_through_the_real_middleware_a_goal_fails_with_the_reason_of_the_controller(own_servers):
    server = own_servers("ros_server.py", str(own_domain()), TRAJECTORIES)
    arm = ros_arm(server.address, motion="action", max_lag=3.0)
    arm.connect()
    try:
        start = arm.state().joint_positions
        assert server.ask("tolerant 0.05 0.01") == "tolerant"
        assert server.ask("still") == "still"
        with pytest.raises(ArmError, match=r"did not reach the goal: a joint left its path \(Aborted due to path tol"):
            arm.move_to_joints(start + 0.3, Dynamics(1.0, 1.0, 1.0))
        assert arm.state().fault == ""
    finally:
        arm.close()
