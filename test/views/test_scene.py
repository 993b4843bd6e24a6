"""What is drawn in space: which lines a decision gives, their colours, the trail, and the state of safety."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from bid_ros.core.topics import (
    ARM_STATUS,
    DECISION,
    EPISODE_EVENT,
    MEASURED_LIMITS,
    SAFETY_CHUNK,
    SAFETY_STATE,
    TOPICS,
)
from bid_ros.system.folder import find_system
from bid_ros.views.drawn import Box, Lines, Words
from bid_ros.views.overlay import KEPT, ToolPlaces
from bid_ros.views.scene import SHORT_S, TRAIL_POINTS, WORST, ViewedScene, loss_colors


@pytest.fixture
def scene(task) -> ViewedScene:
    return ViewedScene(task)


def decision(task, total, kept):
    count = len(kept)
    strong = np.zeros((count, task.horizon, task.action_dim), np.float32)
    strong[:, :, 0] = np.arange(count)[:, None]
    return SimpleNamespace(
        samples=count,
        weak_samples=0,
        steps=task.horizon,
        dims=task.action_dim,
        current_step=task.observation_steps - 1,
        strong=strong.ravel(),
        weak=np.empty(0),
        selected=strong[0].ravel(),
        previous=np.empty(0),
        previous_steps=0,
        total=np.array(total),
        kept=kept,
    )


@pytest.fixture
def in_joints(root):
    """Return a system that commands joints, and the scene of it."""
    system = find_system(root / "config" / "joints" / "franka_place")
    return system, ViewedScene(system.task, ToolPlaces(system.task, system.arm()))


def test_joints_are_drawn_where_they_put_the_tool(in_joints):
    system, scene = in_joints
    joints = np.tile(np.array([0.0, -0.28, 0.0, -2.4, 0.0, 2.117, 0.785, 0.04]), (system.task.horizon, 1))
    joints[:, 0] += np.linspace(0.0, 0.5, len(joints))  # the first joint turns the tool about the base
    message = decision(system.task, [], [True])
    message.strong, message.selected = joints.ravel(), joints.ravel()
    parts = {part.name: part.lines for part in scene.add(DECISION, message)}
    x, y = parts["selected"][0, :, :2].T
    np.testing.assert_allclose(np.hypot(x, y), np.hypot(x, y)[0], atol=1e-6)
    np.testing.assert_allclose(np.arctan2(y, x)[-1], 0.5, atol=1e-3)
    np.testing.assert_allclose(parts["candidates"][0], parts["selected"][0], atol=1e-6)
    chunk = SimpleNamespace(source="teleop", steps=len(joints), dims=8, actions=joints.ravel())
    np.testing.assert_allclose(scene.add(SAFETY_CHUNK, chunk)[0].lines[0, -1], parts["selected"][0, -1], atol=1e-6)


def test_poses_of_a_policy_are_drawn_where_its_system_commands_joints(in_joints, task):
    _, scene = in_joints
    parts = scene.add(DECISION, decision(task, [], [True, True]))
    assert parts[0].lines[:, 0, 0].tolist() == [0.0, 1.0]


def test_joints_of_an_unknown_arm_are_not_drawn(in_joints):
    system, _ = in_joints
    assert ViewedScene(system.task).add(DECISION, decision(system.task, [], [True])) == []


def arm(x: float):
    return SimpleNamespace(tool=SimpleNamespace(position=SimpleNamespace(x=x, y=0.0, z=0.2)))


def test_the_colours_go_from_the_smallest_loss_to_the_largest():
    colors = loss_colors([2.0, 1.0, 3.0], 3)
    assert tuple(colors[1][:3]) == KEPT and tuple(colors[2][:3]) == WORST
    assert (colors[0] == loss_colors([1.0, 0.5, 1.5], 3)[0]).all(), "only the order and the shares count"


@pytest.mark.parametrize("total", [[], [1.0, 1.0], [float("nan"), float("nan")], [float("inf")] * 2])
def test_candidates_without_different_losses_are_all_like_the_best(total):
    assert {tuple(color[:3]) for color in loss_colors(total, 2)} == {KEPT}


def test_a_candidate_with_an_infinite_loss_is_the_worst():
    assert [tuple(color[:3]) for color in loss_colors([1.0, float("inf"), 2.0], 3)] == [KEPT, WORST, WORST]


def test_kept_and_trimmed_candidates_are_apart_and_coloured_by_their_own_losses(scene, task):
    parts = {part.name: part for part in scene.add(DECISION, decision(task, [5.0, np.nan, 1.0], [True, False, True]))}
    assert list(parts) == ["candidates", "trimmed", "weak", "previous", "selected"]
    rows = task.horizon - task.observation_steps + 1
    assert parts["candidates"].lines.shape == (2, rows, 3)
    assert parts["candidates"].lines[:, 0, 0].tolist() == [0.0, 2.0]
    assert [tuple(color[:3]) for color in parts["candidates"].colors] == [WORST, KEPT]
    assert parts["trimmed"].lines[:, 0, 0].tolist() == [1.0]
    assert {part.lasting_s for part in parts.values()} == {SHORT_S}


def test_a_decoder_without_losses_shows_every_candidate(scene, task):
    message = decision(task, [], [True, True])
    message.kept = []
    candidates = scene.add(DECISION, message)[0]
    assert isinstance(candidates, Lines) and len(candidates.lines) == 2


def test_the_trail_takes_a_point_when_the_tool_has_moved_and_begins_anew_with_the_episode(scene):
    assert scene.add(ARM_STATUS, arm(0.1)) and not scene.add(ARM_STATUS, arm(0.1005))
    (trail,) = scene.add(ARM_STATUS, arm(0.11))
    assert trail.lines.shape == (1, 2, 3)
    assert not scene.add(EPISODE_EVENT, SimpleNamespace(kind=2)), "it stays when the episode ends"
    (trail,) = scene.add(EPISODE_EVENT, SimpleNamespace(kind=1))
    assert trail.lines.size == 0


def test_a_long_trail_keeps_its_ends_and_loses_detail(scene):
    for number in range(3 * TRAIL_POINTS):
        scene.add(ARM_STATUS, arm(0.01 * number))
    line = scene.trail().lines[0]
    assert TRAIL_POINTS / 2 < len(line) <= TRAIL_POINTS
    assert line[0, 0] == 0.0 and line[-1, 0] == pytest.approx(0.01 * (3 * TRAIL_POINTS - 1))
    assert (np.diff(line[:, 0]) > 0).all()


def test_a_stop_is_said_once_and_reddens_the_workspace(scene, task):
    before = scene.standing()
    state = SimpleNamespace(state=1, reason="speed is 0.7 m/s; valid is up to 0.5")
    box, words = scene.add(SAFETY_STATE, state)
    assert isinstance(box, Box) and isinstance(words, Words)
    assert box.low == pytest.approx(task.limits.workspace_min) and box.color != before[0].color
    assert words.text == "STOPPED: speed is 0.7 m/s; valid is up to 0.5"
    assert words.position[2] > box.high[2]
    assert not scene.add(SAFETY_STATE, state)


def test_the_chunk_of_a_policy_is_its_decision_already(scene, task):
    actions = np.zeros((4, task.action_dim)).ravel()
    chunk = SimpleNamespace(source="teleop", steps=4, dims=task.action_dim, actions=actions)
    assert [part.name for part in scene.add(SAFETY_CHUNK, chunk)] == ["forwarded"]
    chunk.source = "policy"
    assert not scene.add(SAFETY_CHUNK, chunk)


def test_the_topics_of_the_scene_are_recorded_but_for_what_is_measured_now(scene):
    assert set(scene.topics) - {MEASURED_LIMITS} <= set(TOPICS)
