"""Where the stream of a UR begins: at what the robot says it was sent to, if it stands there."""

import math
import re
import time
from dataclasses import replace
from multiprocessing import Pipe
from types import SimpleNamespace

import numpy as np
import pytest

from bid_ros.control.spatial import ZERO, Pose
from bid_ros.robots import loop as base_loop
from bid_ros.robots.protocol import (
    EXIT_LOST,
    EXIT_STUCK,
    MEMORY_SIZE,
    DriverMemory,
    DriverRequest,
    Mode,
    TimedSetpoint,
    shared_memory,
)
from bid_ros.robots.ur import driver
from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.echo import UrEcho
from bid_ros.robots.ur.kinematics import UR5E
from bid_ros.robots.ur.loop import UrLoop
from bid_ros.robots.ur.robot import UrRobot
from bid_ros.robots.ur.status import UrReading, near, pose_from_numbers
from bid_ros.robots.ur.twin.pendant import INITIAL_Q
from bid_ros.robots.ur.watch import Trouble

POSE = Pose((0.4, 0.0, 0.3), (1.0, 0.0, 0.0, 0.0))
JOINTS = tuple(UR5E.inverse((0.4, 0.0, 0.3, math.pi, 0.0, 0.0), INITIAL_Q).tolist())


class Robot:
    """Stands at POSE, says in real time that it was sent to ``target``, and keeps what it is sent."""

    rate_hz = 500

    def __init__(self, target):
        self.sent, self.target = [], target

    def read(self):
        robot_s = 0.002 * (time.monotonic_ns() // 2_000_000)
        return UrReading(robot_s, JOINTS, (0.0,) * 6, POSE, self.target, 7, 1, 2)

    def connected(self):
        return True

    def unheard_s(self):
        return 0.0

    def forget(self):
        pass

    def servo(self, pose):
        self.sent.append(pose)
        return True

    def keep_alive(self):
        pass

    def end_servo(self):
        return True


def looping(robot):
    """A loop that was asked to start its stream; our end of its requests, and its memory."""
    ours, theirs = Pipe()
    memory = DriverMemory(shared_memory(MEMORY_SIZE))
    loop = UrLoop(UrConfig("a", gripper=None), robot, memory, theirs)
    ours.send((DriverRequest.START,))
    return loop, ours, memory


def started(target):
    """Start the stream of a robot and run it for some periods; return the answer and what the robot was sent."""
    robot = Robot(target)
    loop, ours, _ = looping(robot)
    begin = time.monotonic_ns()
    for period in range(10):
        loop.tick(begin + 2_000_000 * period)
    return ours.recv(), robot.sent


def test_the_stream_begins_where_the_arm_was_sent_to():
    target = Pose((0.4, 0.0, 0.301), (1.0, 0.0, 0.0, 0.0))
    answer, sent = started(target)
    assert answer == ""
    assert sent and all(pose == target for pose in sent)


class SlowOnce(Robot):
    """Lets one of its set-points wait."""

    def servo(self, pose):
        super().servo(pose)
        time.sleep(0.05 if len(self.sent) == 5 else 0.002)
        return True


def test_a_command_that_waits_for_the_robot_makes_no_later_state_look_older():
    loop, _ours, memory = looping(SlowOnce(POSE))
    ages = []
    for _ in range(60):
        loop.tick(time.monotonic_ns())
        ages.append(time.monotonic_ns() - memory.read_state().steady_ns)
    assert sorted(ages[-30:])[15] < 8_000_000, "the median: this process may be held up, too"


@pytest.mark.parametrize(
    "numbers",
    [
        (0.4, 0.4, 0.6, math.pi, 0.0, 0.0),
        (0.4, 0.0, 0.34, math.pi, 0.0, 0.0),
        (0.4, 0.0, 0.3, math.pi - 0.2, 0.0, 0.0),
        (math.nan,) * 6,
        (1e300, 0.0, 0.3, math.pi, 0.0, 0.0),
    ],
)
def test_a_robot_that_says_it_was_sent_elsewhere_is_sent_nothing(numbers):
    answer, sent = started(pose_from_numbers(numbers))
    assert answer.startswith("robot at a says that it stands elsewhere than it was sent to: check")
    assert sent == []


def test_near_is_three_centimetres_and_a_tenth_of_a_radian():
    assert near(POSE, Pose((0.42, 0.02, 0.3), POSE.quaternion))
    assert not near(POSE, Pose((0.42, 0.03, 0.3), POSE.quaternion))
    turned = (math.cos(0.04), math.sin(0.04), 0.0, 0.0)
    assert near(POSE, Pose(POSE.position, turned))
    assert not near(POSE, Pose(POSE.position, (math.cos(0.06), math.sin(0.06), 0.0, 0.0)))


def test_the_fault_of_a_silent_robot_is_told_before_the_robot_is_asked_to_stop(monkeypatch):
    robot, told = Robot(POSE), []
    loop, _ours, memory = looping(robot)
    loop.tick(time.monotonic_ns())
    monkeypatch.setattr(base_loop, "os", SimpleNamespace(_exit=told.append))
    monkeypatch.setattr(loop._watch, "look", lambda at_rest: Trouble("silent", lost=True, silent=True))
    monkeypatch.setattr(robot, "end_servo", lambda: told.append(memory.read_state().fault))
    loop.tick(time.monotonic_ns())
    assert told == ["silent", EXIT_LOST]


class Sly(Robot):
    """Goes where it is sent, while its joints say that they stand."""

    def read(self):
        pose = self.sent[-1] if self.sent else POSE
        return replace(super().read(), pose=pose)


def test_a_robot_that_contradicts_itself_is_braked_by_set_points_and_then_sent_nothing():
    robot = Sly(POSE)
    loop, ours, memory = looping(robot)
    speed, times, sent_at_fault = 0.4, [], 0
    begin = time.monotonic()
    while not memory.read_state().fault or memory.read_state().mode is not Mode.IDLE:
        now = time.monotonic()
        assert now - begin < 3.0
        place = (0.4, speed * (now - begin), 0.3)
        memory.setpoint.write(TimedSetpoint(round(1e9 * now), place, POSE.quaternion, (0.0, speed, 0.0), ZERO))
        loop.tick(time.monotonic_ns())
        times += [now] * (len(robot.sent) - len(times))
        sent_at_fault = sent_at_fault or (len(robot.sent) if memory.read_state().fault else 0)
        time.sleep(0.002)
    fault = memory.read_state().fault
    assert re.match(r"robot at a contradicts itself, the tool is 2\d mm from where the joints put it; valid is", fault)
    assert memory.read_state().position[1] < 0.03, "no state is handed on after it"
    places = np.array([pose.position[1] for pose in robot.sent])
    speeds = np.diff(places) / np.diff(times)
    assert speeds[sent_at_fault - 5 : sent_at_fault].max() > 0.8 * speed
    assert speeds[-20:].max() == 0.0
    braking = speed**2 / 2 / UrConfig("a").max_acceleration
    assert 0.5 * braking < places[-1] - places[sent_at_fault] < braking + 0.02, (
        "it brakes, and neither jumps nor goes on"
    )
    count = len(robot.sent)
    for name in (DriverRequest.START, DriverRequest.CLEAR):
        ours.send((name,))
        loop.tick(time.monotonic_ns())
        while ours.poll():
            answer = ours.recv()
        assert answer == fault
    assert len(robot.sent) == count


class Stopped(Robot):
    """Refuses set-points from the third on, as a robot does whose stop is not in its states yet; measures its echo."""

    def __init__(self, target):
        super().__init__(target)
        self.echo = UrEcho(lambda: None)
        self.robot = UrRobot(UrConfig("a", gripper=None), self.rate_hz, None, self, self.echo)

    def servoL(self, *_):  # ur_rtde's name
        return len(self.sent) < 3

    def servo(self, pose):
        super().servo(pose)
        return self.robot.servo(pose)

    def forget(self):
        self.echo.forget()

    def unheard_s(self):
        return self.echo.late_s()


def test_a_robot_that_refuses_set_points_is_not_lost_for_those_it_never_reports(monkeypatch):
    lost = []
    monkeypatch.setattr(UrLoop, "_lose", lambda loop, reason: lost.append(reason))
    loop, _, memory = looping(Stopped(POSE))
    begin = time.monotonic_ns()
    for period in range(10):
        loop.tick(begin + 2_000_000 * period)
    state = memory.read_state()
    assert "refuses set-points" in state.fault
    end = time.monotonic() + 2 * UrConfig("a").state_timeout_s
    while time.monotonic() < end:
        loop.tick(time.monotonic_ns())
        time.sleep(0.002)
    assert lost == []
    assert memory.read_state().stamp_ns > state.stamp_ns


class Clock:
    """Time that only waiting moves."""

    def __init__(self):
        self.now_ns = 1_000_000_000

    def monotonic_ns(self):
        return self.now_ns

    def sleep(self, seconds):
        self.now_ns += round(1e9 * seconds)


@pytest.mark.parametrize("timeout_s", [0.1, 0.15, 0.2, 0.5])
def test_a_controller_that_answers_no_command_is_said_before_the_arm_ends_the_process(monkeypatch, timeout_s):
    config = UrConfig("a", gripper=None, state_timeout_s=timeout_s)
    ended, beats, clock = [], [], Clock()

    def end(status):
        ended.append((status, clock.now_ns / 1e9 - 1.0))

    monkeypatch.setattr(base_loop, "time", clock)
    monkeypatch.setattr(base_loop, "os", SimpleNamespace(_exit=end))
    monkeypatch.setattr(driver, "_demand_answer", lambda config: None)
    monkeypatch.setattr(driver.DriverLink, "__init__", lambda self, *given: beats.append(given[3]))
    loop = UrLoop(config, Robot(POSE), DriverMemory(shared_memory(MEMORY_SIZE)), Pipe()[1])
    driver.UrLink(config)
    loop._guard()
    ((status, after_s),) = ended
    assert status == EXIT_STUCK and timeout_s + 0.05 < after_s < beats[0] - 0.02
