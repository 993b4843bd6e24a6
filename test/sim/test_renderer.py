import mujoco
import numpy as np
import pytest
from twin_layout import HOME_TOOL

from bid_ros.core.errors import CameraError
from bid_ros.robots.franka.model import HOME_Q, scene_model
from bid_ros.sim.renderer import SceneRenderer
from bid_ros.tasks.placing.geometry import (
    CUP_X,
    CUP_Y,
    GRASP_BELOW_TOP,
    OBJECT_LENGTH,
)
from bid_ros.tasks.placing.world import SCENE


@pytest.fixture(scope="module")
def renderer():
    made = SceneRenderer(scene_model(SCENE), 96, 96)
    yield made
    made.close()


def state(cup: tuple[float, float] = (0.52, 0.0)) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The arm at home with the object in its gripper, the cup at ``cup``."""
    model = scene_model(SCENE)
    data = mujoco.MjData(model)
    data.qpos[:7] = HOME_Q
    data.qpos[7:9] = 0.02
    x, y, z = HOME_TOOL
    data.joint("object_joint").qpos[:] = [x, y, z + GRASP_BELOW_TOP - OBJECT_LENGTH / 2, 1, 0, 0, 0]
    data.mocap_pos[0, :2] = cup
    return data.qpos, data.mocap_pos, data.mocap_quat


def blue(image: np.ndarray) -> np.ndarray:
    """Mask of the cup's pixels."""
    red, green, blue = (image[..., i].astype(int) for i in range(3))
    return (blue > red + 40) & (blue > green + 25)


def orange(image: np.ndarray) -> np.ndarray:
    """Mask of the object's pixels."""
    red, green, blue = (image[..., i].astype(int) for i in range(3))
    return (red > green + 60) & (red > blue + 100)


def test_both_cameras_show_the_held_object_and_the_cup(renderer: SceneRenderer) -> None:
    images = renderer.render(*state())
    assert list(images) == ["third_person", "wrist"]
    for image in images.values():
        assert image.shape == (96, 96, 3) and image.dtype == np.uint8
        assert orange(image).sum() > 60
        assert blue(image).sum() > 60


@pytest.mark.parametrize("x", CUP_X)
@pytest.mark.parametrize("y", CUP_Y)
def test_third_person_sees_the_whole_cup_over_its_whole_range(renderer: SceneRenderer, x: float, y: float) -> None:
    cup = blue(renderer.render(*state((x, y)))["third_person"])
    assert cup.sum() > 100
    assert not (cup[[0, -1]].any() or cup[:, [0, -1]].any())


def test_a_centimetre_is_visible_in_both_cameras(renderer: SceneRenderer) -> None:
    here, there = renderer.render(*state((0.52, 0.0))), renderer.render(*state((0.52, 0.01)))
    for name, image in here.items():
        shift = np.argwhere(blue(there[name])).mean(axis=0) - np.argwhere(blue(image)).mean(axis=0)
        assert np.hypot(*shift) > 0.8, name


def test_images_are_upright(renderer: SceneRenderer) -> None:
    image = renderer.render(*state())["third_person"]
    assert np.argwhere(orange(image)).mean(axis=0)[0] < np.argwhere(blue(image)).mean(axis=0)[0]


def test_same_state_gives_the_same_image_in_a_fresh_array(renderer: SceneRenderer) -> None:
    first, second = renderer.render(*state())["wrist"], renderer.render(*state())["wrist"]
    np.testing.assert_array_equal(first, second)
    assert not np.shares_memory(first, second)


def test_flat_arrays_of_a_message_are_accepted(renderer: SceneRenderer) -> None:
    qpos, position, quaternion = state()
    flat = renderer.render(qpos, position.ravel(), quaternion.ravel())
    np.testing.assert_array_equal(flat["wrist"], renderer.render(qpos, position, quaternion)["wrist"])


def test_one_camera_at_another_size() -> None:
    other = SceneRenderer(scene_model(SCENE), width=160, height=120, cameras=["wrist"])
    images = other.render(*state())
    other.close()
    assert {name: image.shape for name, image in images.items()} == {"wrist": (120, 160, 3)}


def test_a_picture_for_a_person_is_larger_and_changes_no_image(renderer: SceneRenderer) -> None:
    before = renderer.render(*state())["wrist"]
    picture = renderer.picture("wrist", 288, 288)
    np.testing.assert_array_equal(renderer.render(*state())["wrist"], before)
    small = picture.reshape(96, 3, 96, 3, 3).mean(axis=(1, 3))
    assert picture.shape == (288, 288, 3) and np.abs(small - before).mean() < 3
    image = renderer.render(*state())["third_person"]
    nothing = (image == 0).all(axis=2).repeat(3, axis=0).repeat(3, axis=1)
    sky = renderer.picture("third_person", 288, 288)[nothing]
    assert nothing.any() and np.median(sky, axis=0).min() > 150


def test_state_of_another_scene_is_refused(renderer: SceneRenderer) -> None:
    qpos, position, quaternion = state()
    with pytest.raises(CameraError, match="qpos has 15 values; valid is 16"):
        renderer.render(qpos[:-1], position, quaternion)


@pytest.mark.parametrize(("width", "cameras", "text"), [(4, ["wrist"], "4 x 96"), (96, ["roof"], "no camera 'roof'")])
def test_impossible_request_is_refused(width: int, cameras: list[str], text: str) -> None:
    with pytest.raises(CameraError, match=text):
        SceneRenderer(scene_model(SCENE), width, 96, cameras)


def test_a_camera_of_distances_measures_along_its_axis_in_millimetres() -> None:
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody>
        <camera name="down" pos="0 0 1.25" fovy="60"/>
        <geom type="box" size="0.2 0.2 0.05" pos="0 0 0.2"/>
        <geom type="box" size="0.6 0.2 0.05" pos="-0.6 -0.4 -0.05"/>
        </worldbody></mujoco>"""
    )
    made = SceneRenderer(model, 64, 64, ["down"], depths=["down"])
    found = made.render(model.qpos0, np.zeros(0), np.zeros(0))["down"]
    made.close()
    assert found.shape == (64, 64, 1) and found.dtype == np.uint16
    assert abs(int(found[32, 32, 0]) - 1000) <= 1 and abs(int(found[52, 12, 0]) - 1250) <= 1, "upright, in mm"
    assert found[5, 5, 0] == 0, "there is nothing"
