import numpy as np
import pytest

from bid_ros.core.errors import TaskError
from bid_ros.sim.soft_start import SOFT_START_S
from bid_ros.tasks.placing.cup_path import MIN_TURN_RADIUS, _closed_curve, episode_scene
from bid_ros.tasks.placing.geometry import CUP_X, CUP_Y

SEEDS = range(12)


def sampled(seed: int, speed: float, seconds: float = 25.0, dt: float = 0.01) -> np.ndarray:
    path = episode_scene(seed, speed).path
    return np.array([path.position(t) for t in np.arange(0.0, seconds, dt)])


@pytest.mark.parametrize("speed", [0.01, 0.03, 0.06])
@pytest.mark.parametrize("seed", SEEDS)
def test_path_stays_in_range_at_the_speed_asked_for(seed: int, speed: float) -> None:
    points = sampled(seed, speed)
    assert points[:, 0].min() >= CUP_X[0] - 1e-9 and points[:, 0].max() <= CUP_X[1] + 1e-9
    assert points[:, 1].min() >= CUP_Y[0] - 1e-9 and points[:, 1].max() <= CUP_Y[1] + 1e-9
    speeds = np.hypot(*np.diff(points, axis=0).T) / 0.01
    assert speeds[0] < 0.01 * speed + 1e-6
    np.testing.assert_allclose(speeds[int(SOFT_START_S * 100) + 1 :], speed, rtol=0.01)


@pytest.mark.parametrize("seed", SEEDS)
def test_velocity_has_no_jumps(seed: int) -> None:
    speed, dt = 0.06, 0.01
    accelerations = np.diff(sampled(seed, speed, dt=dt), n=2, axis=0) / dt**2
    sharpest_turn, soft_start = speed**2 / MIN_TURN_RADIUS, 1.5 * speed / SOFT_START_S
    assert np.hypot(*accelerations.T).max() < 1.3 * (sharpest_turn + soft_start)


def test_layout_depends_on_the_seed_only() -> None:
    one, other = episode_scene(7, 0.03), episode_scene(7, 0.06)
    np.testing.assert_array_equal(one.cup_start, other.cup_start)
    # The same curve: twice as fast reaches the same place in half the time, apart from the soft start.
    late = 10.0 + SOFT_START_S / 2
    np.testing.assert_allclose(one.path.position(20.0 + SOFT_START_S / 2), other.path.position(late), atol=1e-9)
    assert not np.allclose(one.cup_start, episode_scene(8, 0.03).cup_start)


def test_starts_cover_their_ranges() -> None:
    scenes = [episode_scene(seed) for seed in range(40)]
    cups = np.array([scene.cup_start for scene in scenes])
    assert np.ptp(cups[:, 0]) > 0.12 and np.ptp(cups[:, 1]) > 0.2


def test_start_in_a_corner_has_no_path_and_ends_the_search() -> None:
    corner = np.array([CUP_X[0], CUP_Y[0]])
    assert _closed_curve(corner, np.random.default_rng(0)) is None
    assert _closed_curve(corner + 0.04, np.random.default_rng(0)) is not None


def test_static_cup_stands_at_its_start() -> None:
    scene = episode_scene(3, 0.0)
    for t in (0.0, 1.0, 30.0):
        np.testing.assert_allclose(scene.path.position(t), scene.cup_start, atol=1e-12)


def test_path_before_its_start_is_the_start() -> None:
    scene = episode_scene(3)
    np.testing.assert_allclose(scene.path.position(-1.0), scene.cup_start, atol=1e-12)


@pytest.mark.parametrize("speed", [-0.01, 0.5, float("nan")])
def test_impossible_speed_is_refused(speed: float) -> None:
    with pytest.raises(TaskError, match=r"valid is 0 \(static\) to 0.1"):
        episode_scene(0, speed)


def test_negative_seed_is_refused() -> None:
    with pytest.raises(TaskError, match="seed is -1"):
        episode_scene(-1)
