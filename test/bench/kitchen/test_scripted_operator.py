"""Scripted operators of the kitchen, without the simulator: what they do, how they move, and how they differ."""

from __future__ import annotations

import numpy as np
import pytest
from kitchen_world import START, World

from bid_ros.bench.kitchen.catalogue import GOALS
from bid_ros.bench.kitchen.demonstrating import BEHIND_DOOR, HINGE, SCRIPTS, do_goals, draw_goals
from bid_ros.bench.kitchen.env import RATE_HZ
from bid_ros.bench.kitchen.scripted_operator import FASTEST


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_goal_is_done_and_a_seed_gives_the_same_actions(name, seed):
    world, again = World(seed), World(seed)
    actions = world.run(do_goals(world.operator, (name,)))
    assert GOALS[name].done(world.block) and len(actions) < 400
    np.testing.assert_array_equal(again.run(do_goals(again.operator, (name,))), actions)


def test_no_joint_is_faster_than_its_servo():
    for seed in range(6):
        world = World(seed)
        actions = world.run(do_goals(world.operator, ("microwave", "top burner", "slide cabinet")))
        shaking = 8 * 2 * world.operator.skill.tremor
        assert (np.abs(np.diff(actions[:, :7], axis=0)) < 1.03 * FASTEST / RATE_HZ + shaking).all()


def test_a_move_goes_softly_from_the_start_to_the_goal():
    operator = World(0).operator
    goal = START[:3] + np.array([0.2, 0.1, -0.1])
    actions = np.array(list(operator.sweep(lambda share: (START[:3] + share * (goal - START[:3]), np.zeros(3)))))
    steps = np.linalg.norm(np.diff(actions[:, :3], axis=0), axis=1)
    np.testing.assert_allclose(operator.place, goal)
    assert steps[0] < 0.6 * steps.max() and steps[-1] < 0.6 * steps.max()


def test_who_loses_the_kettle_takes_it_again():
    whole = World(3)
    whole.run(do_goals(whole.operator, ("kettle",)))
    world = World(3, lose_at=whole.grasped_at + 7)
    world.run(do_goals(world.operator, ("kettle",)))
    assert GOALS["kettle"].done(world.block)
    assert world.grasped.count("kettle_site") > whole.grasped.count("kettle_site")


def test_some_close_the_fingers_on_nothing_and_try_again():
    first = []
    for seed in range(30):
        world = World(seed)
        world.run(do_goals(world.operator, ("microwave",)))
        assert world.grasped[-1] == "microhandle_site"
        first.append(world.grasped[0])
    assert 2 <= first.count("") <= 12


@pytest.mark.parametrize(
    ("name", "site"),
    [("slide cabinet", "slide_site"), ("top burner", "knob4_site"), ("light switch", "light_site")],
)
def test_some_take_hold_and_some_push(name, site):
    held = []
    for seed in range(12):
        world = World(seed)
        world.run(do_goals(world.operator, (name,)))
        held.append(site in world.grasped)
    assert 2 <= sum(held) <= 10


def test_goals_and_their_order_are_drawn():
    drawn = [draw_goals(np.random.default_rng(seed)) for seed in range(400)]
    assert all(len(set(names)) == 4 and set(names) <= set(SCRIPTS) for names in drawn)
    assert len(set(drawn)) > 150 and len({frozenset(names) for names in drawn}) == 35
    assert {names[0] for names in drawn} == set(SCRIPTS)


def test_what_the_open_door_hides_is_done_before_it():
    for seed in range(400):
        names = draw_goals(np.random.default_rng(seed))
        if HINGE in names:
            after = names[names.index(HINGE) :]
            assert not set(after) & set(BEHIND_DOOR)
