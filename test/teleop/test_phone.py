"""A phone that is held: its angles as a browser tells them, and how far it has come."""

import numpy as np
import pytest

from bid_ros.core.rotation import vector_from_matrix
from bid_ros.teleop.phone import Grip, facing, rotation_of

STILL = np.zeros(4)


def turn(first, then) -> np.ndarray:
    """The tool's turn, rad about x, y and z of the base, between two angles of the phone."""
    grip = Grip()
    grip.offset(1, STILL, np.array(first, float))
    return vector_from_matrix(grip.offset(1, STILL, np.array(then, float)).rotation)


def test_the_angles_mean_what_the_standard_says():
    # Flat on a table: z is up; stood up: the top is up; turned left by a quarter: its top points to west.
    np.testing.assert_allclose(rotation_of(0, 0, 0), np.eye(3), atol=1e-12)
    np.testing.assert_allclose(rotation_of(0, 90, 0)[:, 1], [0, 0, 1], atol=1e-12)
    np.testing.assert_allclose(rotation_of(90, 0, 0)[:, 1], [-1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(rotation_of(0, 0, 90)[:, 0], [0, 0, -1], atol=1e-12)


@pytest.mark.parametrize("beta", [0, 40, 89])
@pytest.mark.parametrize("alpha", [0, 130, 300])
def test_ahead_is_away_from_the_person_however_the_phone_is_held(alpha, beta):
    ahead = facing(rotation_of(alpha, beta, 0))[:, 0]
    np.testing.assert_allclose(ahead, rotation_of(alpha, 0, 0)[:, 1], atol=1e-9)


@pytest.mark.parametrize("alpha", [0, 130, 300])
def test_a_turn_means_the_same_wherever_north_is(alpha):
    np.testing.assert_allclose(turn([alpha, 40, 0], [alpha + 30, 40, 0]), [0, 0, np.radians(30)], atol=1e-9)
    # The top is lifted: about the axis to the right of the person, which is the base's y backwards.
    np.testing.assert_allclose(turn([alpha, 10, 0], [alpha, 40, 0]), [0, -np.radians(30), 0], atol=1e-9)
    # Its right edge goes down: about the axis ahead.
    np.testing.assert_allclose(turn([alpha, 0, 0], [alpha, 0, 30]), [np.radians(30), 0, 0], atol=1e-9)


def test_a_sensor_that_wakes_up_during_a_hold_begins_a_new_one():
    grip = Grip()
    first = grip.offset(1, np.array([0.1, 0.0, 0.0, 0.0]), None)
    second = grip.offset(1, np.array([0.2, 0.0, 0.0, 0.0]), np.array([80.0, 20.0, 0.0]))
    assert second.closing == first.closing + 1
    np.testing.assert_allclose(second.rotation, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(second.position, 0.0)


def test_a_dragged_turn_is_about_the_vertical():
    grip = Grip()
    grip.offset(1, STILL, np.array([70.0, 30.0, 5.0]))
    offset = grip.offset(1, np.array([0.0, 0.0, 0.0, 0.5]), np.array([70.0, 30.0, 5.0]))
    np.testing.assert_allclose(vector_from_matrix(offset.rotation), [0, 0, 0.5], atol=1e-9)
