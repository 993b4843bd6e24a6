"""Steering as a picture shows it: the axes of a camera's view, and the pose that is not known."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bid_ros.cameras.config import load_cameras
from bid_ros.core.rotation import matrix_from_quaternion
from bid_ros.system.folder import find_system
from bid_ros.teleop.view_axes import Views, seen_axes

DOWNWARD = np.array([[0.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])  # the picture's upper edge is at +x


def told(parent: str, child: str, rotation: np.ndarray) -> SimpleNamespace:
    x, y, z, w = Rotation.from_matrix(rotation).as_quat()
    transform = SimpleNamespace(rotation=SimpleNamespace(x=x, y=y, z=z, w=w))
    item = SimpleNamespace(header=SimpleNamespace(frame_id=parent), child_frame_id=child, transform=transform)
    return SimpleNamespace(transforms=[item])


@pytest.mark.parametrize("name", ["franka_place", "ur5_pick"])
def test_a_step_to_the_right_and_away_goes_right_and_up_in_the_picture_of_a_camera_that_faces_the_robot(name):
    system = find_system(name)
    cameras = load_cameras(system.file("cameras.yaml"), [camera.name for camera in system.task.cameras], twin=True)
    camera = cameras["third_person"]
    axes, model = seen_axes(matrix_from_quaternion(camera.quaternion)), camera.model(96, 96)
    assert axes is not None and axes[0, 0] < -0.5, "away from this camera is towards the robot"
    at = np.array([0.5, 0.0, 0.1])
    here, ahead, left, up = (model.project(at + 0.02 * step)[0] for step in (np.zeros(3), *axes.T))
    assert ahead[1] < here[1] and left[0] < here[0] and up[1] < here[1]
    assert abs(left[0] - here[0]) > abs(left[1] - here[1])
    np.testing.assert_allclose(axes.T @ axes, np.eye(3), atol=1e-12)


def test_ahead_of_a_camera_that_looks_straight_down_is_the_upper_edge_of_its_picture():
    np.testing.assert_allclose(seen_axes(DOWNWARD), np.eye(3), atol=1e-12)


def test_a_camera_that_looks_up_at_its_upper_edge_has_nothing_ahead():
    rotation = Rotation.from_euler("x", -45, degrees=True).as_matrix()  # z - y points straight up
    assert seen_axes(rotation) is None


def test_a_camera_at_the_wrist_turns_with_the_tool_and_one_without_a_pose_has_no_axes():
    task = find_system("franka_place").task
    views = Views(task)
    assert views.known() == [] and views.axes("wrist", np.eye(3)) is None
    views.hear(told("tool", "wrist_optical_frame", np.eye(3)))
    views.hear(told("base", "third_person_optical_frame", DOWNWARD))
    views.hear(told("elsewhere", "wrist_optical_frame", DOWNWARD))
    views.hear(told("base", "strange_optical_frame", DOWNWARD))
    assert views.known() == ["third_person", "wrist"], "one that stands still comes first"
    assert views.axes("wrist", None) is None
    turned = Rotation.from_euler("z", 90, degrees=True).as_matrix() @ DOWNWARD
    np.testing.assert_allclose(views.axes("wrist", turned)[:, 0], [0, 1, 0], atol=1e-12)
