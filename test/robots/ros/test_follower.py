"""What a follower lets through, without a robot."""

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from franka_urdf import FRANKA_HOME, franka_urdf
from memory_bus import MemoryBus

from bid_ros.control.setpoint import Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import quaternion_from_matrix
from bid_ros.robots.ros.config import RosConfig
from bid_ros.robots.ros.follower import joint_follower
from bid_ros.robots.ros.kinematics import kinematics_of
from bid_ros.robots.ros.limits import DriverLimits
from bid_ros.robots.ros.urdf import read_chain

ZERO = np.zeros(3)
SPEED = 2.0  # rad/s, of the URDF
AWAY = FRANKA_HOME + np.array([0.8, 0.3, -0.8, 0.0, 0.3, 0.0, 0.0])
CHAIN = read_chain(franka_urdf(), "link0", "link7", "x")
CONFIG = RosConfig("arm", CHAIN.joint_names, base_link="link0", tool_link="link7", home=tuple(FRANKA_HOME))
PLACE, ROTATION = kinematics_of(CONFIG, CHAIN).forward(AWAY)


def begun(config):
    made = joint_follower(config, MemoryBus(), CHAIN, DriverLimits.of(config, CHAIN))
    made.begin(AWAY)
    return made


@pytest.fixture
def follower():
    return begun(CONFIG)


def send(follower, way, number):
    """Command a place in a row of places that are a way apart; return the joints."""
    follower.command(Setpoint(PLACE + number * np.array(way), quaternion_from_matrix(ROTATION), ZERO, ZERO))
    return follower.target.joints


def test_the_pull_to_the_posture_takes_its_time(follower):
    start_s = time.monotonic()
    for number in range(20):
        joints = send(follower, (0.0, 0.0, 1e-5), number % 2)
    assert np.abs(joints - AWAY).max() < 0.05 * SPEED * (time.monotonic() - start_s) + 0.01


def test_early_set_points_that_jump_again_and_again_are_refused():
    follower = begun(replace(CONFIG, home=()))
    with pytest.raises(ArmError, match=r"a set-point needs .* rad/s of joint"):
        for number in range(100):
            send(follower, (0.0, 0.0, -0.02), number % 2)


def test_a_joint_that_turns_on_and_on_does_not_lag_by_a_turn(follower):
    lag, _ = follower.lag(AWAY + 2 * math.pi * np.array([1, 0, 0, 0, 0, 0, -1]))
    assert lag < 1e-6
