"""What each registered task brings: how its episodes begin and end, and who demonstrates it."""

from dataclasses import replace

import numpy as np
import pytest

from bid_ros.core.errors import BidError, TaskError
from bid_ros.core.task import load_task
from bid_ros.robots.gripper import GripperThresholds
from bid_ros.system.folder import find_system, shipped_systems
from bid_ros.tasks.base import NOT_JUDGED, PENDING
from bid_ros.tasks.registry import build_score, build_stage, find_demonstrator, kind_of, setup_of
from bid_ros.tasks.twins import build_twin

UP = np.array([0.0, 0.0, 0.0, 1.0])
FALLEN = np.array([0.7071, 0.0, 0.0, 0.7071])
AWAY = np.array([0.5, 0.2, 0.30])
STEP_NS = 100_000_000
# Poses of the bodies, tool and gripper width of a success and of a failure of each task.
SAUCER = (np.array([0.5, 0.2, 0.0]), UP)
CUP = (np.array([0.5, 0.1, 0.0]), UP)
ENDS = {
    "franka_place": (
        ({"cup": CUP, "object": (np.array([0.5, 0.1, 0.045]), UP)}, AWAY, 0.08),
        ({"cup": CUP, "object": (np.array([0.6, 0.1, 0.02]), FALLEN)}, AWAY, 0.08),
    ),
    "ur5_pick": (
        ({"saucer": SAUCER, "cup": (np.array([0.5, 0.2, 0.008]), UP)}, AWAY, 0.085),
        ({"saucer": SAUCER, "cup": (np.array([0.4, -0.1, 0.03]), FALLEN)}, AWAY, 0.085),
    ),
}


@pytest.fixture(params=shipped_systems())
def task(request):
    return find_system(request.param).task


@pytest.mark.parametrize(("end", "outcome"), [(0, "success"), (1, "dropped")])
def test_a_state_that_lasts_decides_the_episode(task, end, outcome):
    score = build_score(task)
    judged = [score.update(step * STEP_NS, *ENDS[task.name][end]) for step in range(6)]
    assert judged[0] == "pending" and judged[-1] == outcome
    score.reset()
    assert score.update(6 * STEP_NS, *ENDS[task.name][end]) == "pending"


def test_a_cup_on_the_saucer_does_not_count_before_the_tool_is_away():
    bodies, _, width = ENDS["ur5_pick"][0]
    score = build_score(find_system("ur5_pick").task)
    around = np.array([0.5, 0.2, 0.055])
    assert {score.update(step * STEP_NS, bodies, around, width) for step in range(6)} == {"pending"}


def test_progress_is_how_far_what_is_moved_is_from_where_it_belongs():
    score = build_score(find_system("ur5_pick").task)
    assert score.progress({"saucer": SAUCER, "cup": CUP}) == "cup to saucer  100 mm"


def test_rules_ask_the_twin_for_what_it_shows(task):
    assert set(kind_of(task).bodies) <= set(build_twin(task, "127.0.0.1").bodies)


def test_an_episode_begins_with_a_gripper_within_its_limits(task):
    setup, limits = setup_of(task), task.limits
    assert limits.gripper_min <= setup.opened < setup.open_width <= limits.gripper_max
    if setup.held is not None:
        low, high = setup.held
        assert limits.gripper_min < low < high < setup.opened


def test_a_task_of_no_kind_has_an_empty_table_and_nobody_who_judges_in_the_twin(root):
    table = load_task(root / "config" / "pusht.yaml")
    assert table.kind == "table" and kind_of(table).bodies == ()
    setup = setup_of(table)
    assert setup.held is None and setup.opened < setup.open_width == table.limits.gripper_max
    score = build_score(table)
    assert score.update(60_000_000_000, {}, np.zeros(3), 0.08) == PENDING and score.timeout == NOT_JUDGED
    with pytest.raises(TaskError, match="'pusht' of kind 'table' cannot be rehearsed"):
        build_stage(table, GripperThresholds(0.03, 0.07))
    with pytest.raises(TaskError, match="'pusht' of kind 'table' has no scripted teleoperator"):
        find_demonstrator(table)


def test_an_unknown_kind_is_refused(task):
    with pytest.raises(TaskError, match="kind of task 'stacking' does not exist; valid are picking, placing, table"):
        kind_of(replace(task, kind="stacking"))


TOOL = np.array([0.48, -0.05, 0.30])
PLACES = {"cup": np.array([0.50, -0.10, 0.0]), "saucer": np.array([0.48, 0.20, 0.0])}
BEGIN_NS = 5_000_000_000


def test_a_demonstration_looks_only_at_what_the_twin_shows(task):
    assert set(find_demonstrator(task).bodies) <= set(build_twin(task, "127.0.0.1").bodies)


@pytest.mark.parametrize("style", ["clean", "diverse"])
def test_a_demonstration_begins_where_the_tool_is_and_ends_where_it_belongs(task, style):
    found = find_demonstrator(task)
    operator = found.plan(style, 3, TOOL, PLACES, BEGIN_NS)
    chunk = operator.chunk_at(BEGIN_NS, 2, 50_000_000)
    assert chunk.stamp_ns == BEGIN_NS and chunk.frame_id == task.base_frame
    np.testing.assert_allclose(chunk.actions[0, :3], TOOL, atol=1e-6)
    end, _, width, phase = operator.pose_at(operator.duration)
    np.testing.assert_allclose(end[:2], PLACES[found.bodies[-1]][:2], atol=1e-6)
    assert (phase, width) == ("hold", task.limits.gripper_max)


def test_bad_input_is_refused(task):
    with pytest.raises(BidError, match="style is 'wild'"):
        find_demonstrator(task).plan("wild", 0, TOOL, PLACES, 0)
