import math

import numpy as np
import pytest

from bid_ros.core.errors import TaskError
from bid_ros.sim.soft_start import SOFT_START_S, travelled
from bid_ros.tasks.picking.geometry import CUP_RADIUS, CUP_X, CUP_Y, SAUCER_RADIUS, SAUCER_X, SAUCER_Y
from bid_ros.tasks.picking.string_path import RADIUS, StringPath, picking_layout

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_cup_never_leaves_its_range(seed: int) -> None:
    path = picking_layout(seed, 0.04).path
    points = np.array([path.position(distance) for distance in np.arange(0.0, 2.0, 0.002)])
    assert points[:, 0].min() >= CUP_X[0] - 1e-9 and points[:, 0].max() <= CUP_X[1] + 1e-9
    assert points[:, 1].min() >= CUP_Y[0] - 1e-9 and points[:, 1].max() <= CUP_Y[1] + 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_distance_is_arc_length_and_direction_its_tangent(seed: int) -> None:
    path = picking_layout(seed).path
    for distance in (0.0, 0.07, 0.31):
        step = (path.position(distance + 1e-6) - path.position(distance - 1e-6)) / 2e-6
        np.testing.assert_allclose(step, path.direction(distance), atol=1e-6)
    assert RADIUS[0] <= abs(1 / path.curvature) <= RADIUS[1]
    np.testing.assert_allclose(path.position(0.0), path.start, atol=1e-12)


def test_the_layout_depends_on_the_seed_only() -> None:
    one, other = picking_layout(7, 0.0), picking_layout(7, 0.04)
    np.testing.assert_array_equal(one.cup_start, other.cup_start)
    np.testing.assert_array_equal(one.saucer, other.saucer)
    np.testing.assert_array_equal(one.path.position(0.1), other.path.position(0.1))
    assert not np.allclose(one.cup_start, picking_layout(8, 0.0).cup_start)


def test_layouts_cover_starts_directions_and_both_turns() -> None:
    layouts = [picking_layout(seed) for seed in range(200)]
    starts = np.array([layout.cup_start for layout in layouts])
    assert np.ptp(starts[:, 0]) > 0.16 and np.ptp(starts[:, 1]) > 0.22
    headings = {math.floor(math.remainder(layout.path.heading, 2 * math.pi) / (math.pi / 4)) for layout in layouts}
    assert headings == set(range(-4, 4))
    left = np.mean([layout.path.curvature > 0 for layout in layouts])
    assert 0.35 < left < 0.65
    saucers = np.array([layout.saucer for layout in layouts])
    for column, (low, high) in zip(saucers.T, (SAUCER_X, SAUCER_Y), strict=True):
        assert low <= column.min() < column.max() <= high and np.ptp(column) > 0.8 * (high - low)


def test_no_cup_reaches_the_saucer() -> None:
    assert SAUCER_Y[0] - SAUCER_RADIUS > CUP_Y[1] + CUP_RADIUS + 0.02


def test_the_start_is_soft() -> None:
    speed, dt = 0.04, 0.01
    distances = np.array([travelled(speed, t) for t in np.arange(-0.1, 2.0, dt)])
    speeds = np.diff(distances) / dt
    assert distances[0] == 0.0 and (speeds >= 0).all()
    np.testing.assert_allclose(speeds[-100:], speed)
    assert np.abs(np.diff(speeds)).max() / dt < 1.6 * speed / SOFT_START_S


@pytest.mark.parametrize("speed", [-0.01, 0.5, float("nan")])
def test_an_impossible_speed_is_refused(speed: float) -> None:
    with pytest.raises(TaskError, match=r"cup speed is .*; valid is 0 \(static\) to 0.1"):
        picking_layout(0, speed)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(TaskError, match="seed is -1; valid is 0 or more"):
        picking_layout(-1)


@pytest.mark.parametrize(
    ("start", "curvature", "words"),
    [
        ((0.49, -0.08), 0.0, "curvature is 0.0"),
        ((0.49, -0.08), float("nan"), "curvature is nan"),
        ((0.41, -0.08), 1 / 0.06, r"radius 0.060 m from .* leaves the cup's range"),
    ],
)
def test_impossible_paths_are_refused(start: tuple[float, float], curvature: float, words: str) -> None:
    with pytest.raises(TaskError, match=words):
        StringPath(start, math.pi / 2, curvature, 0.02)
