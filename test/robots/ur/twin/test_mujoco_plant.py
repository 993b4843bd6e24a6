import mujoco
import numpy as np
import pytest
from robots.straight_move import straight_move

from bid_ros.core.errors import ArmError
from bid_ros.robots.robotiq.model import TOOL_FROM_FLANGE, add_gripper
from bid_ros.robots.ur.kinematics import UR5E, ToolKinematics
from bid_ros.robots.ur.twin.model import TORQUE_LIMITS, add_ur5e, compile_scene, empty_scene
from bid_ros.robots.ur.twin.mujoco_plant import MujocoPlant, standing_arm
from bid_ros.sim.mjcf import part

HOME = np.array([0.0, -1.6, 1.8, -1.77, -1.57, 0.0])
REST = np.zeros(6)
TCP = np.array([0.0, 0.0, TOOL_FROM_FLANGE, 0.0, 0.0, 0.0])


def with_gripper(timestep: float = 0.002) -> tuple[mujoco.MjModel, mujoco.MjData, MujocoPlant]:
    scene = empty_scene(timestep)
    add_gripper(scene, add_ur5e(part(scene, "worldbody")))
    model = compile_scene(scene)
    data = mujoco.MjData(model)
    return model, data, MujocoPlant(model, data, HOME)


@pytest.mark.parametrize(("timestep", "dt"), [(0.002, 0.002), (0.001, 0.002), (0.002, 0.008)])
def test_half_a_metre_a_second_is_tracked(timestep: float, dt: float) -> None:
    _, data, plant = with_gripper(timestep)
    cycles = 0
    for q, qd in straight_move(ToolKinematics(UR5E, TCP), HOME, [0.05, 0.4, 0.1], 0.5, dt):
        plant.step(q, qd, dt)
        off = UR5E.forward(plant.joint_positions, TCP)[:3] - UR5E.forward(q, TCP)[:3]
        assert np.linalg.norm(off) < 1e-5
        assert (np.abs(plant.joint_torques) < TORQUE_LIMITS).all()
        cycles += 1
    assert data.time == pytest.approx(cycles * dt)


def test_load_it_does_not_know_is_held_up() -> None:
    model, data, plant = with_gripper()
    data.xfrc_applied[model.body("gripper").id, 2] = -5.0 * 9.81  # the payload of a UR5e
    for _ in range(500):
        plant.step(HOME, REST, 0.002)
    sag = UR5E.forward(plant.joint_positions, TCP)[:3] - UR5E.forward(HOME, TCP)[:3]
    assert 1e-4 < np.linalg.norm(sag) < 0.02
    np.testing.assert_allclose(plant.joint_velocities, REST, atol=1e-4)


def test_torque_limits_bound_what_the_arm_can_do() -> None:
    plant = standing_arm(HOME)
    for _ in range(20):
        plant.step(HOME + 1.0, REST, 0.002)
        assert (np.abs(plant.joint_torques) <= TORQUE_LIMITS).all()
    assert (np.abs(plant.joint_torques) == TORQUE_LIMITS).any()
    assert np.abs(plant.joint_positions - HOME).max() < 0.5


def test_torques_carry_the_arm_against_gravity() -> None:
    plant = standing_arm(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    for _ in range(100):
        plant.step(REST, REST, 0.002)
    assert abs(plant.joint_torques[1]) > 36.0  # stretched out level
    assert abs(plant.joint_torques[0]) < 1.2
    plant.hold(0.002)
    np.testing.assert_array_equal(plant.joint_torques, REST)


def test_brakes_hold_against_what_pulls() -> None:
    model, data, plant = with_gripper()
    data.xfrc_applied[model.body("gripper").id, 2] = -500.0
    for _ in range(200):
        plant.hold(0.002)
    np.testing.assert_array_equal(plant.joint_positions, HOME)


def test_hook_runs_before_every_step_of_the_physics() -> None:
    model, data, _ = with_gripper(0.001)
    times: list[float] = []
    plant = MujocoPlant(model, data, HOME, before_step=lambda: times.append(data.time))
    plant.step(HOME, REST, 0.008)
    plant.hold(0.002)
    np.testing.assert_allclose(times, 0.001 * np.arange(10), atol=1e-9)


@pytest.mark.parametrize("dt", [0.0, 0.001, 0.003, 1.0])
def test_cycle_must_be_a_multiple_of_the_time_step(dt: float) -> None:
    plant = standing_arm(HOME)
    with pytest.raises(ArmError, match=r"the controller's cycle is .* s; valid are 1 to 100 times"):
        plant.step(HOME, REST, dt)


def test_scene_without_the_arm_is_refused() -> None:
    model = compile_scene(empty_scene())
    with pytest.raises(ArmError, match="the scene has no UR5e to drive"):
        MujocoPlant(model, mujoco.MjData(model), HOME)
