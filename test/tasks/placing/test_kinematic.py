from itertools import product

import numpy as np
import pytest
from twin_layout import HOME_TOOL

from bid_ros.core.errors import ArmError
from bid_ros.core.task import load_task
from bid_ros.tasks.placing.geometry import CUP_X, CUP_Y
from bid_ros.tasks.placing.kinematic import KinematicScene

DOWN = np.array([1.0, 0.0, 0.0, 0.0])


@pytest.fixture(scope="module")
def scene():
    scene = KinematicScene()
    yield scene
    scene.close()


def test_home_is_where_the_twin_starts(scene):
    scene.home()
    np.testing.assert_allclose(scene.tool_position, HOME_TOOL, atol=1e-3)


def test_every_corner_of_the_task_is_reached_to_a_fraction_of_a_millimetre(scene, root):
    start = load_task(root / "config" / "franka_place" / "task.yaml").start
    least, most = (start.tool_min[0], start.tool_min[1], 0.108), (CUP_X[1], CUP_Y[1], start.tool_max[2])
    corners = list(product(*zip(least, most, strict=True)))
    for corner in corners:
        scene.home()
        scene.move(np.array(corner), DOWN)
        np.testing.assert_allclose(scene.tool_position, corner, atol=3e-4)


def test_out_of_reach_is_said(scene):
    scene.home()
    with pytest.raises(ArmError, match="cannot put its tool"):
        scene.move(np.array([1.5, 0.0, 0.3]), DOWN)
    scene.home()


def test_the_cameras_see_the_cup_and_the_object(scene):
    scene.home()
    scene.move(np.array(HOME_TOOL), DOWN)
    first = {name: image.astype(int) for name, image in scene.images(0.04, True, np.array([0.5, 0.0])).items()}
    moved = scene.images(0.04, True, np.array([0.55, 0.05]))
    placed = scene.images(0.08, False, np.array([0.5, 0.0]))
    for name, image in first.items():
        assert image.shape == (96, 96, 3)
        assert np.abs(moved[name] - image).max() > 50, f"{name} does not see the cup"
        assert np.abs(placed[name] - image).max() > 50, f"{name} does not see the object"
