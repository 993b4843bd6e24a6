"""What the documentation of ros2_control's controllers says of them, asked of the simulated ones."""

import numpy as np
import pytest
from memory_bus import message

from bid_ros.robots.ros.twin.controllers import ForwardController
from bid_ros.robots.ros.twin.trajectory import Knot, between, refusal
from bid_ros.robots.ros.twin.trajectory_controller import TrajectoryController

NAMES = ("a", "b")
S = 1_000_000_000
START = 1_700_000_000 * S


def point(seconds, positions, velocities=()):
    since = {"sec": int(seconds), "nanosec": round(seconds % 1 * S)}
    return {"time_from_start": since, "positions": list(positions), "velocities": list(velocities)}


def trajectory(*points, start_ns=START, names=NAMES):
    stamp = {"sec": start_ns // S, "nanosec": start_ns % S}
    return message({"header": {"stamp": stamp}, "joint_names": list(names), "points": list(points)})


@pytest.fixture
def controller():
    made = TrajectoryController(NAMES)
    made.activate(np.array([0.1, 0.2]))
    return made


def at(controller, seconds, measured=(0.0, 0.0)):
    return controller.update(START + round(seconds * S), np.array(measured)).tolist()


def test_an_active_controller_holds_where_the_joints_were(controller):
    assert at(controller, 0.0, (5.0, 5.0)) == [0.1, 0.2]


def test_positions_alone_are_joined_by_lines_and_the_last_one_is_held(controller):
    controller.take(trajectory(point(0, (0.0, 0.0)), point(1, (1.0, 2.0)), point(2, (1.0, 0.0))), START)
    assert at(controller, 0.5) == pytest.approx([0.5, 1.0])
    assert at(controller, 1.5) == pytest.approx([1.0, 1.0])
    assert at(controller, 9.0) == [1.0, 0.0]


def test_velocities_make_cubics():
    before, after = Knot(0, np.zeros(1), np.array([1.0])), Knot(S, np.ones(1), np.zeros(1))
    for s in (0.0, 0.3, 1.0):
        joints, speeds = between(before, after, round(s * S))
        assert joints[0] == pytest.approx(s + s**2 - s**3)  # the cubic of 0, 1, slopes 1 and 0
        assert speeds[0] == pytest.approx(1 + 2 * s - 3 * s**2)


def test_the_way_to_the_first_point_begins_where_the_joints_are(controller):
    controller.take(trajectory(point(1, (1.0, 1.0)), start_ns=0), START)
    assert at(controller, 0.0, (0.5, 0.0)) == [0.5, 0.0]
    assert at(controller, 0.5, (9.0, 9.0)) == pytest.approx([0.75, 0.5])


def test_the_names_of_a_message_say_the_order(controller):
    controller.take(trajectory(point(0, (1.0, 2.0)), names=("b", "a")), START)
    assert at(controller, 1.0) == [2.0, 1.0]


def test_a_newer_trajectory_replaces_the_one_that_runs(controller):
    controller.take(trajectory(point(0, (0.0, 0.0)), point(2, (2.0, 2.0))), START)
    assert at(controller, 0.5) == pytest.approx([0.5, 0.5])
    controller.take(trajectory(point(0, (0.5, 0.5)), point(1, (0.0, 0.5)), start_ns=START + S // 2), START + S // 2)
    assert at(controller, 1.0) == pytest.approx([0.25, 0.5])
    assert at(controller, 3.0) == [0.0, 0.5]


def test_an_old_stamp_begins_in_the_middle(controller):
    controller.take(trajectory(point(0, (0.0, 0.0)), point(1, (1.0, 1.0)), point(2, (1.0, 0.0))), START + S)
    assert at(controller, 1.5) == pytest.approx([1.0, 0.5])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (trajectory(point(0, (0.0, 0.0)), names=("a", "c")), "its joints are a, c; valid are a, b"),
        (trajectory(point(0, (0.0,)), names=("a",)), "its joints are a; valid are a, b"),
        (trajectory(), "it has no points"),
        (trajectory(point(1, (0.0, 0.0)), point(1, (0.0, 0.0))), "the times of its points do not increase"),
        (trajectory(point(0, (0.0,))), "a point has 1 positions and 0 velocities"),
        (trajectory(point(0, (0.0, 0.0), (1.0,))), "a point has 2 positions and 1 velocities"),
        (trajectory(point(1, (0.0, 0.0), (0.0, 0.1))), "its last point moves"),
        (trajectory(point(1, (0.0, 0.0)), start_ns=START - 2 * S), "it ends in the past"),
    ],
)
def test_what_is_not_valid_is_refused_and_changes_nothing(controller, wrong, said):
    assert refusal(wrong, NAMES, START) == said
    controller.take(wrong, START)
    assert controller.refused == 1 and at(controller, 1.0) == [0.1, 0.2]


def test_a_joint_out_of_tolerance_aborts_and_the_joints_are_held_where_they_are():
    controller = TrajectoryController(NAMES, tolerance=0.05)
    controller.activate(np.zeros(2))
    controller.take(trajectory(point(0, (0.0, 0.0)), point(1, (1.0, 1.0))), START)
    assert at(controller, 0.10, (0.08, 0.1)) == pytest.approx([0.1, 0.1])
    assert at(controller, 0.50, (0.30, 0.5)) == [0.3, 0.5]
    assert at(controller, 0.90, (0.0, 0.0)) == [0.3, 0.5] and controller.aborted == 1
    controller.take(trajectory(point(0, (0.0, 0.0)), point(1, (1.0, 1.0)), start_ns=START + S), START + S)
    assert at(controller, 1.5, (0.5, 0.5)) == pytest.approx([0.5, 0.5]), "the next one runs"


def test_positions_are_passed_on_as_they_come():
    controller = ForwardController(NAMES)
    controller.activate(np.zeros(2))
    assert controller.update(START, np.zeros(2)) is None, "nothing is commanded before the first message"
    controller.take(message({"data": [0.3, 0.4]}), START)
    for wrong in ([0.1], [0.1, 0.2, 0.3], [0.1, float("nan")]):
        controller.take(message({"data": wrong}), START)
    assert controller.refused == 3 and controller.update(START, np.zeros(2)).tolist() == [0.3, 0.4]
    controller.activate(np.zeros(2))
    assert controller.update(START, np.zeros(2)) is None
