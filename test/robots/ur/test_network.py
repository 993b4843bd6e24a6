"""Whatever happens to the network, the UR comes to rest within 500 ms, says why, and goes on after a recovery.

Over sockets. ``test_delays.py`` has in lockstep what is late or missing.
"""

import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from real_time import HoldUps
from robots.tcp_proxy import (
    CONNECTION_LOST,
    DOWN,
    UP,
    Network,
    OutOfOrder,
    corrupt,
    drop,
    duplicate,
    reorder,
    repeated,
    swapped,
)
from robots.ur_sweep import OPTIONS, assert_at_rest_since, assert_recovers, judge
from ur_twin import free_address

from bid_ros.core.errors import ArmError
from bid_ros.robots.base import Dynamics
from bid_ros.robots.registry import build_arm
from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.twin.pendant import INITIAL_Q


@pytest.fixture(scope="module")
def robot(module_servers):
    return module_servers("ur_server.py", "e-series")


@pytest.fixture
def network(robot):
    between = Network(free_address(), robot.address)
    yield between
    between.close()


@pytest.fixture
def arm(network):
    built = build_arm("ur", UrConfig(network.address, **OPTIONS))
    built.connect()
    # The arm is where the test before left it, and a sweep needs room on both sides.
    built.move_to_joints(INITIAL_Q, Dynamics(1.0, 1.0, 1.0))
    yield built
    built.close()


def check(arm, robot, network, harm, reason):
    judge(arm, lambda sweep: swing(sweep, robot, network, harm, reason), network)


def swing(sweep, robot, network, harm, reason):
    arm = sweep.arm
    sweep.run(0.5)
    opened = network.opened
    with HoldUps() as hold_ups:
        event = time.monotonic_ns()
        harm()
        refused = sweep.until_refused(1.0)
        fault = arm.state().fault
        assert_at_rest_since(robot, event, hold_ups)
    assert refused == fault
    assert network.address in fault
    assert any(word in fault for word in reason), fault
    assert "\n" not in fault
    assert not arm.state().in_control
    assert np.abs(arm.state().joint_positions - INITIAL_Q).max() < 1.0, "no damaged state is handed on"
    with pytest.raises(ArmError, match="recover first"):
        arm.start()
    assert network.opened == opened, "only a person may ask for a new connection"
    assert_recovers(arm, network)


LOST = (*CONNECTION_LOST, "refuses")


# One kind of damage each way, and the others with scripts/test_all.sh.
DAMAGES = [(UP, reorder), (DOWN, corrupt)]
OTHERS = [(DOWN, drop), (UP, duplicate), (UP, drop), (DOWN, duplicate), (DOWN, reorder), (UP, corrupt)]


@pytest.mark.parametrize(
    ("direction", "harm"), [*DAMAGES, *(pytest.param(*damage, marks=pytest.mark.long) for damage in OTHERS)]
)
def test_damaged_bytes(arm, robot, network, direction, harm):
    check(arm, robot, network, lambda: network.damage(direction, harm), LOST)


@pytest.mark.parametrize(
    ("direction", "how"), [pytest.param(UP, repeated, marks=pytest.mark.long), (DOWN, repeated), (UP, swapped)]
)
def test_whole_packages_that_come_twice_or_late_change_nothing(arm, network, direction, how):
    def work(sweep):
        sweep.run(0.3)
        network.damage(direction, how())
        sweep.run(0.7)
        assert arm.state().in_control
        assert arm.state().fault == ""
        arm.stop()

    judge(arm, work, network)


def test_states_that_go_back_in_time(arm, robot, network):
    check(arm, robot, network, lambda: network.damage(DOWN, OutOfOrder()), ("sent a state that cannot be",))


def test_closed_connections(arm, robot, network, newest_arm_pid):
    limits = Path(f"/proc/{newest_arm_pid()}/limits").read_text()
    assert re.search(r"Max open files +3 ", limits), "ur_rtde could connect anew by itself"
    check(arm, robot, network, network.cut, LOST)


def test_a_killed_client(arm, robot, network, newest_arm_pid):
    check(arm, robot, network, lambda: os.kill(newest_arm_pid(), signal.SIGKILL), ("was ended by signal 9",))


def test_a_frozen_client(arm, robot, network, newest_arm_pid):
    check(arm, robot, network, lambda: os.kill(newest_arm_pid(), signal.SIGSTOP), ("gave no sign of life",))
