import mujoco
import numpy as np
import pytest
from twin_layout import HOME_TOOL, RELEASE_TOOL_HEIGHT

from bid_ros.robots.franka.model import HOME_Q, TOOL_FROM_HAND, build_simulator, scene_model
from bid_ros.tasks.placing.geometry import (
    CUP_HEIGHT,
    CUP_WALL,
    GRASP_BELOW_TOP,
    OBJECT_DIAMETER,
    OBJECT_LENGTH,
    cup_inner_radius,
)
from bid_ros.tasks.placing.scene import CAMERAS
from bid_ros.tasks.placing.score import inside_cup
from bid_ros.tasks.placing.world import FINGERS, HAND, SCENE


@pytest.fixture
def scene() -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = scene_model(SCENE)
    data = mujoco.MjData(model)
    data.qpos[:7] = HOME_Q
    return model, data


def place_object(data: mujoco.MjData, position: np.ndarray) -> None:
    data.joint("object_joint").qpos[:] = [*position, 1, 0, 0, 0]


def test_layout_is_the_arm_the_fingers_the_object_and_one_mocap_cup(scene) -> None:
    model, _ = scene
    assert (model.nq, model.nmocap) == (7 + 2 + 7, 1)
    assert [model.joint(name).qposadr[0] for name in (*FINGERS, "object_joint")] == [7, 8, 9]
    assert model.body("cup").mocapid[0] == 0
    assert [model.camera(i).name for i in range(model.ncam)] == list(CAMERAS)


def test_scene_is_light_enough_for_1_khz_and_10_hz_images(scene) -> None:
    model, _ = scene
    assert (model.nmesh, model.nmat, model.ntex) == (0, 0, 1)  # the sky of pictures for a person
    assert model.ngeom < 40


def test_render_model_is_the_model_that_is_stepped(scene) -> None:
    model, _ = scene
    simulator = build_simulator(SCENE)
    simulator.init()
    simulator.start()
    assert simulator.model.nq == model.nq and simulator.model.ngeom == model.ngeom
    np.testing.assert_array_equal(simulator.model.geom_size, model.geom_size)
    np.testing.assert_allclose(simulator.model.body_mass, model.body_mass)


def test_home_posture_points_the_tool_straight_down_at_its_place(scene) -> None:
    model, data = scene
    mujoco.mj_kinematics(model, data)
    axes = data.body(HAND).xmat.reshape(3, 3)
    np.testing.assert_allclose(axes, np.diag([1.0, -1.0, -1.0]), atol=1e-4)
    np.testing.assert_allclose(data.body(HAND).xpos + TOOL_FROM_HAND * axes[:, 2], HOME_TOOL, atol=1e-4)


def test_cup_walls_lie_on_the_cone_the_score_uses(scene) -> None:
    model, data = scene
    mujoco.mj_kinematics(model, data)
    geom = np.zeros(1, dtype=np.int32)
    axis = data.mocap_pos[0]
    for height in (0.01, 0.035, 0.06):
        for turn in np.arange(12) * np.pi / 6:
            outward = np.array([np.cos(turn), np.sin(turn), 0.0])
            reach = mujoco.mj_ray(model, data, axis + np.array([0, 0, height]), outward, None, 1, -1, geom, None)
            assert reach == pytest.approx(cup_inner_radius(height), abs=5e-4)


def test_object_fits_the_cup_with_little_room() -> None:
    assert 0.002 < cup_inner_radius(0.0) - OBJECT_DIAMETER / 2 < 0.005
    assert 0.008 < cup_inner_radius(CUP_HEIGHT) - OBJECT_DIAMETER / 2 < 0.012


@pytest.mark.parametrize("aside", [(0.0, 0.0), (0.008, 0.0), (-0.005, 0.006)])
def test_released_object_falls_into_the_cup_and_stays(scene, aside: tuple[float, float]) -> None:
    model, data = scene
    foot = data.mocap_pos[0].copy()
    height = RELEASE_TOOL_HEIGHT + GRASP_BELOW_TOP - OBJECT_LENGTH / 2
    place_object(data, foot + np.array([*aside, height]))
    while data.time < 0.6:
        mujoco.mj_step(model, data)
    centre = data.joint("object_joint").qpos[:3] - foot
    axis = data.body("object").xmat[2::3]
    assert inside_cup(centre, axis, depth=0.06)
    assert centre[2] == pytest.approx(CUP_WALL + OBJECT_LENGTH / 2, abs=0.002)


def test_cup_moved_at_6_cm_a_second_takes_the_object_along(scene) -> None:
    model, data = scene
    foot = data.mocap_pos[0].copy()
    place_object(data, foot + np.array([0, 0, CUP_WALL + OBJECT_LENGTH / 2]))
    while data.time < 1.5:
        data.mocap_pos[0, 1] = foot[1] + 0.06 * data.time
        mujoco.mj_step(model, data)
    centre = data.joint("object_joint").qpos[:3] - data.mocap_pos[0]
    assert inside_cup(centre, data.body("object").xmat[2::3], depth=0.05)


@pytest.mark.parametrize("width", [OBJECT_DIAMETER, 0.08])
def test_fingers_are_clear_of_the_rim_at_the_release_height(scene, width: float) -> None:
    model, data = scene
    mujoco.mj_kinematics(model, data)
    tool = data.body(HAND).xpos - [0, 0, TOOL_FROM_HAND]
    data.mocap_pos[0] = tool - [0, 0, RELEASE_TOOL_HEIGHT]
    for finger in FINGERS:
        data.joint(finger).qpos[:] = width / 2
    mujoco.mj_forward(model, data)
    pairs = {frozenset(model.geom_bodyid[[c.geom1, c.geom2]].tolist()) for c in data.contact}
    assert not any(model.body("cup").id in pair for pair in pairs)
    lowest = min(data.geom_xpos[i][2] - 0.009 for i in fingertips(model))
    assert lowest - (data.mocap_pos[0, 2] + CUP_HEIGHT) > 0.025


def fingertips(model: mujoco.MjModel) -> list[int]:
    bodies = [model.body(f"robot0_{side}_finger").id for side in ("left", "right")]
    return [i for i in range(model.ngeom) if model.geom_bodyid[i] in bodies]
