"""A Franka that tells plausible lies is lost within 0.3 s, with what disagreed; one that is honest never is.

In lockstep, see ``lockstep.py``. What the robot says is also what franky's control law sees.
"""

import re
from dataclasses import replace

import numpy as np
import pytest
from robots.franka.lockstep import ZERO, Cell, Swing, ending

from bid_ros.control.spatial import Pose, turned
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.model import HOME_Q
from bid_ros.robots.protocol import EXIT_LOST, DriverRequest, Mode, TimedSetpoint

CONFIG = FrankaConfig("a", translational_stiffness=2500.0)
TWIN = replace(CONFIG, twin=True, state_timeout_s=0.5)
NO_NUMBER = float("nan")
FOUND_S = 0.3
FASTER = 1.2  # times the speed before the lie
# The robot's states are judged alike, whether set-points of the tool or of the joints move it.
JOINTS = pytest.param(True, id="joints", marks=pytest.mark.long)


def put(name, change):
    """Change one field of what the robot says: ``change(said, first, s)``."""
    return lambda said, first, ms: replace(
        said, **{name: change(getattr(said, name), getattr(first, name), ms / 1000.0)}
    )


def place(values, where, value):
    return (*values[:where], value, *values[where + 1 :])


def shifted(pose, x=0.0, z=0.0, turn=0.0):
    a, b, c = pose.position
    return Pose((a + x, b, c + z), turned(pose.quaternion, (0.0, turn, 0.0)))


def all_but_time(said, first, _):
    return replace(said, joints=first.joints, joint_speeds=first.joint_speeds, pose=first.pose, torques=first.torques)


def for_a_moment(lie, seconds):
    return lambda said, first, ms: lie(said, first, ms) if ms < 1000 * seconds else said


OFF = put("joints", lambda q, _, t: place(q, 1, q[1] + 1.0))
SPEEDS = r"joint [1-7] was \d+\.\d\d rad/s slower or faster 0\.\d{3} s before; valid is up to 0\.\d\d"
PATH = r"joint [1-7] is \d+\.\d{3} rad from where its speed leads; valid is up to 0\.\d{3}"
FROZEN = r"no (joint|tool) has moved for \d+ ms, though a joint turns at \d\.\d\d rad/s; valid is up to 20 ms"
STILL = r"no joint has moved for \d+ ms after its set-points went on; valid is up to 20 ms"
TOOL = r"the tool is \d+ mm from where the joints put it; valid is up to 5 mm"
STEP = r"the tool was \d+ mm away 0\.\d{3} s before; valid is up to \d+ mm"
TURN = r"the tool is turned by \d\.\d\d rad from where the joints put it; valid is up to 0\.05"
TURNED = r"the tool was turned by \d\.\d\d rad 0\.\d{3} s before; valid is up to 0\.\d\d"
CLOCK = r"its clock gained \d\.\d\d s on this computer's; valid is up to 0\.10 s"
LIES = {
    "everything is frozen but the time": (all_but_time, f"{PATH}|{FROZEN}|{STILL}"),
    "the joints are frozen": (put("joints", lambda _, q, t: q), f"{PATH}|{TOOL}|{FROZEN}"),
    "the pose is frozen": (put("pose", lambda _, p, t: p), f"{TOOL}|{FROZEN}"),
    "the pose is off by 1 m": (
        put("pose", lambda p, _, t: shifted(p, x=1.0)),
        STEP,
    ),
    "the pose is off by 12 mm": (put("pose", lambda p, _, t: shifted(p, x=0.012)), f"{TOOL}|{STEP}"),
    "the pose drifts": (put("pose", lambda p, _, t: shifted(p, z=0.3 * t)), TOOL),
    "the tool is turned": (put("pose", lambda p, _, t: shifted(p, turn=1.0)), TURNED),
    "the tool turns": (put("pose", lambda p, _, t: shifted(p, turn=0.5 * t)), TURN),
    "a joint is off by 1 rad": (OFF, PATH),
    "a joint is off by 1 rad for a moment": (for_a_moment(OFF, 0.02), PATH),
    "a joint drifts": (put("joints", lambda q, _, t: place(q, 3, q[3] + 0.5 * t)), f"{PATH}|{TOOL}"),
    "a joint turns at 11 rad/s": (
        put("joint_speeds", lambda v, _, t: place(v, 2, 11.0)),
        SPEEDS,
    ),
    "joints that move say that they stand": (put("joint_speeds", lambda v, _, t: (0.0,) * 7), f"{PATH}|{SPEEDS}"),
    "a joint that stands says that it moves": (put("joint_speeds", lambda v, _, t: place(v, 6, -1.0)), SPEEDS),
    "a joint is no number": (
        put("joints", lambda q, _, t: place(q, 5, NO_NUMBER)),
        r"its joints are \[.*nan.*\] rad; valid is within \+-5",
    ),
    "a joint lies out of its range": (
        put("joints", lambda q, _, t: place(q, 5, 40.0)),
        r"its joints are .* within \+-5",
    ),
    "the pose is no number": (
        put("pose", lambda p, _, t: Pose((NO_NUMBER, 0.0, 0.0), p.quaternion)),
        r"its tool is at \[nan, .*\] m; valid is within \+-2",
    ),
    "the clock runs at double pace": (put("robot_ms", lambda ms, first, t: 2 * ms - first), f"{CLOCK}|{PATH}"),
    "the clock jumps by 1 s": (put("robot_ms", lambda ms, _, t: ms + 1000), f"{CLOCK}|{PATH}|{FROZEN}"),
    "the clock steps back": (
        for_a_moment(put("robot_ms", lambda ms, _, t: ms - 5), 0.004),
        r"its time stepped back by \d ms; valid is none",
    ),
    "the clock stands": (put("robot_ms", lambda _, ms, t: ms), "silent"),
    "a torque jumps": (
        put("torques", lambda v, _, t: place(v, 1, v[1] + 30.0)),
        r"a torque changed by \d\d\.\d Nm in \d ms; valid is up to 5\.0",
    ),
    "a torque is too large": (
        put("torques", lambda v, _, t: place(v, 1, v[1] + 3000.0 * t)),
        r"a torque changed by .*|the torque of joint 2 is \d+ Nm; valid is up to 88",
    ),
}


@pytest.fixture(autouse=True)
def _ending():
    with ending():
        yield


def swinging(config, joints, seconds, **parts):
    cell = Cell(config, **parts)
    cell.run(0.1)
    assert cell.ask(DriverRequest.START, joints) == ""
    swing = Swing(cell, joints)
    cell.run(seconds, swing)
    assert cell.state.fault == "" and cell.state.mode is Mode.FOLLOWING
    return cell, swing


def found_after(cell, swing):
    """Go on until the loop gives the robot up; return the s that it took."""
    before = cell.now_s
    for _ in range(100):
        cell.run(0.01, swing)
        if cell.status is not None:
            return cell.now_s - before
    raise AssertionError("nothing was found in 1 s")


@pytest.mark.parametrize("joints", [pytest.param(False, id="tool"), JOINTS])
@pytest.mark.parametrize("lie", LIES)
def test_a_lie_in_motion_is_found_before_it_makes_the_arm_fast(lie, joints):
    change, what = LIES[lie]
    cell, swing = swinging(CONFIG, joints, 0.6)
    fastest = cell.robot.top_speed
    cell.robot.tell(change)
    assert found_after(cell, swing) <= FOUND_S
    assert cell.status == EXIT_LOST
    said = cell.state.fault
    assert re.search(what, said), said
    assert said.endswith("then reset")
    assert np.abs(np.array(cell.state.joints) - HOME_Q).max() < 0.9, "no lie is handed on"
    cell.run(0.4)
    assert cell.robot.top_speed <= FASTER * max(fastest, 0.25)
    assert cell.robot.tool_speed() < 0.01


@pytest.mark.parametrize("joints", [False, True], ids=["tool", "joints"])
@pytest.mark.parametrize("seconds", [0.0, 1.25], ids=["before it moves", "where it turns back"])
def test_an_arm_that_stands_in_every_bit_though_it_was_sent_on(seconds, joints):
    """It neither moves nor says that it does; only the set-points show that it should."""
    cell, swing = swinging(CONFIG, joints, seconds)
    cell.robot.tell(all_but_time)
    assert found_after(cell, swing) <= FOUND_S
    assert re.search(f"{STILL}|{PATH}|{FROZEN}", cell.state.fault), cell.state.fault
    cell.run(0.4)
    assert cell.robot.top_speed <= FASTER * 0.25


def test_a_robot_that_goes_silent_is_lost_after_the_limit():
    cell, swing = swinging(CONFIG, False, 0.6)
    cell.robot.silent = True
    assert found_after(cell, swing) == pytest.approx(0.11, abs=0.01)
    assert cell.state.fault == "robot at a has been silent for 0.10 s: check cable and power, then reset"


def test_states_that_come_later_and_later_are_late():
    cell, swing = swinging(CONFIG, False, 0.6)
    for k in range(400):
        cell.robot.late_ms = k // 2
        cell.run(0.001, swing)
        if cell.status is not None:
            break
    assert cell.state.fault == "robot at a is heard 0.10 s late: check what delays its network, then reset"


def test_a_robot_that_receives_few_commands_is_named():
    cell, swing = swinging(CONFIG, False, 0.6)
    cell.robot.tell(put("success_rate", lambda *_: 0.3))
    assert found_after(cell, swing) <= FOUND_S
    said = "robot at a received 30 % of the last 100 commands; valid is at least 50 %: check its network, then reset"
    assert cell.state.fault == said


@pytest.mark.parametrize("joints", [False, True], ids=["tool", "joints"])
@pytest.mark.parametrize("noise", [pytest.param(0.0, marks=pytest.mark.long), 2e-5])
def test_an_honest_robot_is_never_near_a_limit(joints, noise):
    cell, _ = swinging(CONFIG, joints, 4.0, noise=noise)
    margins = cell.ask(DriverRequest.STATISTICS).margins
    assert margins.keys() >= {"clock", "joint", "tool", "turn", "tool step", "torque", "torque step", "silence", "age"}
    assert max(margins.values()) < 0.5, margins


def test_a_twin_on_a_busy_computer_is_believed():
    """It lives at half the pace of time, stands for 0.3 s now and then, and its states come late."""
    cell, swing = swinging(TWIN, False, 0.6)
    for k in range(40):
        cell.robot.pace = 0.5 if k % 2 else 0.9
        cell.robot.silent = k % 10 == 3
        cell.robot.late_ms = 40 * (k % 3)
        cell.run(0.1, swing)
    assert cell.state.fault == ""


def test_a_set_point_that_jumps_out_of_reach_is_no_lie_of_the_robot():
    """The arm goes there as fast as its largest force lets it."""
    cell, _ = swinging(CONFIG, False, 0.6)
    pose = cell.robot.pose()
    x, y, z = pose.position

    def far():
        there = TimedSetpoint(cell.robot.now_ns, (x - 0.2, y, z), pose.quaternion, ZERO, ZERO)
        cell.memory.setpoint.write(there)

    cell.run(1.5, far)
    assert cell.state.fault == "" and cell.status is None


def test_a_lie_at_rest_is_a_fault():
    cell = Cell(CONFIG)
    cell.run(0.1)
    cell.robot.tell(OFF)
    cell.run(0.05)
    assert cell.status == EXIT_LOST and re.search(PATH, cell.state.fault)
