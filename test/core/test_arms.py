"""Several arms as one task: joined, taken apart, and refused where they could meet."""

from dataclasses import replace

import numpy as np
import pytest

from bid_ros.core.arms import ArmPlace, Arms, ArmsBuffer, check_apart, joint_outcome, scene_seed
from bid_ros.core.errors import TaskError
from bid_ros.core.observation import Observation

MS = 1_000_000


@pytest.fixture
def arms(task):
    return Arms("two", {"left": task, "right": task})


def test_what_is_joined_comes_apart_as_it_was(arms, task):
    assert arms.task.action_dim == 2 * task.action_dim
    assert [item.name for item in arms.task.action][:4:3] == ["left/tool_position", "right/tool_position"]
    assert arms.columns == {"left": slice(0, 10), "right": slice(10, 20)}
    rng = np.random.default_rng(0)
    parts = {
        arm: Observation(5, {item.name: rng.random((2, *item.shape)) for item in task.observation}, {"wrist": (4, 5)})
        for arm in arms.tasks
    }
    whole = arms.whole(parts)
    assert set(whole.values) == {item.name for item in arms.task.observation}
    for arm, part in parts.items():
        found = arms.part(arm, whole)
        assert found.samples_ns == {"wrist": (4, 5)}
        assert all((found.values[name] == value).all() for name, value in part.values.items())


def test_a_policy_trained_for_both_is_told_from_one_of_another_pair(arms, task):
    assert arms.task.signature() == Arms("two", {"left": task, "right": task}).task.signature()
    assert arms.task.signature() != Arms("two", {"a": task, "b": task}).task.signature()


def test_arms_that_cannot_decide_together_are_refused(task):
    with pytest.raises(TaskError, match=r"rate_hz is 10 of 'left', 5 of 'right'; valid is the same"):
        Arms("two", {"left": task, "right": replace(task, rate_hz=5)})
    with pytest.raises(TaskError, match="arms are left; valid are two or more"):
        Arms("two", {"left": task})
    with pytest.raises(TaskError, match="arms are left, a/b"):
        Arms("two", {"left": task, "a/b": task})


@pytest.mark.parametrize(
    ("place", "apart"),
    [
        (ArmPlace((0.0, -1.0, 0.0)), True),
        (ArmPlace((0.0, -0.8, 0.0)), False),  # the boxes of the tools are apart, what they carry is not
        (ArmPlace((0.0, -1.0, 0.0), np.pi / 2), False),  # turned, it reaches for the other
        (ArmPlace((1.5, 0.0, 0.0), np.pi), False),  # face to face
        (ArmPlace((1.8, 0.0, 0.0), np.pi), True),
    ],
)
def test_workspaces_that_overlap_are_refused(task, place, apart):
    places = {"left": ArmPlace((0.0, 0.0, 0.0)), "right": place}
    if apart:
        check_apart(places, {"left": task, "right": task})
        return
    with pytest.raises(TaskError, match=r"'left' and 'right' overlap by 0\.\d+ m, .*; valid are bases further apart"):
        check_apart(places, {"left": task, "right": task})


def test_frames_of_two_instants_make_no_observation(arms):
    buffer, images = ArmsBuffer(arms.task), {item.name: np.zeros(item.shape, np.uint8) for item in arms.task.cameras}

    def add(arm, stamp):
        for name in (name for name in images if name.startswith(arm)):
            buffer.add(name, stamp * MS, images[name])

    add("left", 1002)
    assert buffer.stamp_ns() is None
    add("right", 1000)
    assert buffer.stamp_ns() == 1000 * MS
    add("right", 1100)  # the left frames of before are the newest of their cameras, and not of this instant
    assert buffer.stamp_ns() == 1000 * MS
    add("left", 1102)
    assert buffer.stamp_ns() == 1100 * MS


def test_an_episode_is_a_success_of_all_arms_in_scenes_of_their_own():
    assert joint_outcome({"left": "success", "right": "success"}) == "success"
    assert joint_outcome({"left": "dropped", "right": "success"}) == "left: dropped"
    assert len({scene_seed(seed, arm) for seed in range(3) for arm in range(2)}) == 6
