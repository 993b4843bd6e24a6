import math

import mujoco
import numpy as np
import pytest

from bid_ros.core.rotation import matrix_from_vector
from bid_ros.robots.ur.kinematics import UR5, UR5E, Kinematics
from bid_ros.robots.ur.twin.model import (
    FLANGE,
    MODEL_JOINTS,
    TORQUE_LIMITS,
    add_ur5e,
    compile_scene,
    empty_scene,
)
from bid_ros.sim.mjcf import part

# Mass in kg, centre of mass in m and inertia in kg m2 (xx yy zz xy xz yz), in the frame at the link's far end.
PUBLISHED = [
    (3.761, (0, -0.02561, 0.00193), (0.0070021, 0.00648091, 0.00657286, 0.00000073, -0.00001053, 0.00049994)),
    (8.058, (0.2125, 0, 0.11336), (0.01505885, 0.33388086, 0.33247207, -0.000054, 0.00000563, -0.00000181)),
    (2.846, (0.15, 0, 0.0265), (0.00399632, 0.07879254, 0.0784851, -0.00001365, 0.00137272, -0.0000066)),
    (1.37, (0, -0.0018, 0.01634), (0.00165491, 0.00135962, 0.00126279, -0.00000282, -0.00000438, 0.00010157)),
    (1.3, (0, 0.0018, 0.01634), (0.00135617, 0.00127827, 0.00096614, -0.00000274, 0.00000444, -0.00005048)),
    (0.365, (0, 0, -0.001159), (0.00018694, 0.00018908, 0.00025756, 0.00000006, -0.00000017, -0.00000092)),
]


def build(kinematics: Kinematics = UR5E) -> tuple[mujoco.MjModel, mujoco.MjData]:
    scene = empty_scene()
    add_ur5e(part(scene, "worldbody"), kinematics=kinematics)
    model = compile_scene(scene)
    return model, mujoco.MjData(model)


def test_six_joints_in_order_with_the_published_range() -> None:
    model, _ = build()
    assert model.nq == model.nv == 6
    assert tuple(model.joint(i).name for i in range(6)) == MODEL_JOINTS
    np.testing.assert_allclose(model.jnt_range, [[-2 * math.pi, 2 * math.pi]] * 6)
    assert TORQUE_LIMITS == (150.0, 150.0, 150.0, 28.0, 28.0, 28.0)


@pytest.mark.parametrize("kinematics", [UR5E, UR5])
def test_flange_is_where_the_kinematics_have_it(kinematics: Kinematics) -> None:
    model, data = build(kinematics)
    flange = model.body(FLANGE).id
    for q in np.random.default_rng(0).uniform(-math.pi, math.pi, (50, 6)):
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        pose = kinematics.forward(q)
        np.testing.assert_allclose(data.xpos[flange], pose[:3], atol=1e-9)
        np.testing.assert_allclose(data.xmat[flange].reshape(3, 3), matrix_from_vector(pose[3:]), atol=1e-9)


def test_jacobian_of_the_model_is_that_of_the_kinematics() -> None:
    model, data = build()
    jacobian = np.zeros((6, 6))
    for q in np.random.default_rng(1).uniform(-math.pi, math.pi, (20, 6)):
        data.qpos[:] = q
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_jacBody(model, data, jacobian[:3], jacobian[3:], model.body(FLANGE).id)
        np.testing.assert_allclose(jacobian, UR5E.jacobian(q), atol=1e-9)


def frames(q: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """By the table: the frame whose z axis each joint turns about, and the one at the far end of each link."""
    near, far = [], []
    frame = np.eye(4)
    for angle, (a, d, alpha) in zip(q, UR5E.table, strict=True):
        near.append(frame)
        c, s, ca, sa = np.cos(angle), np.sin(angle), np.cos(alpha), np.sin(alpha)
        frame = frame @ [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]]
        far.append(frame)
    return near, far


def test_gravity_and_mass_matrix_are_those_of_the_published_links() -> None:
    model, data = build()
    for q in np.random.default_rng(2).uniform(-math.pi, math.pi, (20, 6)):
        near, far = frames(q)
        gravity, masses = np.zeros(6), np.diag(model.dof_armature)
        for link, (mass, centre, (xx, yy, zz, xy, xz, yz)) in enumerate(PUBLISHED):
            place = (far[link] @ [*centre, 1.0])[:3]
            moving = [frame if joint <= link else None for joint, frame in enumerate(near)]
            turning = np.array([np.zeros(3) if f is None else f[:3, 2] for f in moving]).T
            going = np.array([np.zeros(3) if f is None else np.cross(f[:3, 2], place - f[:3, 3]) for f in moving]).T
            axes = far[link][:3, :3]
            tensor = axes @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ axes.T
            gravity += going.T @ [0.0, 0.0, 9.81 * mass]
            masses += mass * going.T @ going + turning.T @ tensor @ turning
        data.qpos[:], data.qvel[:] = q, 0.0
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(data.qfrc_bias, gravity, atol=1e-9)
        columns = np.zeros((6, 6))
        for joint in range(6):
            mujoco.mj_mulM(model, data, columns[joint], np.eye(6)[joint])
        np.testing.assert_allclose(columns, masses, atol=1e-9)


def test_model_is_light_and_its_links_touch_nothing() -> None:
    model, _ = build()
    assert model.nmesh == 0 and model.ntex == 0 and model.ngeom < 15
    assert not model.geom_contype.any() and not model.geom_conaffinity.any()


@pytest.mark.parametrize("timestep", [0.001, 0.002])
def test_timestep_is_the_one_asked_for(timestep: float) -> None:
    scene = empty_scene(timestep)
    add_ur5e(part(scene, "worldbody"))
    assert compile_scene(scene).opt.timestep == timestep
