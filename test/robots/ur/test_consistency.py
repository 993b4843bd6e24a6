"""What counts as a contradiction in the states of a UR, and that a robot with noise and calibration shows none."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from bid_ros.control.spatial import Pose
from bid_ros.core.margins import Margins
from bid_ros.robots.consistency import GAP_S
from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.consistency import FASTEST, TOOL_M, Consistency, tool_course, tool_error
from bid_ros.robots.ur.kinematics import UR5E, Kinematics
from bid_ros.robots.ur.status import UrReading, pose_from_numbers
from bid_ros.robots.ur.twin.pendant import INITIAL_Q

CONFIG = UrConfig("a", gripper=None, tool_offset=(0.0, 0.0, 0.17))
STILL = (0.0,) * 6
NO_TURN = (0.0, 0.0, 0.0, 1.0)


def state(robot_s, joints=INITIAL_Q, speeds=STILL, kinematics=UR5E, config=CONFIG):
    joints = tuple(map(float, joints))
    pose = pose_from_numbers(kinematics.forward(joints, config.tool).tolist())
    return UrReading(robot_s, joints, tuple(map(float, speeds)), pose, pose, 7, 1, 2)


class Compared:
    """Hands states to a comparison, each at the robot's time of it."""

    def __init__(self, first=None, period_s=0.008):
        first = first or state(0.0)
        self.margins = Margins()
        self.consistency = Consistency(CONFIG, first, round(1e9 * first.robot_s), period_s, self.margins)

    def doubt(self, reading, now_s=None):
        return self.consistency.doubt(reading, round(1e9 * (reading.robot_s if now_s is None else now_s)))


def moved(joint, angle):
    return [q + angle * (place == joint - 1) for place, q in enumerate(INITIAL_Q)]


@pytest.mark.parametrize("joint", range(1, 7))
def test_a_step_is_named(joint):
    compared = Compared()
    assert compared.doubt(state(0.002, moved(joint, 0.019))) == ""
    said = compared.doubt(state(0.004, moved(joint, 0.021)))
    assert said == f"joint {joint} is 0.021 rad from where its speed leads; valid is up to 0.020"


@pytest.mark.parametrize("cycle_s", [0.002, 0.008])
@pytest.mark.parametrize("speed", [0.1, -0.5, 3.0])
def test_a_joint_that_stands_though_it_says_that_it_moves_is_found_in_time(speed, cycle_s):
    compared, robot_s = Compared(state(0.0, speeds=[speed] * 6)), 0.0
    while not (said := compared.doubt(state(robot_s, speeds=[speed] * 6))):
        robot_s += cycle_s
        assert robot_s < 0.35
    assert "from where its speed leads" in said
    assert robot_s == pytest.approx(-0.5 * math.log(1 - (0.02 + 0.03 * abs(speed)) / 0.5 / abs(speed)), abs=0.015)


def test_a_gap_between_states_leaves_room_for_any_speed_that_a_joint_has():
    for share, found in ((0.95, False), (1.1, True)):
        gap_s = 5 * GAP_S
        said = Compared().doubt(state(gap_s, moved(2, share * (FASTEST * gap_s + 0.02))))
        assert bool(said) == found


def test_the_clock_that_agrees_better_counts():
    """States that came late and together, and a clock at double pace, are no motion that cannot be."""
    speeds, step = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0], 0.008
    for robot_pace, times in ((1.0, [0.1 + 0.0001 * k for k in range(10)]), (2.0, [step * k for k in range(10)])):
        compared = Compared(state(0.0, speeds=speeds))
        for k in range(1, 10):
            assert compared.doubt(state(robot_pace * step * k, moved(2, step * k), speeds), times[k]) == ""


def test_a_speed_that_no_joint_has_is_named():
    said = Compared().doubt(state(0.002, speeds=[0.0, 0.0, -11.0, 0.0, 0.0, 0.0]))
    assert said == "a joint turns at 11.00 rad/s; valid is up to 6.40"


def test_the_tool_may_be_off_by_its_calibration_and_as_much_again_as_is_refused_at_connecting():
    true = state(0.0)
    off = replace(true, pose=replace(true.pose, position=(true.pose.position[0] + 0.01, *true.pose.position[1:])))
    for more, said in ((0.024, ""), (0.026, "the tool is 36 mm from where the joints put it; valid is up to 35 mm")):
        place = (off.pose.position[0] + more, *off.pose.position[1:])
        reading = replace(off, robot_s=0.002, pose=replace(off.pose, position=place))
        assert Compared(off).doubt(reading) == said


def test_a_tool_that_is_turned_is_named():
    turned = pose_from_numbers(UR5E.forward(moved(6, 0.11), CONFIG.tool).tolist())
    said = Compared().doubt(replace(state(0.002), pose=turned))
    assert said == "the tool is turned by 0.11 rad from where the joints put it; valid is up to 0.10"


def test_nan_is_never_within_a_limit():
    margins = Margins()
    assert margins.over("any", math.nan, 1.0)
    assert not margins.over("any", 1.0, 1.0)
    assert margins.over("any", 1.01, 1.0)


@pytest.mark.parametrize(
    ("seed", "cycle_s"), [(0, 0.002), (0, 0.008), pytest.param(1, 0.002, marks=pytest.mark.long), (1, 0.008)]
)
def test_a_robot_with_noise_delay_and_calibration_is_believed(seed, cycle_s):
    """Up to 3 rad/s, speeds 10 ms late and with noise, lengths 3 mm and angles 5 mrad off, states that are lost."""
    random = np.random.default_rng(seed)
    lengths = (UR5E.d1, UR5E.a2, UR5E.a3, UR5E.d4, UR5E.d5, UR5E.d6)
    own = Kinematics(*(length + random.uniform(-0.003, 0.003) for length in lengths))
    zeros = random.uniform(-0.005, 0.005, 6)
    rates, phases = random.uniform(1.0, 6.0, 6), random.uniform(0.0, 6.0, 6)
    reach = random.uniform(0.3, 1.0, 6) * 3.0 / rates
    speed = np.zeros(6)

    def at(robot_s):
        angles = INITIAL_Q + reach * np.sin(rates * robot_s + phases)
        pose = pose_from_numbers(own.forward(angles + zeros, CONFIG.tool).tolist())
        joints, speeds = angles + random.normal(0.0, 1e-4, 6), speed + random.normal(0.0, 0.01, 6)
        return replace(state(robot_s, joints, speeds), pose=pose)

    speed = reach * rates * np.cos(phases)
    compared, worst_m = Compared(at(0.0), cycle_s), 0.0
    for k in range(1, round(6.0 / cycle_s)):
        now = k * cycle_s
        speed += (reach * rates * np.cos(rates * now + phases) - speed) * cycle_s / (0.01 + cycle_s)
        if random.random() < 0.05:
            continue
        reading = at(now)
        assert compared.doubt(reading, now + random.uniform(0.0, 0.03)) == ""
        worst_m = max(worst_m, tool_error(CONFIG, reading)[0])
    assert worst_m > 0.2 * TOOL_M, "the calibration would show nothing"
    assert max(share for name, share in compared.margins.items() if name != "speed") < 0.75, compared.margins


class Followed:
    """A stream of set-points along x at 0.25 m/s, sent 125 times a second, and a tool that follows it late."""

    def __init__(self):
        self.margins = Margins()
        self.course = tool_course(CONFIG, self.margins)
        self.reading = state(0.0)

    def run(self, seconds, where, late_s=0.0, turn=NO_TURN, noise=1e-6):
        """Return the first doubt of a tool that is at ``where(t)`` and when that was, s."""
        self.course.begin(Pose((0.0, 0.0, 0.0), NO_TURN), Pose((where(0.0), 0.0, 0.0), turn), 0)
        for k in range(round(seconds / 0.008)):
            t = 0.008 * k
            self.course.sent(Pose((0.25 * t, 0.0, 0.0), NO_TURN), round(1e9 * t))
            pose = Pose((where(t), 0.0, 0.0), turn)
            reading = replace(self.reading, robot_s=t, joints=(where(t) + noise * (k % 3),) * 6, pose=pose)
            said = self.course.doubt(reading, round(1e9 * t), late_s)
            if said:
                return said, t
        return "", seconds


@pytest.mark.parametrize("lag_s", [0.0, 0.1, 0.3])
def test_a_tool_that_follows_late_is_on_its_course(lag_s):
    """By the lookahead of 0.1 s, and by more, as the set-points are as far apart as the distance that is allowed."""
    assert Followed().run(3.0, lambda t: 0.25 * max(0.0, t - lag_s)) == ("", 3.0)


def test_a_tool_that_goes_elsewhere_is_off_its_course():
    said, after_s = Followed().run(3.0, lambda t: -0.25 * t)
    assert said == "the tool is 66 mm off the set-points of the last 0.15 s; valid is up to 65 mm"
    assert after_s < 0.4


def test_a_tool_that_stands_in_every_bit_is_found_sooner():
    said, after_s = Followed().run(3.0, lambda t: 0.0, noise=0.0)
    assert re.match(r"the tool is 1[345] mm off the set-points of the last 0\.15 s, though no joint moves; valid", said)
    assert after_s < 0.25


def test_set_points_that_the_robot_hears_late_are_waited_for():
    assert Followed().run(3.0, lambda t: 0.25 * max(0.0, t - 0.45)) != ("", 3.0)
    assert Followed().run(3.0, lambda t: 0.25 * max(0.0, t - 0.45), late_s=0.2) == ("", 3.0)


def test_where_the_tool_hung_at_the_start_it_may_hang():
    assert Followed().run(1.0, lambda t: 0.03 + 0.25 * max(0.0, t - 0.1)) == ("", 1.0)


def test_a_tool_that_turns_by_itself_is_off_its_course():
    followed = Followed()
    assert followed.run(0.2, lambda t: 0.25 * t) == ("", 0.2)
    half = 0.5 * 0.3
    turned = Pose((0.05, 0.0, 0.0), (0.0, 0.0, -math.sin(half), -math.cos(half)))
    followed.course.sent(Pose((0.05, 0.0, 0.0), NO_TURN), 208_000_000)
    said = followed.course.doubt(replace(state(0.208), pose=turned), 208_000_000, 0.0)
    assert said == "the tool is turned by 0.30 rad off the set-points of the last 0.15 s; valid is up to 0.23"


def test_nothing_is_followed_before_the_beginning_and_after_the_end():
    course = tool_course(CONFIG, Margins())
    course.sent(Pose((9.0, 0.0, 0.0), NO_TURN), 0)
    assert course.doubt(state(0.0), 0, 0.0) == ""
    course.begin(Pose((0.0, 0.0, 0.0), NO_TURN), state(0.0).pose, 0)
    course.sent(Pose((9.0, 0.0, 0.0), NO_TURN), 10_000_000)
    course.end()
    assert course.doubt(state(0.01), 10_000_000, 0.0) == ""
