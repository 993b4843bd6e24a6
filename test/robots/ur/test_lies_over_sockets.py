"""What of a lying UR only ur_rtde, sockets and a process of its own show; ``test_lies.py`` has the lies themselves."""

import re
import time

import numpy as np
import pytest
from real_time import HoldUps
from robots.rtde_lies import END, JOINTS, Lie, freeze, texts
from robots.tcp_proxy import DOWN, UP, Network
from robots.ur.test_lies import FAST_S, JOINT, QUICK, STILL, assert_never_near
from robots.ur_sweep import OPTIONS, assert_at_rest_since, judge
from ur_twin import free_address

from bid_ros.robots.registry import build_arm
from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.twin.pendant import INITIAL_Q


@pytest.fixture(scope="module")
def robot(module_servers):
    return module_servers("ur_server.py", "e-series")


@pytest.fixture(scope="module")
def network(robot):
    between = Network(free_address(), robot.address)
    yield between
    between.close()


@pytest.fixture(scope="module")
def driven(network):
    built = build_arm("ur", UrConfig(network.address, **OPTIONS))
    built.connect()
    yield built
    built.close()


@pytest.fixture
def arm(driven, network):
    """An arm that the test before left recovered."""
    driven.move_to_joints(INITIAL_Q, QUICK)
    yield driven
    driven.stop()
    if driven.state().fault:
        network.heal()
        driven.recover()
    assert driven.state().fault == ""


def test_a_robot_of_which_everything_is_frozen_in_motion_stops(arm, robot, network):
    """If everything is frozen, the robot also says that it has done what it was asked for: a stop gets no answer."""

    def work(sweep):
        sweep.run(FAST_S)
        with HoldUps() as hold_ups:
            event = time.monotonic_ns()
            network.damage(DOWN, Lie(freeze(JOINTS, END), rest_too=True))
            fault = sweep.until_refused(1.0)
            said = rf"robot at {network.address} contradicts itself, ({JOINT}|{STILL}): "
            assert re.fullmatch(f"{said}compare it with what the pendant shows, then reset", fault), fault
            assert np.abs(arm.state().joint_positions - INITIAL_Q).max() < 0.9, "no lie is handed on"
            assert_at_rest_since(robot, event, hold_ups)

    judge(arm, work, network)


def test_text_messages_that_are_empty_stop_the_arm(arm, robot, network):
    said = "sent a state that cannot be, a text message of 0 bytes; valid is 3 or more: check what damages its data"

    def work(sweep):
        sweep.run(FAST_S)
        with HoldUps() as hold_ups:
            event = time.monotonic_ns()
            network.damage(DOWN, texts(b""))
            assert said in sweep.until_refused(1.0)
            assert_at_rest_since(robot, event, hold_ups)

    judge(arm, work, network)


def test_text_messages_before_each_state_change_nothing(arm, network):
    def work(sweep):
        sweep.run(FAST_S)
        network.damage(DOWN, texts(b"\x02hi\x00\x03"))
        begin = arm.state().stamp_ns
        sweep.run(1.0)
        assert arm.state().in_control
        assert arm.state().stamp_ns - begin > 0.9e9
        network.damage(DOWN, bytes)

    judge(arm, work, network)


@pytest.mark.parametrize("seconds", [2.0, pytest.param(6.0, marks=pytest.mark.long)])
def test_honest_states_that_come_in_bursts_are_believed(arm, network, seconds):
    """Every 10 ms another delay of up to 40 ms each way, and what waits behind a late package comes with it."""
    random = np.random.default_rng(4)

    def work(sweep):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for direction in (UP, DOWN):
                network.delay(direction, random.uniform(0.0, 0.04))
            sweep.step()
        assert arm.state().in_control
        arm.stop()
        assert_never_near(arm)
        for direction in (UP, DOWN):
            network.delay(direction, 0.0)

    judge(arm, work, network)
