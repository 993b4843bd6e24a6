"""The twin's services and the real client, in real time."""

import math
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import franky
import numpy as np
import pytest
from fci_client import ROBOT, lockstep
from real_time import wait_until

from bid_ros.core.fault_words import COMMANDS_LOST
from bid_ros.robots.franka.twin import robot_service
from bid_ros.robots.franka.twin.controller import STEP_NS
from bid_ros.robots.franka.twin.reflexes import Reflex
from bid_ros.robots.franka.twin.watchdog import SHARED
from bid_ros.sim.loop import StepLoop

SCRIPT = Path(__file__).with_name("franka_client.py")
NAMES = {
    Reflex.JOINT_VELOCITY: "joint_velocity_violation",
    Reflex.TOOL_VELOCITY: "cartesian_velocity_violation",
    Reflex.PATH_JOINT_POSITION: "joint_motion_generator_position_limits_violation",
    Reflex.PATH_JOINT_VELOCITY: "joint_motion_generator_velocity_limits_violation",
    Reflex.PATH_JOINT_ACCELERATION: "joint_motion_generator_velocity_discontinuity",
    Reflex.PATH_JOINT_JERK: "joint_motion_generator_acceleration_discontinuity",
    Reflex.PATH_TOOL_VELOCITY: "cartesian_motion_generator_velocity_limits_violation",
    Reflex.PATH_TOOL_ACCELERATION: "cartesian_motion_generator_velocity_discontinuity",
    Reflex.PATH_TOOL_JERK: "cartesian_motion_generator_acceleration_discontinuity",
    Reflex.COMMUNICATION: COMMANDS_LOST,
    Reflex.TORQUE_STEP: "controller_torque_discontinuity",
}


@contextmanager
def in_real_time(address):
    """Serve an arm in a thread of this process; yield its controller and the loop."""
    with lockstep(address, patience=SHARED) as controller:
        loop = StepLoop("the robot", STEP_NS, controller.tick)
        loop.start()
        try:
            yield controller, loop
        finally:
            loop.stop()


def connected(address):
    return franky.Robot(address, realtime_config=franky.RealtimeConfig.Ignore)


class Swinging:
    """The arm of a controller and the process that swings it."""

    def __init__(self, controller, loop):
        self._arm, self.loop, self.controller = vars(controller.robot)["_robot"], loop, controller
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT), controller.hostname], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == "moving"
        wait_until(lambda: abs(self.speed) > 0.4, 20.0)

    @property
    def speed(self):
        return float(self._arm.inner_state.dq[0])

    @property
    def angle(self):
        return float(self._arm.inner_state.q[0])

    def rest(self):
        """Wait for the reflex, then for rest; return cycles, fastest speed in rad/s and angle in rad since now."""
        begin, angle, fastest = self.loop.statistics()["steps"], self.angle, 0.0

        def rests():
            nonlocal fastest
            fastest = max(fastest, abs(self.speed))
            return self.controller.robot.reflex is not None and abs(self.speed) < 0.005

        wait_until(rests, 20.0)
        return self.loop.statistics()["steps"] - begin, fastest, abs(self.angle - angle)

    def end(self):
        self.process.kill()
        out, _ = self.process.communicate()
        return out.splitlines()


@pytest.mark.parametrize("fault", [signal.SIGSTOP, signal.SIGKILL])
def test_the_arm_comes_to_rest_when_its_client_is_frozen_or_killed(fault):
    with in_real_time("127.0.45.1") as (controller, loop):
        swinging = Swinging(controller, loop)
        speed = abs(swinging.speed)
        os.kill(swinging.process.pid, fault)
        cycles, fastest, travelled = swinging.rest()
        frozen = fault == signal.SIGSTOP
        assert controller.robot.reflex is Reflex.COMMUNICATION
        # The watchdog's limit, the braking of 0.06 s, and what the thread that looks is late.
        assert cycles < (SHARED.ended if frozen else 0) + 400
        assert fastest < 1.5 * max(speed, 0.6)
        assert travelled < 0.4
        if frozen:
            os.kill(swinging.process.pid, signal.SIGCONT)
            assert swinging.process.stdout is not None
            said = swinging.process.stdout.readline()
            assert COMMANDS_LOST in said
            assert "motion aborted by reflex" in said
            assert swinging.process.stdout.readline().strip() == "True"
            assert controller.robot.reflex is None
        swinging.end()
        robot = connected("127.0.45.1")
        assert robot.recover_from_errors()
        assert np.isfinite(robot.state.q).all()


def test_franky_tells_every_reflex_by_its_name():
    with in_real_time("127.0.45.2") as (controller, _):
        robot = connected("127.0.45.2")
        assert set(NAMES) == set(Reflex)
        for reflex, name in NAMES.items():
            controller.robot.reflex = reflex
            wait_until(lambda name=name: name in str(robot.state.current_errors), 20.0)
            assert robot.has_errors
        controller.robot.reflex = None


def test_the_model_of_the_arm_has_gravity():
    with in_real_time("127.0.45.3"):
        robot = connected("127.0.45.3")
        assert robot.state.O_ddP_O is None or math.isclose(robot.state.O_ddP_O[2], -9.81, rel_tol=1e-6)
        gravity = np.array(robot.model.gravity(robot.state))
        assert np.abs(gravity).max() > 10.0, "Nm, of an arm that reaches out"


def test_another_version_is_an_error_of_its_own(monkeypatch):
    monkeypatch.setattr(robot_service, "ROBOT", replace(ROBOT, version=9))
    with in_real_time("127.0.45.4"), pytest.raises(franky.IncompatibleVersionException, match="9"):
        connected("127.0.45.4")


def test_a_refused_recovery_is_an_error_of_the_client():
    with in_real_time("127.0.45.5") as (controller, loop):
        robot = connected("127.0.45.5")
        loop.call(lambda: controller.robot._abort(Reflex.JOINT_VELOCITY, "of the test"))
        controller.robot.recovery_fails = True
        with pytest.raises(franky.CommandException, match="recovery"):
            robot.recover_from_errors()
        controller.robot.recovery_fails = False
        assert robot.recover_from_errors()
