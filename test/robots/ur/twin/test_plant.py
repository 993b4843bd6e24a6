"""What every plant owes the controller, and the arm without mass."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.twin.moves import MoveJ
from bid_ros.robots.ur.twin.mujoco_plant import standing_arm
from bid_ros.robots.ur.twin.plant import KinematicPlant, Plant

HOME = np.array([0.0, -1.6, 1.8, -1.77, -1.57, 0.0])
PLANTS = pytest.mark.parametrize("make", [KinematicPlant, standing_arm])


@PLANTS
def test_begins_at_rest_where_it_is_put(make: Callable[..., Plant]) -> None:
    plant = make(HOME)
    np.testing.assert_array_equal(plant.joint_positions, HOME)
    np.testing.assert_array_equal(plant.joint_velocities, np.zeros(6))


@PLANTS
@pytest.mark.parametrize("dt", [0.002, 0.008])
def test_follows_a_move(make: Callable[..., Plant], dt: float) -> None:
    plant = make(HOME)
    motion, q, qd = MoveJ(HOME + 0.5, 1.0, 2.0), HOME, np.zeros(6)
    while not motion.done:
        q, qd = motion.step(q, qd, dt)
        plant.step(q, qd, dt)
        assert np.abs(plant.joint_positions - q).max() < 1e-4
        assert np.abs(plant.joint_velocities - qd).max() < 1e-2
    np.testing.assert_allclose(plant.joint_positions, HOME + 0.5, atol=1e-6)


@PLANTS
def test_brakes_stop_it_at_once_and_it_resumes_from_there(make: Callable[..., Plant]) -> None:
    plant = make(HOME)
    speed = np.full(6, 0.3)
    for k in range(100):
        plant.step(HOME + speed * 0.002 * (k + 1), speed, 0.002)
    stood = plant.joint_positions.copy()
    for _ in range(500):
        plant.hold(0.002)
        np.testing.assert_array_equal(plant.joint_velocities, np.zeros(6))
    np.testing.assert_allclose(plant.joint_positions, stood, atol=1e-12)
    for _ in range(200):
        plant.step(stood, np.zeros(6), 0.002)
    np.testing.assert_allclose(plant.joint_positions, stood, atol=1e-6)


@PLANTS
def test_state_that_was_handed_out_does_not_change(make: Callable[..., Plant]) -> None:
    plant = make(HOME)
    q, qd = plant.joint_positions, plant.joint_velocities
    target = HOME + 0.001
    plant.step(target, np.full(6, 0.5), 0.002)
    np.testing.assert_array_equal(q, HOME)
    np.testing.assert_array_equal(qd, np.zeros(6))
    after = plant.joint_positions.copy()
    target += 1.0
    np.testing.assert_array_equal(plant.joint_positions, after)


@PLANTS
@pytest.mark.parametrize("angles", [[0.0] * 5, [math.nan] * 6, [[0.0] * 6]])
def test_initial_angles_must_be_six_finite_ones(make: Callable[..., Plant], angles: list[float]) -> None:
    with pytest.raises(ArmError, match="valid are 6 finite angles"):
        make(angles)
