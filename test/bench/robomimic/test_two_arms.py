"""Two operators of one world, without the simulator."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.bench.robomimic.catalogue import POSE, TASKS, TRANSPORT
from bid_ros.bench.robomimic.env import ManipulationState
from bid_ros.bench.robomimic.scripted_operator import CLOSED, DOWN, OPEN, about_vertical
from bid_ros.bench.robomimic.two_arms import OperatorPair, until
from bid_ros.core.rotation import matrix_from_6d, matrix_to_6d

STARTS = (np.array([0.0, -0.35, 1.0]), np.array([0.1, 0.35, 1.1]))


def state(openings=(0.08, 0.04)) -> ManipulationState:
    shown = {"object": np.zeros(41)}
    for arm, (place, opening) in enumerate(zip(STARTS, openings, strict=True)):
        shown |= {f"robot{arm}_eef_pos": place, f"robot{arm}_gripper_qpos": np.array([opening, -opening]) / 2}
    agent = [np.concatenate([place, matrix_to_6d(np.eye(3)), [OPEN]]) for place in STARTS]
    return ManipulationState(np.concatenate(agent), np.zeros(60), shown, 0.0)


def pair(seed: int = 0, practice: float = 0.0) -> OperatorPair:
    return OperatorPair(state(), np.random.default_rng(seed), TASKS[TRANSPORT], practice)


def test_each_starts_where_its_arm_is_and_looks_at_the_other():
    both = pair()
    for operator, place, yaw, opening in zip(
        (both.first, both.second), STARTS, (90.0, -90.0), (0.08, 0.04), strict=True
    ):
        np.testing.assert_allclose(operator.place, place)
        np.testing.assert_allclose(operator.tool_pose[0], place)
        np.testing.assert_allclose(operator.turn, about_vertical(np.deg2rad(yaw)) @ DOWN, atol=1e-12)
        assert operator.opening == pytest.approx(opening)


def test_actions_are_joined_and_who_is_done_stays():
    both = pair()
    first, second = both.first.grip(CLOSED, 0.2), both.second.move(STARTS[1] + [0.0, -0.2, 0.0])
    actions = np.array(list(both.together(first, second)))
    assert actions.shape[1] == 2 * POSE and len(actions) > 10 and set(actions[:, 9]) == {CLOSED}
    assert np.abs(actions[:, :3] - STARTS[0]).max() < 0.02, "but for a shaking hand"
    assert abs(actions[-1, POSE + 1] - 0.15) < 0.02 and set(actions[:, -1]) == {OPEN}
    np.testing.assert_allclose(matrix_from_6d(actions[-1, 3:9]), both.first.turn, atol=1e-12)


def test_both_are_given_the_new_state():
    both = pair()
    both.state = state(openings=(0.0, 0.02))
    assert (both.first.opening, both.second.opening) == (0.0, pytest.approx(0.02))
    assert both.first.state is both.state


def test_what_one_does_does_not_change_what_the_other_draws():
    found = []
    for first in (lambda one: one.move(STARTS[0] + 0.1), lambda one: one.wait(0.2)):
        both = pair(3)
        actions = np.array(list(both.together(first(both.first), both.second.move(STARTS[1] + 0.5))))
        found.append(actions[:10, POSE:])
    np.testing.assert_array_equal(*found)
    assert both.first.skill != both.second.skill


def test_who_waits_goes_on_when_it_has_come_about():
    both, steps = pair(), []
    for action in until(both.first, lambda: len(steps) == 4):
        steps.append(action)
    assert len(steps) == 4


def test_practised_operators_are_fast_and_steady():
    usual, practised = ([pair(seed, practice).first.skill for seed in range(40)] for practice in (0.0, 0.5))
    assert min(item.speed for item in practised) > 0.14 > min(item.speed for item in usual)
    assert max(item.tremor for item in practised) < 0.002 < max(item.tremor for item in usual)
