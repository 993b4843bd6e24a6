"""What a robot that rests feels beside its payload, over sockets; and what ``bid check`` says of it."""

from __future__ import annotations

import socket

import pytest

from bid_ros.core.errors import ArmError
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.load import external_force
from bid_ros.robots.registry import build_arm
from bid_ros.system.check.hardware import payload_finding

SILENT = "127.78.1.1"


@pytest.fixture
def robot(module_servers):
    server = module_servers("franky_sim_server.py")
    server.ask("carry 0.0")
    return server


def config(robot, mass: float) -> FrankaConfig:
    return FrankaConfig(robot.address, twin=True, payload_mass=mass)


def test_a_force_is_what_the_payload_does_not_explain(robot):
    assert external_force(config(robot, 0.0)) == (0.0, 0.0, 0.0)
    assert robot.ask("carry 0.5") == "ok"
    assert external_force(config(robot, 0.0)) == pytest.approx((0.0, 0.0, -4.905))
    assert external_force(config(robot, 0.5)) == pytest.approx((0.0, 0.0, 0.0)), "the robot was told its payload"


@pytest.mark.parametrize(
    ("carried", "state", "advice"),
    [
        (0.5, "ok", ""),
        (1.2, "warn", "payload_mass 1.20 kg would fit, if that is it"),
        (-0.6, "warn", "Desk has a hand that is too heavy"),
    ],
)
def test_bid_check_says_which_payload_would_fit(robot, carried, state, advice):
    robot.ask(f"carry {carried}")
    finding = payload_finding("franka", config(robot, 0.2))
    assert finding.state == state and finding.advice.endswith(advice)
    assert finding.measured.endswith("N are felt at rest beside payload_mass 0.2 kg")
    assert payload_finding("ur", None) is None, "it does not tell"


def test_a_robot_that_moves_or_is_driven_or_says_nothing_is_not_measured(robot):
    robot.ask("drift 0.1")
    with pytest.raises(ArmError, match=f"robot at {robot.address} moves; valid is one that rests"):
        external_force(config(robot, 0.0))
    robot.ask("drift 0.0")
    arm = build_arm("franka", config(robot, 0.0))
    arm.connect()
    with pytest.raises(ArmError, match=f"robot at {robot.address}: "):
        external_force(config(robot, 0.0))
    arm.close()
    with socket.create_server((SILENT, 1337)):
        finding = payload_finding("franka", FrankaConfig(SILENT, twin=True, connect_timeout_s=0.5))
    assert finding.state == "warn"
    assert finding.measured == f"not measured: robot at {SILENT} says nothing for 1.3 s"
