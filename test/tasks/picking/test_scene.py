"""The picking scene: what it is made of, what stands where, and what its cameras see."""

import mujoco
import numpy as np
import pytest
import yaml
from mujoco_camera import mujoco_camera

from bid_ros.cameras.model import CameraModel
from bid_ros.core.rotation import matrix_from_quaternion
from bid_ros.robots.robotiq.model import FINGERS, PADS, TOOL_FROM_FLANGE
from bid_ros.robots.robotiq.registers import MAX_OPENING
from bid_ros.robots.ur.kinematics import UR5E
from bid_ros.robots.ur.twin.model import HOME_Q, MODEL_JOINTS, scene_model
from bid_ros.sim.renderer import SceneRenderer
from bid_ros.tasks.picking.geometry import (
    CUP_RADIUS,
    CUP_X,
    CUP_Y,
    FINGERTIP_BELOW_TOOL,
    GRASP_TOOL_HEIGHT,
    SAUCER_HEIGHT,
    SAUCER_RADIUS,
    SAUCER_X,
    SAUCER_Y,
)
from bid_ros.tasks.picking.scene import CAMERAS
from bid_ros.tasks.picking.score import lean
from bid_ros.tasks.picking.world import SCENE

TCP = (0.0, 0.0, TOOL_FROM_FLANGE, 0.0, 0.0, 0.0)
DOWN = (np.pi, 0.0, 0.0)


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return scene_model(SCENE)


def posed(model, tool=(0.48, -0.05, 0.28), cup=(0.5, -0.1), width=MAX_OPENING, saucer=(0.49, 0.2)) -> mujoco.MjData:
    """The scene with the tool, pointing straight down, at a place."""
    data = mujoco.MjData(model)
    joints = [int(model.joint(name).qposadr[0]) for name in MODEL_JOINTS]
    data.qpos[joints] = UR5E.inverse((*tool, *DOWN), HOME_Q, TCP)
    for finger in FINGERS:
        data.joint(f"{finger}_joint").qpos[:] = width / 2
    data.joint("cup_joint").qpos[:] = [*cup, 0.0, 1.0, 0.0, 0.0, 0.0]
    data.mocap_pos[0, :2] = saucer
    mujoco.mj_forward(model, data)
    return data


def touching(model: mujoco.MjModel, data: mujoco.MjData, body: str) -> set[str]:
    """Names of the bodies that touch a body."""
    found = set()
    for contact in data.contact:
        pair = {model.body(model.geom_bodyid[geom]).name for geom in (contact.geom1, contact.geom2)}
        if body in pair:
            found |= pair - {body}
    return found


def test_the_scene_is_light_and_holds_arm_fingers_cup_and_saucer(model) -> None:
    # One texture: the sky of pictures for a person.
    assert (model.nq, model.nmocap, model.nmesh, model.nmat, model.ntex) == (6 + 2 + 7, 1, 0, 0, 1)
    assert model.ngeom < 40
    assert [model.camera(index).name for index in range(model.ncam)] == list(CAMERAS)


def test_home_points_the_tool_straight_down_with_the_fingers_along_y(model) -> None:
    pose = UR5E.forward(HOME_Q, TCP)
    np.testing.assert_allclose(pose[:3], (0.48, -0.05, 0.28), atol=1e-6)
    data = posed(model)
    np.testing.assert_allclose(data.body("gripper").xmat.reshape(3, 3), np.diag([1.0, -1.0, -1.0]), atol=1e-5)
    left, right = (data.geom_xpos[model.geom(pad).id] for pad in PADS)
    np.testing.assert_allclose(np.abs(left - right), [0.0, MAX_OPENING + 0.006, 0.0], atol=1e-4)


def test_the_open_gripper_straddles_the_cup_and_the_fingers_stay_off_the_table(model) -> None:
    data = posed(model, (0.5, -0.1, GRASP_TOOL_HEIGHT))
    assert touching(model, data, "cup") == {"world"}
    assert pytest.approx(0.0125) == MAX_OPENING / 2 - CUP_RADIUS
    low = posed(model, (0.5, -0.1, FINGERTIP_BELOW_TOOL - 0.001))
    assert "world" in touching(model, low, "left_finger")
    high = posed(model, (0.5, -0.1, FINGERTIP_BELOW_TOOL + 0.001))
    assert "world" not in touching(model, high, "left_finger")


@pytest.mark.parametrize("aside", [0.0, 0.03])
@pytest.mark.parametrize("drop", [0.001, 0.012])
def test_a_cup_let_go_over_the_saucer_comes_to_stand_on_it(model, aside: float, drop: float) -> None:
    data = posed(model, width=MAX_OPENING)
    data.joint("cup_joint").qpos[:3] = [0.49 + aside, 0.2, SAUCER_HEIGHT + drop]
    model_of_cup = model.body("cup").id
    start = data.qpos[:8].copy()
    while data.time < 0.8:
        data.qpos[:8], data.qvel[:8] = start, 0.0  # the robot stays out of it
        mujoco.mj_step(model, data)
    place, (w, x, y, z) = data.xpos[model_of_cup], data.xquat[model_of_cup]
    np.testing.assert_allclose(place, [0.49 + aside, 0.2, SAUCER_HEIGHT], atol=1.5e-3)
    assert lean((x, y, z, w)) < 0.02
    assert np.abs(data.joint("cup_joint").qvel[:3]).max() < 0.01


@pytest.fixture(scope="module")
def renderer(model):
    made = SceneRenderer(model, 96, 96, CAMERAS)
    yield made
    made.close()


def pictures(renderer: SceneRenderer, data: mujoco.MjData):
    return renderer.render(data.qpos, data.mocap_pos, data.mocap_quat)


def channels(image: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return tuple(image[..., index].astype(int) for index in range(3))


def cup_pixels(image: np.ndarray) -> np.ndarray:
    red, green, blue = channels(image)
    return (red > 2 * green) & (red > 2 * blue) & (red > 50)


def well_pixels(image: np.ndarray) -> np.ndarray:
    red, _, blue = channels(image)
    return (blue > red + 70) & (blue > 120)


def pad_pixels(image: np.ndarray) -> np.ndarray:
    red, green, blue = channels(image)
    return (green > red + 40) & (green > blue + 20)


def test_both_cameras_show_cup_saucer_and_pads(model, renderer) -> None:
    for name, image in pictures(renderer, posed(model)).items():
        assert image.shape == (96, 96, 3)
        assert cup_pixels(image).sum() > 40, name
        assert well_pixels(image).sum() > 30, name
        assert pad_pixels(image).sum() > 10, name


@pytest.mark.parametrize("x", CUP_X)
@pytest.mark.parametrize("y", CUP_Y)
def test_third_person_sees_the_whole_cup_over_its_whole_range(model, renderer, x: float, y: float) -> None:
    cup = cup_pixels(pictures(renderer, posed(model, cup=(x, y)))["third_person"])
    assert cup.sum() > 60
    assert not (cup[[0, -1]].any() or cup[:, [0, -1]].any())


@pytest.mark.parametrize("x", SAUCER_X)
@pytest.mark.parametrize("y", SAUCER_Y)
def test_third_person_sees_the_whole_saucer_over_its_whole_range(model, x: float, y: float) -> None:
    camera = camera_of(model)
    turns = np.linspace(0, 2 * np.pi, 16)
    rim = np.column_stack([x + SAUCER_RADIUS * np.cos(turns), y + SAUCER_RADIUS * np.sin(turns), 0 * turns])
    pixels, _ = camera.project(rim)
    assert pixels.min() > 1 and pixels.max() < 95


def test_a_centimetre_of_the_cup_is_visible_in_both_cameras(model, renderer) -> None:
    over = (0.5, -0.1, 0.16)
    here = pictures(renderer, posed(model, over, (0.5, -0.10)))
    there = pictures(renderer, posed(model, over, (0.5, -0.09)))
    for name, image in here.items():
        shift = np.argwhere(cup_pixels(there[name])).mean(axis=0) - np.argwhere(cup_pixels(image)).mean(axis=0)
        assert np.hypot(*shift) > 0.8, name


def test_the_wrist_camera_sees_the_cup_between_the_fingers(model, renderer) -> None:
    held = pictures(renderer, posed(model, (0.5, -0.1, GRASP_TOOL_HEIGHT), (0.5, -0.1)))["wrist"]
    cup, pads = np.argwhere(cup_pixels(held)), np.argwhere(pad_pixels(held))
    assert len(cup) > 300
    assert pads[:, 1].min() < cup[:, 1].min() + 5 and pads[:, 1].max() > cup[:, 1].max() - 5
    np.testing.assert_allclose(cup[:, 1].mean(), 47.5, atol=2)


def camera_of(model: mujoco.MjModel) -> CameraModel:
    data, index = posed(model), model.camera(CAMERAS[0]).id
    return mujoco_camera(model, data, index)


def test_the_camera_file_of_the_twin_has_the_camera_s_pose(root, model) -> None:
    written = yaml.safe_load((root / "config" / "ur5_pick" / "cameras.yaml").read_text())[CAMERAS[0]]["twin"]
    camera = camera_of(model)
    np.testing.assert_allclose(written["position"], camera.position, atol=1e-6)
    np.testing.assert_allclose(matrix_from_quaternion(written["quaternion"]), camera.rotation, atol=1e-5)
    assert written["fovy"] == camera.fovy


def test_the_camera_file_of_the_twin_has_the_wrist_camera_s_field_of_view(root, model) -> None:
    written = yaml.safe_load((root / "config" / "ur5_pick" / "cameras.yaml").read_text())["wrist"]["twin"]
    assert written["fovy"] == model.camera("wrist").fovy[0]
