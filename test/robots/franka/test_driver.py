"""The process that drives a Franka, over sockets: who ends whom, when one of the two is killed or frozen."""

import os
import signal
import time

import numpy as np
import pytest
from real_time import wait_until
from robots.conftest import running
from robots.franka.swinging import connected, swing

from bid_ros.core.errors import ArmError
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.hand import unready
from bid_ros.robots.registry import build_arm

OWNER = "franka/swinging.py"


@pytest.fixture(scope="module")
def robot(module_servers):
    return module_servers("franky_sim_server.py")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (signal.SIGSTOP, r"gave no sign of life for 0\.3\d s and was ended: find what held it up, then reset"),
        (signal.SIGKILL, r"was ended by signal 9: damaged data can make franky crash; reset to start it again"),
    ],
)
def test_a_process_that_is_frozen_or_killed_in_motion_is_a_fault(robot, newest_arm_pid, kind, said):
    arm = connected(robot.address)
    swing(arm, 0.6)
    pid = newest_arm_pid()
    os.kill(pid, kind)
    with pytest.raises(ArmError, match=f"the process that drives the robot at {robot.address} {said}"):
        swing(arm, 3.0)
    wait_until(lambda: not running(pid), 2.0, "the end of the process")
    assert not arm.state().in_control
    arm.recover()
    assert np.abs(arm.state().joint_velocities).max() < 0.15
    arm.start()
    swing(arm, 0.2)
    assert arm.state().fault == ""
    arm.close()


def test_an_owner_that_is_frozen_in_motion_finds_its_arm_stopped(robot, owners):
    owner = owners(OWNER, robot.address)
    assert owner.line() == "moving"
    wait_until(lambda: float(robot.ask("speed")) > 0.4, 5.0, "the arm to move")
    owner.process.send_signal(signal.SIGSTOP)
    time.sleep(0.3)  # longer than the driver waits for a set-point
    # How fast it stops is measured in lockstep. A busy computer steps this twin late.
    wait_until(lambda: float(robot.ask("speed")) < 0.02, 5.0, "the arm to rest")
    owner.process.send_signal(signal.SIGCONT)
    assert owner.line() == (
        f"no set-point for 0.2 s while the robot at {robot.address} moved: it was stopped; find what held them up, "
        "then reset"
    )


def test_an_owner_that_is_killed_leaves_no_process_and_a_robot_that_can_be_driven(robot, owners):
    owner = owners(OWNER, robot.address)
    assert owner.line() == "moving"
    child = owner.child()
    owner.close()
    wait_until(lambda: not running(child), 3.0, "the end of the process")
    arm = connected(robot.address)
    assert np.abs(arm.state().joint_velocities).max() < 0.15
    arm.close()


def test_a_hand_that_was_not_homed_says_so_and_a_reset_homes_it(robot):
    assert unready(FrankaConfig(robot.address)) == ""
    assert robot.ask("forget homing") == "ok"
    sentence = f"hand of the robot at {robot.address} is not homed, so it does not move: take out what it holds"
    assert unready(FrankaConfig(robot.address)).startswith(sentence)
    arm = build_arm("franka", FrankaConfig(robot.address, twin=True))
    arm.connect()
    arm.command_gripper(0.0)
    wait_until(lambda: arm.state().fault, 3.0, "the sentence")
    assert arm.state().fault == f"{sentence}, then reset: it opens and closes once"
    assert arm.state().gripper_width > 0.07
    arm.recover()
    arm.command_gripper(0.0)
    wait_until(lambda: arm.state().gripper_width < 0.01, 8.0, "the fingers")
    assert arm.state().fault == ""
    arm.close()
