"""The forward kinematics against the twin's own model, which is another source."""

import mujoco
import numpy as np
import pytest

from bid_ros.core.rotation import matrix_from_quaternion
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.kinematics import FLANGE_CHAIN, MARGIN, arm_model, flange_pose, forward
from bid_ros.robots.franka.model import ROBOT, TOOL_FROM_HAND, scene_model
from bid_ros.robots.registry import ROBOTS
from bid_ros.robots.ur.kinematics import UR5E, flange
from bid_ros.tasks.placing.world import SCENE


@pytest.fixture(scope="module")
def model():
    return scene_model(SCENE)


@pytest.mark.parametrize("seed", range(5))
def test_the_tool_is_where_the_twin_has_it(model, seed):
    data = mujoco.MjData(model)
    joints = np.random.default_rng(seed).uniform(-1.5, 1.5, 7)
    for number, angle in enumerate(joints, start=1):
        data.joint(f"{ROBOT}fr3_joint{number}").qpos[0] = angle
    mujoco.mj_kinematics(model, data)
    hand = data.body(f"{ROBOT}hand")
    rotation = hand.xmat.reshape(3, 3)
    found, turned = forward(joints)
    np.testing.assert_allclose(found, hand.xpos + TOOL_FROM_HAND * rotation[:, 2], atol=1e-6)
    np.testing.assert_allclose(turned, rotation, atol=1e-6)
    flange, (place, turned) = flange_pose(tuple(joints.tolist())), FLANGE_CHAIN.forward(joints)
    np.testing.assert_allclose(flange.position, place, atol=1e-12)
    np.testing.assert_allclose(matrix_from_quaternion(flange.quaternion), turned, atol=1e-12)


@pytest.mark.parametrize(
    ("prefix", "high_6", "speed_1"),
    [("fr3", 4.5169, 2.62), ("left_fr3", 4.5169, 2.62), ("left_panda", 3.7525, 2.175), ("arm", 3.7525, 2.175)],
)
def test_an_unknown_robot_gets_the_narrowest_limits(prefix, high_6, speed_1):
    limits = arm_model(FrankaConfig("::1", joint_prefix=prefix)).limits
    assert limits.high[5] == pytest.approx(high_6 - MARGIN) and limits.speed[0] == speed_1
    assert limits.low[5] == pytest.approx((-0.0175 if prefix == "left_panda" else 0.5445) + MARGIN)
    assert limits.names[0] == f"{prefix}_joint1"


def test_every_arm_of_the_package_offers_it():
    for name, joints in (("franka", 7), ("ur", 6)):
        robot = ROBOTS.find(name)
        position, rotation = robot.forward(np.full(joints, 0.3))
        assert position.shape == (3,) and robot.joints == joints
        np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-9)


def test_a_ur_s_is_that_of_its_controller():
    joints = np.array([0.1, -1.2, 1.4, -0.3, 0.7, 0.2])
    np.testing.assert_allclose(flange(joints)[0], UR5E.forward(joints)[:3])
