"""What CRISP's and MoveIt Servo's sources say of them, asked of the simulated ones."""

import numpy as np
import pytest
from memory_bus import message

from bid_ros.core.rotation import quaternion_from_matrix
from bid_ros.robots.ros.twin.cartesian import LATENCY_S, LINEAR, PERIOD_S, TIMEOUT_S, ImpedanceController, TwistServo
from bid_ros.robots.ros.twin.description import BASE, NAMES, RANGE, SPEED, TOOL, arm_urdf
from bid_ros.robots.ros.twin.trajectory_controller import TrajectoryController
from bid_ros.robots.ros.urdf import read_chain, serial_chain
from bid_ros.robots.ur.twin.model import HOME_Q

S = 1_000_000_000
START = 1_700_000_000 * S
CHAIN = serial_chain(read_chain(arm_urdf(), BASE, TOOL, "x"))
HOME = np.array(HOME_Q)
PLACE, TURN = CHAIN.forward(HOME)
CYCLE_S = 0.002


def xyz(values, names="xyz"):
    return dict(zip(names, (float(value) for value in values), strict=True))


def pose(place, turn=TURN, frame="anything"):
    quaternion = xyz(quaternion_from_matrix(turn), "xyzw")
    return message({"header": {"frame_id": frame}, "pose": {"position": xyz(place), "orientation": quaternion}})


def twist(linear, time_ns, frame=BASE):
    stamp = {"sec": time_ns // S, "nanosec": time_ns % S}
    parts = {"linear": xyz(linear), "angular": xyz(np.zeros(3))}
    return message({"header": {"stamp": stamp, "frame_id": frame}, "twist": parts})


class Impedance:
    """The controller, in an arm that is where it is told to be."""

    def __init__(self, publishers=1):
        self.controller = ImpedanceController(CHAIN, lambda: publishers, CYCLE_S)
        self.controller.activate(HOME)

    def after(self, seconds):
        for _ in range(round(seconds / CYCLE_S)):
            joints = self.controller.update(START, HOME)
        return CHAIN.forward(joints)


def test_a_pose_is_reached_without_overshoot_and_held_for_ever():
    arm = Impedance()
    goal = PLACE + np.array([0.05, 0.0, -0.02])
    arm.controller.take(pose(goal), START)
    way = [float(np.linalg.norm(arm.after(0.01)[0] - PLACE)) for _ in range(60)]
    assert max(way) < np.linalg.norm(goal - PLACE) + 2e-4 and way[1] < 0.3 * way[-1]
    np.testing.assert_allclose(arm.after(2.0)[0], goal, atol=1e-5)
    np.testing.assert_allclose(arm.after(0.1)[1], TURN, atol=1e-4)


def test_the_error_is_clipped_so_that_a_far_pose_pulls_no_harder():
    near, far = Impedance(), Impedance()
    near.controller.take(pose(PLACE - [0.0, 0.0, 0.5]), START)
    far.controller.take(pose(PLACE - [0.0, 0.0, 5.0]), START)
    assert np.linalg.norm(near.after(0.1)[0] - far.after(0.1)[0]) < 0.02


def test_poses_of_several_publishers_are_ignored():
    arm = Impedance(publishers=2)
    arm.controller.take(pose(PLACE + np.array([0.05, 0.0, 0.0])), START)
    assert arm.controller.refused == 1
    np.testing.assert_allclose(arm.after(0.5)[0], PLACE, atol=1e-6)


class Servo:
    """The node, its controller, and an arm that is where it is told to be."""

    def __init__(self):
        self.node = TwistServo(CHAIN, BASE, RANGE, SPEED)
        self.controller = TrajectoryController(NAMES)
        self.controller.activate(HOME)
        self.joints, self.now_ns = HOME, START

    def after(self, seconds, velocity=None):
        """Pass so many s with a twist that comes every 10 ms; return where the tool is."""
        for _ in range(round(seconds / PERIOD_S)):
            if velocity is not None:
                self.node.take(twist(velocity, self.now_ns))
            path = self.node.update(self.now_ns, self.joints)
            if path:
                self.controller.follow(path)
            for _ in range(round(PERIOD_S / CYCLE_S)):
                self.joints = self.controller.update(self.now_ns, self.joints)
                self.now_ns += round(CYCLE_S * S)
        return CHAIN.forward(self.joints)[0]


def test_a_twist_moves_the_tool_as_fast_as_it_says_and_a_little_later():
    arm, velocity = Servo(), np.array([0.1, 0.0, 0.05])
    early = arm.after(0.3, velocity)
    late = arm.after(0.5, velocity)
    np.testing.assert_allclose((late - early) / 0.5, velocity, atol=2e-3)
    behind = np.linalg.norm(PLACE + 0.8 * velocity - late) / np.linalg.norm(velocity)
    assert LATENCY_S / 2 < behind < LATENCY_S + 0.05


def test_a_twist_that_grows_old_halts_the_arm():
    arm, velocity = Servo(), np.array([0.1, 0.0, 0.0])
    before = arm.after(0.5, velocity)
    rest = arm.after(TIMEOUT_S + LATENCY_S + 0.05)
    assert np.linalg.norm(rest - before) < 0.1 * (TIMEOUT_S + LATENCY_S + 0.05)
    np.testing.assert_allclose(arm.after(0.5), rest, atol=1e-4)


def test_a_twist_of_an_unknown_frame_is_invalid_and_too_fast_ones_are_cut():
    arm = Servo()
    arm.node.take(twist([0.1, 0.0, 0.0], START, frame="world"))
    assert arm.node.refused == 1
    np.testing.assert_allclose(arm.after(0.3), PLACE, atol=1e-6)
    early = arm.after(0.2, np.array([0.0, 0.0, 3.0]))
    assert np.linalg.norm(arm.after(0.1, np.array([0.0, 0.0, 3.0])) - early) < 1.05 * 0.1 * LINEAR


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_near_a_singular_posture_the_arm_halts(direction):
    arm = Servo()
    straight = HOME.copy()
    straight[2] = 0.02  # the elbow is all but stretched
    arm.joints = straight
    arm.controller.activate(straight)
    place = CHAIN.forward(straight)[0]
    np.testing.assert_allclose(arm.after(0.3, np.array([0.0, 0.0, 0.1 * direction])), place, atol=1e-6)
