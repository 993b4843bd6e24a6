"""The spread of a network's actions in the task's terms."""

import numpy as np
import pytest
from space_samples import PLACE

from bid_ros.core.errors import BundleError
from bid_ros.policy.spaces.config import Part, Space
from bid_ros.policy.spaces.view import task_spread

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
