"""The rules of each task's episodes: how they begin and what their end counts as."""

import numpy as np
import pytest

from bid_ros.errors import TaskError
from bid_ros.evaluation.trial import TRIALS, build_trial
from bid_ros.sim.scenes import SCENES
from bid_ros.sim.twins import build_twin
from bid_ros.task import load_task

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


@pytest.fixture(params=SCENES)
def name(request):
    return request.param


@pytest.mark.parametrize(("end", "outcome"), [(0, "success"), (1, "dropped")])
def test_a_state_that_lasts_decides_the_episode(name, end, outcome):
    trial = build_trial(name)
    judged = [trial.update(step * STEP_NS, *ENDS[name][end]) for step in range(6)]
    assert judged[0] == "pending" and judged[-1] == outcome
    trial.reset()
    assert trial.update(6 * STEP_NS, *ENDS[name][end]) == "pending"


def test_a_cup_on_the_saucer_does_not_count_before_the_tool_is_away():
    bodies, _, width = ENDS["ur5_pick"][0]
    trial = build_trial("ur5_pick")
    around = np.array([0.5, 0.2, 0.055])
    assert {trial.update(step * STEP_NS, bodies, around, width) for step in range(6)} == {"pending"}


def test_progress_is_how_far_what_is_moved_is_from_where_it_belongs():
    assert build_trial("ur5_pick").progress({"saucer": SAUCER, "cup": CUP}) == "cup to saucer  100 mm"


def test_rules_ask_the_twin_for_what_it_shows(name):
    assert set(build_trial(name).bodies) <= set(build_twin(name, "127.0.0.1").bodies)


def test_an_episode_begins_with_a_gripper_within_its_limits(root, name):
    setup, limits = build_trial(name).setup, load_task(root / "config" / f"{name}.yaml").limits
    assert limits.gripper_min <= setup.opened < setup.open_width <= limits.gripper_max
    if setup.held is not None:
        low, high = setup.held
        assert limits.gripper_min < low < high < setup.opened


def test_a_task_without_rules_is_refused():
    assert set(TRIALS) == set(SCENES)
    with pytest.raises(TaskError, match=r"no rules say when .* 'pusht' succeeds; valid are franka_place, ur5_pick"):
        build_trial("pusht")
