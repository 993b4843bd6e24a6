"""How a Franka follows, against a simulated robot: the torque a cycle, and a motion as fast as a task allows."""

import time
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from bid_ros.control.setpoint import JointSetpoint
from bid_ros.core.errors import ArmError
from bid_ros.core.fault_words import COMMANDS_LOST
from bid_ros.core.margins import Margins
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.robot import FrankaRobot, open_robot
from bid_ros.robots.franka.torques import SENT_MS, SENT_TORQUE, ToldTorques
from bid_ros.robots.protocol import timed_joints
from bid_ros.robots.registry import build_arm, load_arm_config, task_arm
from bid_ros.system.folder import find_system

PERIOD_S = 0.01
SYSTEM = find_system("config/joints/franka_place")
CHAIN = task_arm(SYSTEM.task, SYSTEM.file("robot.yaml"), twin=True).chain


@pytest.fixture(scope="module")
def address(module_servers):
    server = module_servers("franky_sim_server.py")
    yield server.address
    server.close()


@pytest.fixture
def arm(address):
    built = build_arm("franka", load_arm_config(str(SYSTEM.file("robot.yaml")), address, True, "franka"))
    built.connect()
    yield built
    built.close()


def at_100_hz(seconds):
    begin = time.monotonic()
    for k in range(round(seconds / PERIOD_S)):
        yield time.monotonic() - begin
        time.sleep(max(0.0, begin + (k + 1) * PERIOD_S - time.monotonic()))


class Driven:
    """The robot as its process drives it, in this process: it knows the torques, which the arm does not."""

    def __init__(self, address, as_robot=False):
        config = load_arm_config(str(SYSTEM.file("robot.yaml")), address, True, "franka")
        self.robot = FrankaRobot(replace(config, twin=not as_robot), open_robot(config))
        self.home = np.array(self.robot.newest().joints)
        assert self.robot.follow(joints=True).result(5.0) == ""

    def send(self, joints, speeds):
        self.robot.send(timed_joints(JointSetpoint(joints, speeds), 7, time.monotonic_ns()))

    def torque(self):
        """Return the robot's time in ms, and the torque of joint 1 in Nm."""
        newest = self.robot.newest()
        return newest.robot_ms, newest.torques[0]


@pytest.fixture
def driven(address, request):
    made = Driven(address, getattr(request, "param", False))
    yield made
    assert made.robot.stop().result(5.0) == ""
    made.robot.close()


def test_a_real_address_demands_a_real_time_kernel(address):
    if Path("/sys/kernel/realtime").exists():
        pytest.skip("this machine has a real-time kernel")
    with pytest.raises(ArmError, match="PREEMPT_RT"):
        build_arm("franka", FrankaConfig(address)).connect()


def test_torque_rises_nearly_as_fast_as_a_robot_lets_it(driven):
    """A busy computer leaves states out, and may hold up franky's thread. It hardly does so in five steps."""
    steepest = []
    for _ in range(5):
        steepest.append(steepest_torque(driven))
        assert steepest[-1] <= 1.0, "Nm per ms, the limit of a robot"
        if steepest[-1] > 0.6:
            return
    raise AssertionError(f"{steepest} Nm per ms; 0.39 is what franky's default leaves, valid is above 0.6")


def steepest_torque(driven):
    """Step the set-point of joint 1 by 0.03 rad; return the fastest rise of its torque, Nm per ms."""
    still, seen = np.zeros(7), {}
    for t in at_100_hz(0.4):
        driven.send(driven.home + np.array([0.03 if t > 0.1 else 0.0, 0, 0, 0, 0, 0, 0]), still)
        for _ in range(8):
            ms, torque = driven.torque()
            seen[ms] = torque
            time.sleep(0.001)
    times = np.array(sorted(seen))
    torques = np.array([seen[ms] for ms in times])
    # Over 4 ms and more: a robot's clock counts whole ms, and a busy computer leaves states out.
    return max(
        (torques[j] - torques[i]) / (times[j] - times[i])
        for i in range(len(times))
        for j in range(i + 1, min(i + 10, len(times)))
        if times[j] - times[i] >= 4
    )


@pytest.mark.parametrize("driven", [True], ids=["robot"], indirect=True)
def test_a_robot_says_the_torques_that_libfranka_sent(driven):
    """A busy computer sends most torques late, but never for ``SENT_MS``. A tenth is timely in one of five swings."""
    margins = Margins()
    told = ToldTorques(driven.robot.newest().robot_ms, margins)
    timely = []
    for _ in range(5):
        off = differences(driven, told)
        assert len(off) > 50
        assert_no_difference_lasts(off)
        timely.append(np.quantile(list(off.values()), 0.1))
        if timely[-1] < 0.1:
            break
    assert timely[-1] < 0.1, f"a tenth of the states is off by up to {timely} Nm"
    assert margins["old torque"] < 1.0


def differences(driven, told):
    """Swing joint 1. Return how far the told torques are from the sent ones, Nm, by the robot's time in ms."""
    off, speed = {}, np.zeros(7)
    for t in at_100_hz(0.5):
        speed[0] = 0.4 * np.sin(12 * t)
        driven.send(driven.home + np.array([0.4 / 12 * (1 - np.cos(12 * t)), 0, 0, 0, 0, 0, 0]), speed)
        for _ in range(4):
            state = driven.robot.newest()
            if state.sent is not None and state.robot_ms not in off:
                told.doubt(state.robot_ms, state.torques, state.sent)
                off[state.robot_ms] = np.abs(np.array(state.torques) - state.sent).max()
            time.sleep(0.002)
    return off


def assert_no_difference_lasts(off):
    """From the first state that disagrees to the last: what happened while this test did not run says nothing."""
    for agrees, states in groupby(sorted(off.items()), lambda state: state[1] <= SENT_TORQUE):
        told_ms = [ms for ms, _ in states]
        assert agrees or told_ms[-1] - told_ms[0] < SENT_MS


def test_a_set_point_out_of_reach_pulls_no_harder_than_it_may(driven):
    """Spring and damper together: for a joint that does not move, the damper alone would add 100 Nm."""
    most = load_arm_config(str(SYSTEM.file("robot.yaml")), "twin", True, "franka").max_joint_torque
    seen = []
    for t in at_100_hz(0.06):
        far = driven.home + np.array([1.0, 0, 0, 0, 0, 0, 0])
        driven.send(far, np.array([1.0, 0, 0, 0, 0, 0, 0]) * (t > 0.0))
        seen.append(driven.torque()[1])
    # Friction compensation adds up to 1 Nm; 60 ms at 1 Nm a ms would reach 58 Nm.
    assert 0.5 * most < max(seen) < most + 2.0


def test_joints_follow_a_quick_swing_of_the_tool(arm):
    """Past the torque rate the arm swings about such a motion: then joint 3 misses by 0.15 rad and more.

    A busy computer may hold up franky's thread or the robot, and then the joints miss by as much. It hardly does so in
    three swings, and what is wrong with the arm it would be in each.
    """
    missed = []
    for _ in range(3):
        try:
            missed.append(most_missed(arm))
        except ArmError as error:
            assert COMMANDS_LOST in str(error)  # the computer stood still: this swing measures nothing
            missed.append(np.inf)
            arm.recover()
        if missed[-1] < 0.08:
            return
    raise AssertionError(
        f"missed by {missed} rad; 0.03 to 0.04 is usual where the torque keeps up, valid is below 0.08"
    )


def most_missed(arm):
    """Swing the tool at 3 Hz for 1.6 s; return what the worse of joints 1 and 3 missed in 95 % of the time, rad."""
    hertz, reach, centre = 3.0, 0.03, np.array([0.5, 0.0, 0.3])
    rest = np.array(load_arm_config(str(SYSTEM.file("robot.yaml")), "twin", True, "franka").home)
    phases = np.arange(0.0, 1.0, 0.002)
    places = centre + np.outer(np.sin(2 * np.pi * phases), [0.0, reach, 0.0])
    down = np.tile(np.diag([1.0, -1.0, -1.0]), (len(phases), 1, 1))
    joints = CHAIN.inverse(places, down, rest, np.tile(rest, (len(phases), 1)))
    speeds = np.gradient(joints, phases[1] / hertz, axis=0)
    arm.move_to_joints(joints[0])
    arm.start_joints()
    missed = []
    for t in at_100_hz(1.6):
        k = int(t * hertz % 1.0 / phases[1])
        share = min(1.0, t / 0.5)
        arm.command_joints(JointSetpoint(joints[0] + share * (joints[k] - joints[0]), share * speeds[k]))
        missed.append(np.abs(arm.state().joint_positions - joints[k]) if share == 1.0 else np.zeros(7))
    if fault := arm.state().fault:
        raise ArmError(fault)
    arm.stop()
    # Of 95 % of the time: a set-point that a busy computer sends late is missed once, a swing in every period.
    return float(np.quantile(missed, 0.95, axis=0)[[0, 2]].max())


@pytest.mark.parametrize(
    ("damping", "said"),
    [
        ((0.0,) * 7, "1 is 0 Nm s/rad; valid with 600 Nm/rad is at least 24.5"),
        ((25.0,) * 6 + (7.0,), "7 is 7 Nm s/rad; valid with 50 Nm/rad is at least 7.1, half of franky's"),
    ],
)
def test_joints_that_would_swing_are_refused(damping, said):
    with pytest.raises(ArmError, match=f"franka: joint_damping of joint {said}"):
        FrankaConfig("robot", joint_damping=damping)


def test_half_of_the_damping_of_the_tracker_is_enough():
    FrankaConfig("robot", joint_damping=(24.5, 24.5, 24.5, 24.5, 15.9, 12.3, 7.1))
