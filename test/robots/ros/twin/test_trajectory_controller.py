"""What documentation and source of the joint trajectory controller say of it, asked of the simulated one."""

import numpy as np
import pytest
from memory_bus import MemoryGoal, message

from bid_ros.robots.ros.twin.trajectory_controller import Knot, Tolerances, TrajectoryController, between, refusal

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
    controller = TrajectoryController(NAMES, Tolerances.alike(2, path=0.05))
    controller.activate(np.zeros(2))
    controller.take(trajectory(point(0, (0.0, 0.0)), point(1, (1.0, 1.0))), START)
    assert at(controller, 0.10, (0.08, 0.1)) == pytest.approx([0.1, 0.1])
    assert controller.update(START + S // 2, np.array([0.3, 0.5])) is None, "nothing is commanded in that cycle"
    assert at(controller, 0.90, (0.0, 0.0)) == [0.3, 0.5] and controller.aborted == 1
    controller.take(trajectory(point(0, (0.0, 0.0)), point(1, (1.0, 1.0)), start_ns=START + S), START + S)
    assert at(controller, 1.5, (0.5, 0.5)) == pytest.approx([0.5, 0.5]), "the next one runs"


def goal(*points, path=None, at_goal=None, time_s=0.0):
    """A goal that begins when it comes, with tolerances of joint a."""
    start = {"sec": 0, "nanosec": 0}
    values = {"header": {"stamp": start}, "joint_names": list(NAMES), "points": list(points)}

    def told(value):
        return [] if value is None else [{"name": "a", "position": value}]

    since = {"sec": int(time_s), "nanosec": round(time_s % 1 * S)}
    parts = {"path_tolerance": told(path), "goal_tolerance": told(at_goal), "goal_time_tolerance": since}
    return MemoryGoal({"trajectory": values, **parts})


def begun(controller, **tolerances):
    """A goal of one second from where the controller stands, accepted at the start."""
    made = goal(point(1, (0.6, 0.2)), **tolerances)
    controller.accept(made, START)
    at(controller, 0.0, (0.1, 0.2))
    return made


def test_a_goal_succeeds_at_its_end_and_not_before(controller):
    made = begun(controller)
    assert at(controller, 0.5, (0.3, 0.2)) == pytest.approx([0.35, 0.2]) and made.ended() is None
    assert at(controller, 1.0, (0.5, 0.2)) == [0.6, 0.2]
    assert (made.status, made.result) == ("succeeded", {"error_code": 0, "error_string": "Goal successfully reached!"})
    assert at(controller, 5.0, (0.5, 0.2)) == [0.6, 0.2], "it holds the end"


def test_a_joint_that_leaves_its_path_ends_the_goal_with_that_code(controller):
    made = begun(controller, path=0.05)
    controller.update(START + S // 2, np.array([0.2, 0.2]))
    assert made.status == "aborted" and made.result["error_code"] == -4
    assert "path tolerance violation" in made.result["error_string"]
    assert at(controller, 0.6, (0.25, 0.2)) == [0.2, 0.2], "the joints are held where they were"


def test_a_goal_waits_for_the_joints_within_its_time_and_gives_up_after_it(controller):
    made = begun(controller, at_goal=0.01, time_s=0.5)
    assert at(controller, 1.2, (0.5, 0.2)) == [0.6, 0.2] and made.ended() is None
    assert controller.update(START + round(1.6 * S), np.array([0.5, 0.2])) is None
    assert made.status == "aborted" and made.result["error_code"] == -5
    assert made.result["error_string"].startswith("Aborted due to goal_time_tolerance exceeding by 0.6")
    other = begun(controller, at_goal=0.01, time_s=0.5)
    at(controller, 1.2, (0.5, 0.2))
    at(controller, 1.3, (0.595, 0.2))
    assert other.status == "succeeded"


def test_without_a_time_a_goal_waits_for_ever(controller):
    made = begun(controller, at_goal=0.01)
    assert at(controller, 3600.0, (0.5, 0.2)) == [0.6, 0.2] and made.ended() is None


def test_a_new_goal_aborts_the_one_that_runs(controller):
    first, second = begun(controller), begun(controller)
    assert first.status == "aborted" and first.result["error_code"] == -1
    assert "preempted by new incoming action" in first.result["error_string"] and second.ended() is None


def test_a_trajectory_of_the_topic_replaces_that_of_a_goal_which_ends_with_it(controller):
    made = begun(controller)
    later = START + S // 2
    controller.take(trajectory(point(0, (0.35, 0.2)), point(0.2, (0.4, 0.2)), start_ns=later), later)
    assert at(controller, 0.6, (0.35, 0.2)) == pytest.approx([0.375, 0.2]) and made.ended() is None
    assert at(controller, 0.7, (0.4, 0.2)) == [0.4, 0.2] and made.status == "succeeded"


def test_a_goal_that_is_cancelled_holds_the_joints_at_once(controller):
    made = begun(controller)
    made.cancel()
    assert at(controller, 0.5, (0.3, 0.2)) == [0.3, 0.2]
    assert made.status == "canceled" and made.result["error_code"] == 0
    assert at(controller, 2.0, (0.31, 0.2)) == [0.3, 0.2]


def test_a_controller_that_is_deactivated_gives_its_goal_up(controller):
    made = begun(controller)
    controller.deactivate()
    assert made.status == "aborted" and "deactivate transition" in made.result["error_string"]


def test_tolerances_of_the_newest_goal_count_until_the_next_one(controller):
    begun(controller, path=0.05)
    at(controller, 1.0, (0.6, 0.2))
    controller.take(trajectory(point(0, (0.6, 0.2)), point(1, (0.0, 0.2)), start_ns=START + 2 * S), START + 2 * S)
    at(controller, 2.0, (0.6, 0.2))
    assert controller.update(START + round(2.5 * S), np.array([0.5, 0.2])) is None and controller.aborted == 1
    begun(controller)
    assert at(controller, 0.5, (0.0, 0.2)) == pytest.approx([0.35, 0.2])


OWN = Tolerances(np.array([0.1, 0.2]), np.array([0.01, 0.02]), 0.5)


def tolerances_of_goal(path=(), at_goal=(), seconds=0):
    def told(items):
        return [{"name": name, "position": value} for name, value in items]

    time = {"sec": seconds, "nanosec": 0}
    return message({"path_tolerance": told(path), "goal_tolerance": told(at_goal), "goal_time_tolerance": time})


def test_what_a_goal_does_not_say_stays_and_minus_one_erases():
    found = OWN.of_goal(tolerances_of_goal([("b", 0.3)], [("a", 0.0), ("b", -1.0)]), NAMES)
    assert found.path.tolist() == [0.1, 0.3] and found.goal.tolist() == [0.01, 0.0] and found.goal_time_s == 0.5
    assert OWN.of_goal(tolerances_of_goal(seconds=2), NAMES).goal_time_s == 2.0
    assert OWN.path.tolist() == [0.1, 0.2], "those of the parameters stay as they are"


@pytest.mark.parametrize("wrong", [{"path": [("c", 0.1)]}, {"at_goal": [("a", -0.5)]}, {"seconds": -3}])
def test_what_is_illegal_leaves_all_of_them(wrong):
    assert OWN.of_goal(tolerances_of_goal(**wrong), NAMES) is OWN


def test_zero_is_any_distance():
    free = Tolerances.alike(2, path=0.0, goal=0.1)
    assert not free.astray(np.array([9.0, 9.0]))
    assert free.missed(np.array([0.0, 0.2])) and not free.missed(np.array([0.1, 0.1]))
