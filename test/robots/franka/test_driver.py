"""The process that drives a Franka, over sockets: who ends whom, when one of the two is killed or frozen."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bid_ros.control.setpoint import Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.registry import build_arm

OPTIONS = {
    "twin": True,
    "gripper": False,
    "translational_stiffness": 2500.0,
    "friction_coulomb": (0.68, 0.68, 0.68, 0.68, 0.46, 0.26, 0.15),
    "state_timeout_s": 0.5,
    "silence_timeout_s": 0.2,
    "beat_timeout_s": 0.3,
}
SPEED = 0.2  # m/s
OWNER = """
import sys
from robots.franka import test_driver
arm = test_driver.connected(sys.argv[1])
test_driver.swing(arm, 0.6)
print("moving", flush=True)
try:
    test_driver.swing(arm, 5.0)
except test_driver.ArmError as error:
    state = arm.state()
    print(f"{abs(state.joint_velocities).max():.3f} {error}", flush=True)
"""


def connected(address):
    arm = build_arm("franka", FrankaConfig(address, **OPTIONS))
    arm.connect()
    arm.start()
    return arm


def swing(arm, seconds):
    """Stream set-points that swing along y, from wherever the arm is."""
    state, begin = arm.state(), time.monotonic()
    rate = 2.5
    while (t := time.monotonic() - begin) < seconds:
        way = np.array([0.0, SPEED / rate * (1 - np.cos(rate * t)), 0.0])
        velocity = np.array([0.0, SPEED * np.sin(rate * t), 0.0])
        arm.command(Setpoint(state.tool_position + way, state.tool_quaternion, velocity, np.zeros(3)))
        time.sleep(0.01)


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, limit_s, what):
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"waited {limit_s} s for {what}"
        time.sleep(0.005)


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


def test_an_owner_that_is_frozen_in_motion_finds_its_arm_stopped(robot):
    path = os.pathsep.join([*sys.path, os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path}
    owner = subprocess.Popen([sys.executable, "-c", OWNER, robot.address], stdout=subprocess.PIPE, text=True, env=env)
    assert owner.stdout.readline().strip() == "moving"
    time.sleep(0.3)
    owner.send_signal(signal.SIGSTOP)
    time.sleep(1.0)
    owner.send_signal(signal.SIGCONT)
    speed, _, said = owner.stdout.readline().strip().partition(" ")
    assert float(speed) < 0.02
    assert said == (
        f"no set-point for 0.2 s while the robot at {robot.address} moved: it was stopped; find what held them up, "
        "then reset"
    )
    owner.kill()
    owner.wait()


def test_an_owner_that_is_killed_leaves_no_process_and_a_robot_that_can_be_driven(robot):
    path = os.pathsep.join([*sys.path, os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path}
    owner = subprocess.Popen([sys.executable, "-c", OWNER, robot.address], stdout=subprocess.PIPE, text=True, env=env)
    assert owner.stdout.readline().strip() == "moving"
    (child,) = map(int, Path(f"/proc/{owner.pid}/task/{owner.pid}/children").read_text().split())
    owner.kill()
    owner.wait()
    wait_until(lambda: not running(child), 3.0, "the end of the process")
    arm = connected(robot.address)
    assert np.abs(arm.state().joint_velocities).max() < 0.15
    arm.close()
