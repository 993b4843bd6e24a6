"""The fast robot of the twin moves as franky-sim's own."""

import numpy as np
import pinocchio
from franky_sim.franka_robot_state import RobotMode
from franky_sim.mujoco_simulator import MujocoSimulator

from bid_ros.robots.franka.fast_franky_sim import FastFrankaRobot
from bid_ros.robots.franka.model import HOME_Q


def control(robot, step, random):
    """Every way in which the server drives the robot, with and without an elbow, each for some steps."""
    state, new = robot.state if step else None, bool(step % 2)
    if step < 120:
        robot.torque_control(random.uniform(-120, 120, 7) if step % 3 else random.uniform(-5, 5, 7), new)
    elif step < 180:
        robot.joint_position_control(np.array(state.q) + random.uniform(-0.01, 0.01, 7), new)
    elif step < 240:
        matrix = np.array(state.O_T_EE).reshape(4, 4, order="F")
        turn = pinocchio.Quaternion(matrix[:3, :3])
        pose = np.array([*(matrix[:3, 3] + random.uniform(-0.003, 0.003, 3)), turn.x, turn.y, turn.z, turn.w])
        robot.cartesian_position_control(pose, np.array([state.q[2], -1.0]) if step % 3 else None, new)
    elif step < 270:
        robot.joint_velocity_control(random.uniform(-0.3, 0.3, 7), new)
    else:
        elbow = np.array([state.q[2], -1.0]) if step % 3 else None
        robot.cartesian_velocity_control(random.uniform(-0.1, 0.1, 6), elbow, new)


def states(fast, steps=300):
    """States of an arm that is pushed by torques above and below its limits, while the fingers close and open."""
    simulator = MujocoSimulator()
    robot = simulator.add_robot(initial_q=HOME_Q, initial_hand_width=0.08)
    if fast:
        FastFrankaRobot.take_over(robot)
    simulator.init()
    simulator.start()
    random = np.random.default_rng(0)
    rows, packed = [], []
    for step in range(steps):
        if step % 60 == 0:
            robot.set_hand_goal(0.08 * (step % 120 == 60), max_velocity=random.uniform(0.02, 0.3), max_force=40.0)
        control(robot, step, random)
        simulator.step()
        if step == 100:
            robot.set_load(0.4, (0.01, 0.0, 0.05), (0.001, 0.0, 0.0, 0.0, 0.002, 0.0, 0.0, 0.0, 0.003))
        if step == 200:
            robot.set_NE_T_EE(tuple(np.eye(4).ravel(order="F") + 0.01 * (np.arange(16) == 14)))
            robot.set_EE_T_K(tuple(np.eye(4).ravel(order="F") + 0.02 * (np.arange(16) == 12)))
        state = robot.state.replace(robot_mode=RobotMode.kMove, errors=(step % 2 == 0,) * 41)
        rows.append((*state.q, *state.dq, *state.tau_J, robot.hand_width))
        packed.append(state.pack_state())
    return np.array(rows), packed


def test_every_step_is_the_same_to_the_last_bit():
    (rows, packed), (others, other) = states(fast=True), states(fast=False)
    assert np.ptp(rows[:, 0]) > 0.01
    assert np.ptp(rows[:, -1]) > 0.005
    np.testing.assert_array_equal(rows, others)
    assert packed == other
