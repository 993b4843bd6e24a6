"""Chains against the kinematics of the robots, which have other sources; Jacobian and inverse against the forward."""

import numpy as np
import pytest

from bid_ros.control.chain import classic_chain
from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import matrix_from_vector
from bid_ros.robots.franka.kinematics import CHAIN as FRANKA
from bid_ros.robots.ur.kinematics import UR5E

UR = classic_chain(UR5E.table)
HOME = {
    "franka": np.array([0.0, -0.28, 0.0, -2.4, 0.0, 2.12, 0.785]),
    "ur": np.array([0.2, -1.6, 1.7, -1.7, -1.5, 0.3]),
}
CHAINS = {"franka": FRANKA, "ur": UR}
every_chain = pytest.mark.parametrize("name", CHAINS)


def test_the_ur_s_is_that_of_its_controller():
    joints = np.random.default_rng(0).uniform(-3, 3, (20, 6))
    position, rotation = UR.forward(joints)
    for row, found, turned in zip(joints, position, rotation, strict=True):
        pose = UR5E.forward(row)
        np.testing.assert_allclose(found, pose[:3], atol=1e-12)
        np.testing.assert_allclose(turned, matrix_from_vector(pose[3:]), atol=1e-9)
        np.testing.assert_allclose(UR.jacobian(row), UR5E.jacobian(row), atol=1e-12)


@every_chain
def test_a_tool_moves_with_the_last_frame(name):
    chain, joints = CHAINS[name], HOME[name]
    position, rotation = chain.forward(joints)
    turn = matrix_from_vector([0.1, 0.2, 0.3])
    place, turned = chain.with_tool((0.01, 0.02, 0.1), turn).forward(joints)
    np.testing.assert_allclose(place, position + rotation @ [0.01, 0.02, 0.1], atol=1e-12)
    np.testing.assert_allclose(turned, rotation @ turn, atol=1e-12)


@every_chain
def test_the_jacobian_is_the_slope_of_the_position(name):
    chain, joints, step = CHAINS[name], HOME[name], 1e-6
    for number in range(chain.joints):
        moved = joints + step * (np.arange(chain.joints) == number)
        slope = (chain.forward(moved)[0] - chain.forward(joints)[0]) / step
        np.testing.assert_allclose(chain.jacobian(joints)[:3, number], slope, atol=1e-5)


@every_chain
def test_the_inverse_finds_the_way_back_for_a_whole_motion(name):
    chain, joints = CHAINS[name], HOME[name]
    motion = joints + 0.3 * np.sin(np.linspace(0, 3, 16))[:, None] * np.linspace(0.5, 1, chain.joints)
    position, rotation = chain.forward(motion)
    found = chain.inverse(position, rotation, joints)
    np.testing.assert_allclose(chain.forward(found)[0], position, atol=1e-5)
    np.testing.assert_allclose(chain.forward(found)[1], rotation, atol=2e-4)
    if chain.joints == 6:  # nothing is redundant
        np.testing.assert_allclose(found, motion, atol=1e-3)


def test_a_redundant_joint_depends_on_the_pose_and_not_on_the_way_to_it():
    rest = HOME["franka"]
    position, rotation = FRANKA.forward(rest)
    goal = position + np.array([[0.05, 0.1, -0.05]])
    near = FRANKA.inverse(goal, rotation[None], rest, rest)
    other = FRANKA.inverse(goal, rotation[None], rest + 0.2 * np.array([1, -1, 1, 1, -1, 1, 1]), rest)
    np.testing.assert_allclose(near, other, atol=1e-4)


@every_chain
def test_a_pose_out_of_reach_is_one_sentence_with_its_row(name):
    position, rotation = CHAINS[name].forward(np.tile(HOME[name], (3, 1)))
    position[1] += 2.0
    with pytest.raises(ArmError, match="of row 1: it is out of the arm's reach"):
        CHAINS[name].inverse(position, rotation, HOME[name])


@every_chain
def test_half_a_turn_is_not_taken_for_none(name):
    position, rotation = CHAINS[name].forward(HOME[name])
    half = rotation @ np.diag([-1.0, -1.0, 1.0])
    try:
        found = CHAINS[name].inverse(position[None], half[None], HOME[name])
    except ArmError:
        return
    np.testing.assert_allclose(CHAINS[name].forward(found)[1][0], half, atol=1e-3)
