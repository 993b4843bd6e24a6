"""Scripted operators, without the simulator: how they move, and how they differ."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.bench.robomimic.catalogue import LIFT, TASKS
from bid_ros.bench.robomimic.env import ManipulationState
from bid_ros.bench.robomimic.lift import lift
from bid_ros.bench.robomimic.scripted_operator import (
    CLOSED,
    DOWN,
    OPEN,
    ScriptedOperator,
    about_vertical,
)
from bid_ros.bench.skill import draw_skill
from bid_ros.core.rotation import matrix_from_6d, matrix_from_vector, vector_from_matrix

START = np.array([-0.1, 0.0, 1.0])
CUBE = np.array([0.02, -0.01, 0.82])


def state(place=START, opening=0.08, cube=CUBE):
    shown = {
        "object": np.concatenate([cube, [0.0, 0.0, 0.0, 1.0], cube - place]),
        "robot0_eef_pos": place,
        "robot0_eef_quat": np.array([1.0, 0.0, 0.0, 0.0]),
        "robot0_gripper_qpos": np.array([opening / 2, -opening / 2]),
    }
    return ManipulationState(np.zeros(10), np.zeros(16), shown, 0.0)


def operator(seed=0):
    return ScriptedOperator(state(), np.random.default_rng(seed), TASKS[LIFT])


def followed(one, script, hold, most=800):
    """Let the tool be where it is told, and the fingers hold what is between them; return the actions."""
    cube, actions = CUBE.copy(), []
    for action in script:
        actions.append(action)
        place, closed = action[:3], action[9] > 0
        held = closed and hold and np.abs(place - cube).max() < 0.02
        cube = place.copy() if held else cube
        one.state = state(place, 0.042 if held else 0.0 if closed else 0.08, cube)
        if len(actions) == most:
            break
    return np.array(actions), cube


def test_a_move_goes_softly_from_the_start_to_the_goal():
    one = operator()
    goal = START + np.array([0.2, 0.0, -0.1])
    actions = np.array(list(one.move(goal, yaw=0.5)))
    steps = np.linalg.norm(np.diff(actions[:, :3], axis=0), axis=1) * 20
    np.testing.assert_allclose(one.place, goal)
    assert np.linalg.norm(actions[-1, :3] - goal) < 6 * one.skill.tremor
    assert np.linalg.norm(actions[0, :3] - START) < 0.02 and steps.max() < 1.5 * one.skill.speed + 0.2
    turn = matrix_from_6d(actions[-1, 3:9])
    np.testing.assert_allclose(
        turn @ DOWN.T, [[np.cos(0.5), -np.sin(0.5), 0], [np.sin(0.5), np.cos(0.5), 0], [0, 0, 1]]
    )


def test_a_hand_leans_as_it_turns_and_keeps_its_lean():
    one = operator()
    lean = DOWN @ matrix_from_vector([-0.5, 0.0, 0.0])
    actions = np.array(list(one.move(START, 0.4, 1.0, lean)))
    np.testing.assert_allclose(matrix_from_6d(actions[-1, 3:9]), about_vertical(0.4) @ lean, atol=1e-12)
    found = matrix_from_6d(actions[:, 3:9])
    turns = np.linalg.norm(vector_from_matrix(found[1:] @ found[:-1].mT), axis=1)
    assert turns.max() * 20 < 1.5 * one.skill.turn_speed, "it turns no faster than this operator does"
    list(one.move(START + 0.1, -0.2))
    np.testing.assert_allclose(one.turn, about_vertical(-0.2) @ lean, atol=1e-12)
    list(one.move(START, 0.0, 1.0, DOWN))
    np.testing.assert_allclose(one.turn, DOWN, atol=1e-12)


def test_a_tool_that_is_behind_is_waited_for_but_not_for_ever():
    one = operator()
    far, near = (START + np.array([0.0, aside, 0.0]) for aside in (0.1, 0.005))
    one.state = ManipulationState(np.concatenate([far, np.zeros(7)]), np.zeros(16), one.state.shown, 0.0)
    assert len(list(one.arrive(0.01))) == 30 and len(list(one.arrive(0.01, longest=0.5))) == 10
    one.state = ManipulationState(np.concatenate([near, np.zeros(7)]), np.zeros(16), one.state.shown, 0.0)
    assert list(one.arrive(0.01)) == []


def test_operators_differ_in_speed_skill_and_pauses():
    skills = [draw_skill(np.random.default_rng(seed)) for seed in range(40)]
    assert min(item.speed for item in skills) < 0.15 < 0.25 < max(item.speed for item in skills)
    assert min(item.miss for item in skills) < 0.15 < 0.35 < max(item.miss for item in skills)
    fast, slow = (np.array([item.speed for item in skills]), np.array([item.tremor for item in skills]))
    assert np.corrcoef(fast, slow)[0, 1] < -0.3, "who is fast is steady, too"


@pytest.mark.parametrize("seed", range(6))
def test_the_cube_is_lifted_and_a_seed_gives_the_same_actions(seed):
    one, again = operator(seed), operator(seed)
    actions, cube = followed(one, lift(one), hold=True)
    assert cube[2] > CUBE[2] + 0.06 and set(actions[:, 9]) == {OPEN, CLOSED}
    np.testing.assert_array_equal(followed(again, lift(again), hold=True)[0], actions)


def test_some_choose_another_side_and_another_path():
    found = []
    for seed in range(30):
        one = operator(seed)
        actions, _ = followed(one, lift(one), hold=True)
        found.append((round(one.yaw / (np.pi / 2)), actions[:, 1].max() > 0.04, actions[:, 1].min() < -0.05))
    assert {turns for turns, _, _ in found} == {-1, 0, 1}
    assert sum(left for _, left, _ in found) >= 3 and sum(right for _, _, right in found) >= 3


def test_who_holds_nothing_opens_rises_and_tries_again():
    one = operator(1)
    actions, _ = followed(one, lift(one), hold=False)
    closing = (np.diff(actions[:, 9]) > 0).sum()
    assert len(actions) == 800 and closing >= 3
    opened = np.flatnonzero(np.diff(actions[:, 9]) < 0)[0]
    assert actions[opened : opened + 60, 2].max() > actions[opened, 2] + 0.03
