"""A Franka that tells plausible lies is lost within 0.3 s, with what disagreed; one that is honest never is.

In lockstep, see ``lockstep.py``. What the robot says is also what franky's control law sees.
"""

import re
from collections import deque
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from robots.franka.lockstep import ZERO, Cell, Swing, ending, pose_of

from bid_ros.control.spatial import Pose, turned
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.kinematics import CHAIN
from bid_ros.robots.franka.model import HOME_Q
from bid_ros.robots.protocol import EXIT_LOST, DriverRequest, Mode, TimedSetpoint

CONFIG = FrankaConfig("a", translational_stiffness=2500.0)
TWIN = replace(CONFIG, twin=True, state_timeout_s=0.5)
NO_NUMBER = float("nan")
FOUND_S = 0.3
FAST_S = 0.6  # into the swing: at 0.25 m/s
TURN_S = 1.25  # where it turns back
REST_S = 0.25
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


def joint(number, change):
    """Change one joint: ``change(value, s)``."""
    return put("joints", lambda q, _, t: place(q, number, change(q[number], t)))


def scaled(share):
    return put("joint_speeds", lambda v, _, t: tuple(share * speed for speed in v))


def trembling(t, size):
    return size if round(1000 * t) % 40 < 20 else -size


def moved_by(pose, change):
    return Pose(change(*pose.position), pose.quaternion)


class Late:
    """Some fields come late by a number of ms. They stand until the first of them comes."""

    def __init__(self, late_ms, *fields):
        self._late_ms, self._fields, self._way = late_ms, fields, deque()

    def __call__(self, said, first, ms):
        if ms == 0:
            self._way.clear()
        self._way.append(said)
        old = self._way.popleft() if len(self._way) > self._late_ms else self._way[0]
        return replace(said, **{name: getattr(old, name) for name in self._fields})


def along(change):
    """Change the joints, ``change(q, s)``, and the pose with them."""

    def lie(said, first, ms):
        joints = tuple(change(np.array(said.joints), ms / 1000.0).tolist())
        return replace(said, joints=joints, pose=pose_of(*CHAIN.forward(joints)))

    return lie


def again_and_again(said, first, ms, kept=deque()):  # noqa: B006  what was said since the lie began
    """What it said in the first 60 ms, again and again; only the time goes on."""
    if ms == 0:
        kept.clear()
    if ms < 60:
        kept.append(said)
    old = kept[ms % 60 % len(kept)]
    return replace(said, joints=old.joints, joint_speeds=old.joint_speeds, pose=old.pose, torques=old.torques)


OFF = put("joints", lambda q, _, t: place(q, 1, q[1] + 1.0))
SPEEDS = r"joint [1-7] was \d+\.\d\d rad/s slower or faster 0\.\d{3} s before; valid is up to 0\.\d\d"
PATH = r"joint [1-7] is \d+\.\d{3,4} rad from where its speed leads( over 0\.0\d\d s)?; valid is up to 0\.\d{3,4}"
FROZEN = (
    r"no (joint|tool|speed|torque) has changed for \d+ ms, though a joint turns at \d\.\d\d rad/s; valid is up to 20 ms"
)
STILL = r"no joint has moved for \d+ ms after its set-points went on; valid is up to 20 ms"
TOOL = r"the tool is \d+ mm from where the joints put it; valid is up to 5 mm"
STEP = r"the tool was \d+ mm away 0\.\d{3} s before; valid is up to \d+ mm"
TURN = r"the tool is turned by \d\.\d\d rad from where the joints put it; valid is up to 0\.05"
TURNED = r"the tool was turned by \d\.\d\d rad 0\.\d{3} s before; valid is up to 0\.\d\d"
OLD = r"its torques are those sent \d+ ms before; valid is up to 30 ms"
SENT = r"a torque is \d+\.\d Nm off what was sent, for 5\d ms; valid is up to 50 ms"
LENGTH = r"its tool's quaternion has the length (\d\.\d\d|nan); valid is 1"
BACK = r"its time stepped back by \d+ ms; valid is none"
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
        BACK,
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
    "a joint sticks": (put("joints", lambda q, first, t: place(q, 0, first[0])), f"{PATH}|{TOOL}|{FROZEN}"),
    "a joint has the wrong sign": (joint(2, lambda q, t: -0.1 - q), PATH),
    "two joints are swapped": (put("joints", lambda q, _, t: (q[2], q[1], q[0] + 0.3, *q[3:])), PATH),
    "the joints are degrees": (
        put("joints", lambda q, _, t: tuple(np.degrees(q).tolist())),
        r"its joints are .* within \+-5",
    ),
    "the joints are rounded": (put("joints", lambda q, _, t: tuple(np.round(q, 1).tolist())), f"{PATH}|{TOOL}"),
    "a joint trembles": (joint(1, lambda q, t: q + trembling(t, 0.03)), f"{PATH}|{TOOL}"),
    "the joints are late": (Late(60, "joints"), f"{PATH}|{TOOL}|{FROZEN}"),
    "the pose is late": (Late(60, "pose"), f"{TOOL}|{FROZEN}"),
    "all is late but the time": (Late(60, "joints", "joint_speeds", "pose"), f"{PATH}|{FROZEN}|{STILL}"),
    "the same moments come again and again": (again_and_again, f"{PATH}|{SPEEDS}"),
    "joints and pose drift together": (along(lambda q, t: q + np.array([0, 0, 0, 0.5 * t, 0, 0, 0])), PATH),
    "joints and pose jump together": (along(lambda q, t: q + 0.05), PATH),
    "the joint speeds are frozen": (put("joint_speeds", lambda _, v, t: v), f"{PATH}|{FROZEN}"),
    "the joint speeds are turned round": (
        put("joint_speeds", lambda v, _, t: tuple(-speed for speed in v)),
        f"{PATH}|{SPEEDS}",
    ),
    "the joint speeds are too small": (
        put("joint_speeds", lambda v, _, t: tuple(0.5 * speed for speed in v)),
        f"{PATH}|{SPEEDS}",
    ),
    **{
        f"the joint speeds are {share} of the true ones": (scaled(share), f"{PATH}|{SPEEDS}")
        for share in (0.3, 0.55, 0.58, 0.6, 0.65, 0.7, 0.8, 0.9, 0.95)
    },
    "the joint speeds become too small": (
        put("joint_speeds", lambda v, _, t: tuple((1.0 - min(0.4, 1.5 * t)) * speed for speed in v)),
        PATH,
    ),
    "a joint speed is no number": (
        put("joint_speeds", lambda v, _, t: place(v, 4, NO_NUMBER)),
        r"its joints turn at \[.*nan.*\] rad/s; valid is within \+-20",
    ),
    "the pose is in millimetres": (
        put("pose", lambda p, _, t: moved_by(p, lambda x, y, z: (1000 * x, 1000 * y, 1000 * z))),
        r"its tool is at .* m; valid is within \+-2",
    ),
    "the pose is mirrored": (put("pose", lambda p, _, t: moved_by(p, lambda x, y, z: (x, -y, z))), STEP),
    "the axes of the pose are swapped": (put("pose", lambda p, _, t: moved_by(p, lambda x, y, z: (z, y, x))), STEP),
    "the pose is of another arm's length": (
        put("pose", lambda p, _, t: moved_by(p, lambda x, y, z: (1.02 * x, y, z))),
        f"{STEP}|{TOOL}",
    ),
    "the tool trembles": (put("pose", lambda p, _, t: shifted(p, z=trembling(t, 0.01))), f"{STEP}|{TOOL}"),
    "the quaternion is too long": (
        put("pose", lambda p, _, t: Pose(p.position, tuple(1.1 * value for value in p.quaternion))),
        LENGTH,
    ),
    "the quaternion is no number": (put("pose", lambda p, _, t: Pose(p.position, (NO_NUMBER,) * 4)), LENGTH),
    "the clock runs at half pace": (
        put("robot_ms", lambda ms, first, t: first + (ms - first) // 2),
        rf"{PATH}|is heard 0\.\d\d s late",
    ),
    "the clock trembles": (put("robot_ms", lambda ms, _, t: ms + round(trembling(t, 3))), f"{BACK}|{PATH}"),
    "old states come between": (
        lambda said, first, ms: first if ms and ms % 10 < 5 else said,
        BACK,
    ),
    "the torques are frozen": (put("torques", lambda _, v, t: v), FROZEN),
    "a torque is too small": (put("torques", lambda v, _, t: place(v, 0, v[0] - 3.0)), SENT),
    "a torque drifts": (put("torques", lambda v, _, t: place(v, 0, v[0] + 40.0 * t)), SENT),
    "a torque is no number": (
        put("torques", lambda v, _, t: place(v, 3, NO_NUMBER)),
        r"the torque of joint 4 is nan Nm; valid is up to 88",
    ),
    "the success rate is no number": (put("success_rate", lambda *_: NO_NUMBER), "received nan % of the last 100"),
    "the success rate falls": (put("success_rate", lambda *_: 0.3), "received 30 % of the last 100 commands; valid is"),
}


@pytest.fixture(autouse=True)
def _ending():
    with ending():
        yield


def swinging(config, joints, seconds, **parts):
    cell = Cell(config, **parts)
    cell.run(0.02)
    assert cell.ask(DriverRequest.START, joints) == ""
    swing = Swing(cell, joints)
    cell.run(seconds, swing)
    assert cell.state.fault == "" and cell.state.mode is Mode.FOLLOWING
    return cell, swing


@cache
def _in_motion(joints, seconds):
    if seconds <= FAST_S:
        return swinging(CONFIG, joints, seconds)
    cell, swing = in_motion(joints)
    cell.run(seconds - FAST_S, swing)
    return cell, swing


def in_motion(joints=False, seconds=FAST_S):
    """Return a cell and its swing, which all tests of this module share until then."""
    cell, swing = _in_motion(joints, seconds)
    return cell.again(swing)


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
    cell, swing = in_motion(joints)
    fastest = cell.robot.top_speed
    cell.robot.tell(change)
    assert found_after(cell, swing) <= FOUND_S
    assert cell.status == EXIT_LOST
    said = cell.state.fault
    assert re.search(what, said), said
    assert said.endswith("then reset")
    assert np.abs(np.array(cell.state.joints) - HOME_Q).max() < 0.9, "no lie is handed on"
    cell.run(REST_S)
    assert cell.robot.top_speed <= FASTER * max(fastest, 0.25)
    assert cell.robot.tool_speed() < 0.01


@pytest.mark.parametrize("joints", [False, True], ids=["tool", "joints"])
@pytest.mark.parametrize("seconds", [0.0, TURN_S], ids=["before it moves", "where it turns back"])
def test_an_arm_that_stands_in_every_bit_though_it_was_sent_on(seconds, joints):
    """It neither moves nor says that it does; only the set-points show that it should."""
    cell, swing = in_motion(joints, seconds)
    cell.robot.tell(all_but_time)
    assert found_after(cell, swing) <= FOUND_S
    assert re.search(f"{STILL}|{PATH}|{FROZEN}|{SENT}|{OLD}", cell.state.fault), cell.state.fault
    cell.run(REST_S)
    assert cell.robot.top_speed <= FASTER * 0.25


@pytest.mark.parametrize("joints", [pytest.param(False, id="tool"), JOINTS])
@pytest.mark.parametrize("share", [0.5, 0.6, 0.7, 0.8])
def test_joint_speeds_that_are_too_small_from_the_begin_of_the_motion(share, joints):
    """Nothing steps: the arm never knew other speeds."""
    cell, swing = in_motion(joints, 0.0)
    cell.robot.tell(scaled(share))
    assert found_after(cell, swing) <= FOUND_S
    assert re.search(PATH, cell.state.fault), cell.state.fault
    cell.run(REST_S)
    assert cell.robot.top_speed <= FASTER * 0.25


@pytest.mark.parametrize("joints", [pytest.param(False, id="tool"), JOINTS])
@pytest.mark.parametrize("way_ms", [50, 200])
def test_a_delay_that_was_there_from_the_beginning_is_found_by_the_torques_that_are_told(way_ms, joints):
    """Every state is as late as all others, so no time stamp shows it."""
    cell = Cell(CONFIG, way_ms=way_ms)
    cell.run(1.0)
    assert cell.state.fault == "", "at rest it does no harm"
    assert cell.ask(DriverRequest.START, joints) == ""
    swing = Swing(cell, joints)
    assert found_after(cell, swing) <= FOUND_S
    assert re.search(f"{OLD}|{SENT}|{STILL}", cell.state.fault), cell.state.fault
    cell.run(2 * way_ms / 1000 + REST_S)
    assert cell.robot.top_speed <= FASTER * 0.25
    assert cell.robot.tool_speed() < 0.01


def test_a_short_way_is_carried():
    cell = Cell(CONFIG, way_ms=2)
    cell.run(0.1)
    assert cell.ask(DriverRequest.START, False) == ""
    cell.run(TURN_S, Swing(cell, False))
    assert cell.state.fault == "" and cell.state.mode is Mode.FOLLOWING


def test_a_robot_that_goes_silent_is_lost_after_the_limit():
    cell, swing = in_motion()
    cell.robot.silent = True
    assert found_after(cell, swing) == pytest.approx(0.11, abs=0.01)
    assert cell.state.fault == "robot at a has been silent for 0.10 s: check cable and power, then reset"


def test_states_that_come_later_and_later_are_late():
    cell, swing = in_motion()
    for k in range(400):
        cell.robot.late_ms = k // 2
        cell.run(0.001, swing)
        if cell.status is not None:
            break
    assert cell.state.fault == "robot at a is heard 0.10 s late: check what delays its network, then reset"


@pytest.mark.parametrize("joints", [False, True], ids=["tool", "joints"])
@pytest.mark.parametrize("noise", [pytest.param(0.0, marks=pytest.mark.long), 2e-5])
def test_an_honest_robot_is_never_near_a_limit(joints, noise):
    cell, _ = swinging(CONFIG, joints, TURN_S + 0.2, noise=noise)
    margins = cell.ask(DriverRequest.STATISTICS).margins
    known = {"clock", "joint", "tool", "turn", "tool step", "speed step", "torque", "torque step", "sent torque"}
    known |= {"speeds", "old torque"}
    assert margins.keys() >= known | {"silence", "age"}
    assert max(margins.values()) < 0.5, margins


def test_a_twin_on_a_busy_computer_is_believed():
    """It lives at half the pace of time, stands for 0.3 s now and then, and its states come late."""
    cell, swing = swinging(TWIN, False, 0.6)
    for k in range(20):
        cell.robot.pace = 0.5 if k % 2 else 0.9
        cell.robot.silent = k % 5 == 3
        cell.robot.late_ms = 40 * (k % 3)
        cell.run(0.1, swing)
    assert cell.state.fault == ""


def test_a_twin_at_rest_may_be_held_up_for_longer_than_one_that_moves():
    cell = Cell(TWIN)
    cell.run(0.02)
    cell.robot.silent = True
    cell.run(1.9)
    cell.robot.silent = False
    assert cell.status is None
    assert cell.ask(DriverRequest.START, False) == ""
    swing = Swing(cell, False)
    cell.run(0.1, swing)
    cell.robot.silent = True
    cell.run(0.55, swing)
    assert cell.state.fault == (
        "robot at a has been silent for 0.50 s: it is a twin, so find what keeps this computer busy, then reset"
    )


def test_a_set_point_that_jumps_out_of_reach_is_no_lie_of_the_robot():
    """The arm goes there as fast as its largest force lets it."""
    cell, _ = in_motion()
    pose = cell.robot.pose()
    x, y, z = pose.position

    def far():
        there = TimedSetpoint(cell.robot.now_ns, (x - 0.2, y, z), pose.quaternion, ZERO, ZERO)
        cell.memory.setpoint.write(there)

    cell.run(1.0, far)
    assert cell.state.fault == "" and cell.status is None


def test_a_lie_at_rest_is_a_fault():
    cell = Cell(CONFIG)
    cell.run(0.1)
    cell.robot.tell(OFF)
    cell.run(0.05)
    assert cell.status == EXIT_LOST and re.search(PATH, cell.state.fault)
