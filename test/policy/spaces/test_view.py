"""The task as a network sees it."""

from dataclasses import replace

import numpy as np
import pytest
from space_samples import PLACE

from bid_ros.core.errors import BundleError
from bid_ros.policy.spaces.config import ObservedFeature, Part, Space
from bid_ros.policy.spaces.view import NetworkTask, network_task, task_spread

SPACE = Space(
    observation=(
        ObservedFeature(name="observation.image", camera=PLACE.cameras[0].name, size=(84, 96)),
        ObservedFeature(name="observation.state", columns=(Part(feature="tool_rotation", form="matrix"),)),
    ),
    action=(Part(feature="gripper_width"), Part(ignored=3)),
    held=("tool_position", "tool_rotation"),
    observation_steps=5,
    past_rows=0,
    horizon=4,
    rate_hz=20.0,
)


def test_features_columns_and_rates_are_the_network_s():
    short = replace(PLACE, horizon=2)
    task = network_task(SPACE, short)
    assert [(item.name, item.kind, item.shape) for item in task.observation] == [
        ("observation.image", "image", (84, 96, 3)),
        ("observation.state", "vector", (9,)),
    ]
    assert (task.observation_steps, task.horizon, task.action_dim, task.rate_hz) == (5, 4, 4, 20.0)
    assert [item.name for item in task.cameras] == ["observation.image"]
    assert [item.name for item in task.vectors] == ["observation.state"]
    assert isinstance(task, NetworkTask) and task.limits is short.limits


def test_an_empty_space_is_the_task():
    task = network_task(Space(), PLACE)
    assert [(item.name, item.shape) for item in task.observation] == [(i.name, i.shape) for i in PLACE.observation]
    assert (task.observation_steps, task.horizon, task.action_dim, task.rate_hz) == (2, 16, 10, 10)


ROTATION, GRIPPER = (
    Part(feature="tool_rotation", form="rotation_vector"),
    Part(feature="gripper_width", form="fraction"),
)


def space(**position):
    return Space(action=(Part(feature="tool_position", **position), ROTATION, GRIPPER))


def test_numbers_have_the_spread_of_their_columns_in_the_task_s_units():
    deviation = [100.0, 200.0, 50.0, 0.0, 0.0, 0.0, 0.5]
    found = task_spread(space(scale=0.001), PLACE, [400.0, 0.0, 200.0, np.pi, 0.0, 0.0, 0.5], deviation)
    np.testing.assert_allclose(found, [0.1, 0.2, 0.05, *[0.0] * 6, 0.04], rtol=0.03, atol=1e-9)


def test_a_rotation_about_one_axis_moves_the_columns_that_it_turns():
    found = task_spread(space(), PLACE, np.zeros(7), [0, 0, 0, 0, 0, 0.1, 1])
    np.testing.assert_allclose(found[3:9], [0.007, 0.1, 0, 0.1, 0.007, 0], atol=0.002)


def test_steps_add_up():
    found = task_spread(space(reference="previous"), PLACE, np.zeros(7), [0.01, 0, 0, 0, 0, 0, 1])
    # Rows 0 and 1 count from what is observed, so row k is the sum of k steps.
    assert found[0] == pytest.approx(0.01 * np.sqrt(np.mean([1, *range(1, 16)])), rel=0.1)


@pytest.mark.parametrize("deviation", [np.ones(6), [*np.ones(6), np.nan]])
def test_what_is_no_statistic_is_refused(deviation):
    with pytest.raises(BundleError, match=r"the deviation has shape .*; valid are 7 finite numbers"):
        task_spread(space(), PLACE, np.zeros(7), deviation)
