import numpy as np
import pytest
from mujoco_camera import mujoco_camera

from bid_ros.cameras.model import CameraModel
from bid_ros.core.errors import CameraError

# One metre above the base, looking straight down, the picture's top towards +x: x right = -y, y down = -x.
DOWN = np.array([[0.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
EYE = np.array([0.5, 0.0, 1.0])


def test_known_points_of_a_camera_that_looks_down():
    camera = CameraModel(EYE, DOWN, 90.0, 200, 100)
    pixels, depth = camera.project([[0.5, 0.0, 0.0], [1.5, 0.0, 0.0], [0.5, -1.0, 0.0], [0.5, 0.1, 0.5]])
    np.testing.assert_allclose(pixels, [[100, 50], [100, 0], [150, 50], [90, 50]], atol=1e-9)
    np.testing.assert_allclose(depth, [1, 1, 1, 0.5])


def test_points_behind_the_camera_have_no_pixel():
    pixels, depth = CameraModel(EYE, DOWN, 90.0, 200, 100).project([[0.5, 0.0, 2.0], [0.5, 0.0, 1.0]])
    assert np.isnan(pixels).all()
    np.testing.assert_allclose(depth, [-1, 0])


def test_any_leading_shape():
    pixels, depth = CameraModel(EYE, DOWN, 60.0, 96, 96).project(np.zeros((4, 5, 3)))
    assert pixels.shape == (4, 5, 2) and depth.shape == (4, 5)


def test_agrees_with_opencv():
    cv2 = pytest.importorskip("cv2")
    rng = np.random.default_rng(0)
    rotation = cv2.Rodrigues(np.array([2.0, -0.4, 0.3]))[0]
    camera = CameraModel(rng.normal(size=3), rotation, 50.0, 640, 480)
    points = camera.position + rng.uniform([-1, -1, 2], [1, 1, 4], (20, 3)) @ rotation.T
    focal = 240 / np.tan(np.radians(25))
    matrix = np.array([[focal, 0, 320], [0, focal, 240], [0, 0, 1]])
    expected, _ = cv2.projectPoints(points, cv2.Rodrigues(rotation.T)[0], -rotation.T @ camera.position, matrix, None)
    np.testing.assert_allclose(camera.project(points)[0], expected[:, 0], atol=1e-6)


def test_mujoco_renders_a_point_where_the_model_says():
    mujoco = pytest.importorskip("mujoco")
    scene = (
        '<mujoco><worldbody><camera name="c" pos="1 .4 .7" xyaxes="-.4 1 0 -.5 -.2 1" fovy="27"/></worldbody></mujoco>'
    )
    model = mujoco.MjModel.from_xml_string(scene)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    camera = mujoco_camera(model, data, 0)
    right, up, back = data.cam_xmat[0].reshape(3, 3).T
    top = np.tan(np.radians(13.5))
    pixels, depth = camera.project(data.cam_xpos[0] - 2 * back + 2 * top * up + top * right)
    np.testing.assert_allclose(pixels, [72, 0], atol=1e-9)
    assert depth == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"position": np.array([0.0, np.nan, 0.0])}, "three finite numbers"),
        ({"rotation": np.eye(3) * 2}, "rotation matrix"),
        ({"rotation": np.diag([1.0, 1.0, -1.0])}, "is a reflection"),
        ({"fovy": 180.0}, "fovy is 180.0 degrees; valid is above 0 and below 180"),
        ({"width": 0}, "picture is 0x96 px"),
    ],
)
def test_refuses_impossible_cameras(changes, words):
    values = {"position": EYE, "rotation": DOWN, "fovy": 45.0, "width": 96, "height": 96, **changes}
    with pytest.raises(CameraError, match=words):
        CameraModel(**values)
