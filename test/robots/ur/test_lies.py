"""A UR that tells plausible lies comes to rest within 500 ms, with what disagreed; one that is honest never does."""

import re
import threading
import time

import numpy as np
import pytest
from robots.rtde_lies import CLOCK, END, JOINTS, POSE, SPEEDS, Lie, add, for_a_moment, freeze, put, texts
from robots.tcp_proxy import DOWN, UP, Network
from robots.ur_sweep import OPTIONS, Sweep, assert_at_rest_since, moved
from ur_twin import free_address

from bid_ros.control.setpoint import Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.robots.base import Dynamics
from bid_ros.robots.registry import build_arm
from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.twin.pendant import INITIAL_Q

# A shared computer is held up for a fifth of a second now and then. An arm that stops too late is tried again then; a
# defect is late every time.
pytestmark = pytest.mark.flaky(reruns=2, only_rerun=["after the last sign of life"])

MODELS = {"e-series": "ur5e", "cb3": "ur5"}
FAST_S, TURN_S = 0.3, 0.7  # into the swing: at 0.18 m/s, and just after it turned back, at 0.04 m/s
QUICK = Dynamics(1.0, 1.0, 1.0)
ZERO = np.zeros(3)
AWAY = INITIAL_Q + np.array([0.8, 0.0, 0.0, 0.0, 0.0, 0.4])
FAR = INITIAL_Q + np.array([1.5, 0.3, -0.4, 0.5, 0.8, 2.5])

JOINT = r"joint [1-6] is \d\.\d{3} rad from where its speed leads; valid is up to 0\.\d{3}"
STEP = r"joint [1-6] is (0\.[5-9]|1\.0)\d+ rad from where its speed leads; valid is up to 0\.\d{3}"
SPEED = r"a joint turns at 11\.00 rad/s; valid is up to 4\.00"
TOOL = r"the tool is \d+ mm from where the joints put it; valid is up to 25 mm"
TURN = r"the tool is turned by \d\.\d\d rad from where the joints put it; valid is up to 0\.10"
CLOCKS = r"its clock gained \d\.\d\d s on this computer's; valid is up to 0\.20 s"
STILL = r"the tool is \d+ mm off the set-points of the last 0\.\d\d s, though no joint moves; valid is up to 5 mm"
LIES = {
    "everything is frozen but the time": (freeze(JOINTS, END), f"{JOINT}|{STILL}"),
    "the joints are frozen": (freeze(JOINTS, SPEEDS), f"{JOINT}|{TOOL}"),
    "the pose is frozen": (freeze(POSE, END), TOOL),
    "the pose is off by 1 m": (add(POSE, 1.0), TOOL.replace(r"\d+", "1000")),
    "the pose drifts": (add(POSE + 2, 0.0, 0.3), TOOL),
    "the tool is turned": (put(POSE + 5, 1.0), TURN),
    "a joint is off by 1 rad": (add(JOINTS + 1, 1.0), STEP),
    "a joint is off by 1 rad for a moment": (for_a_moment(add(JOINTS + 5, -1.0), 0.02), STEP),
    "a joint drifts": (add(JOINTS + 3, 0.0, 0.5), f"{JOINT}|{TOOL}"),
    "a joint turns at 11 rad/s": (put(SPEEDS + 2, 11.0), SPEED),
    "a joint that moves says that it stands": (put(SPEEDS, 0.0), JOINT),
    "a joint that stands says that it moves": (put(SPEEDS + 4, -1.0), JOINT),
    "the clock runs at double pace": (add(CLOCK, 0.0, 1.0), CLOCKS),
    "the clock jumps by 1 s": (add(CLOCK, 1.0), CLOCKS),
}
# What a CB3 with its longer cycle might see less well.
CB3_LIES = ("everything is frozen but the time", "a joint drifts", "the clock runs at double pace")
CASES = [("e-series", lie) for lie in LIES] + [("cb3", lie) for lie in CB3_LIES]


# Of module scope: each test hands the next one an arm that it recovered.
@pytest.fixture(scope="module", params=list(MODELS))
def robot(request, module_servers):
    server = module_servers("ur_server.py", request.param)
    server.generation = request.param
    yield server
    server.close()


@pytest.fixture(scope="module")
def network(robot):
    between = Network(free_address(), robot.address)
    yield between
    between.close()


@pytest.fixture(scope="module")
def driven(network, robot):
    built = build_arm("ur", UrConfig(network.address, model=MODELS[robot.generation], **OPTIONS))
    built.connect()
    yield built
    built.close()


@pytest.fixture
def arm(driven, network):
    driven.move_to_joints(INITIAL_Q, QUICK)
    yield driven
    driven.stop()
    if driven.state().fault:
        network.heal()
        driven.recover()
    assert driven.state().fault == ""


def only(generation):
    """Run a test with one generation of controllers."""
    return pytest.mark.parametrize("robot", [generation], indirect=True)


def assert_contradiction(arm, network, what):
    fault = arm.state().fault
    end = "compare it with what the pendant shows, then reset"
    assert re.fullmatch(rf"robot at {network.address} contradicts itself, ({what}): {end}", fault), fault
    assert not arm.state().in_control
    assert np.abs(arm.state().joint_positions - INITIAL_Q).max() < 0.9, "no lie is handed on"
    assert np.abs(arm.state().joint_velocities).max() < 4.0, "no lie is handed on"


def check(arm, robot, network, seconds, lie, what):
    """Tell a lie some seconds into a swing."""
    sweep = Sweep(arm)
    sweep.run(seconds)
    event = time.monotonic_ns()
    network.damage(DOWN, lie)
    assert sweep.until_refused(1.0) == arm.state().fault
    assert_contradiction(arm, network, what)
    assert_at_rest_since(robot, event)


@pytest.mark.parametrize(("robot", "lie"), CASES, indirect=["robot"])
def test_a_lie_in_motion_stops_the_arm(arm, robot, network, lie):
    change, what = LIES[lie]
    check(arm, robot, network, FAST_S, Lie(change), what)


def test_an_arm_that_is_frozen_where_it_turns_back(arm, robot, network):
    """It neither moves nor says that it does; only the set-points show that it should."""
    check(arm, robot, network, TURN_S, Lie(freeze(JOINTS, END)), f"{JOINT}|{STILL}")


@only("e-series")
def test_an_arm_that_is_frozen_before_it_moves(arm, robot, network):
    network.damage(DOWN, Lie(freeze(JOINTS, END)))
    check(arm, robot, network, 0.0, Lie(freeze(JOINTS, END)), STILL)


@only("e-series")
def test_everything_that_the_robot_says_is_frozen(arm, robot, network):
    """Also that it has done what it was asked for, so that a call for a stop gets no answer."""
    check(arm, robot, network, FAST_S, Lie(freeze(JOINTS, END), rest_too=True), f"{JOINT}|{STILL}")


@only("e-series")
@pytest.mark.parametrize("lie", ["a joint is off by 1 rad", "everything is frozen but the time"])
def test_a_lie_in_a_joint_motion_stops_the_arm(arm, robot, network, lie):
    change, what = LIES[lie]
    errors = []

    def move():
        try:
            arm.move_to_joints(AWAY, Dynamics(0.3, 0.3, 1.0))
        except ArmError as error:
            errors.append(str(error))

    thread = threading.Thread(target=move)
    thread.start()
    end = time.monotonic() + 2.0
    while np.abs(arm.state().joint_velocities).max() < 0.5:
        assert time.monotonic() < end, "the motion does not begin"
        time.sleep(0.002)
    event = time.monotonic_ns()
    network.damage(DOWN, Lie(change))
    thread.join(1.0)
    assert errors == [arm.state().fault]
    assert_contradiction(arm, network, what)
    assert_at_rest_since(robot, event)


@only("e-series")
def test_a_joint_motion_that_is_not_seen_to_begin_is_ended(arm, robot, network):
    network.damage(DOWN, Lie(freeze(JOINTS, END)))
    event = time.monotonic_ns()
    with pytest.raises(ArmError, match=r"ended 0\.80 rad from the goal: look at what holds it"):
        arm.move_to_joints(AWAY, Dynamics(0.2, 0.1, 1.0))
    assert_at_rest_since(robot, event)
    network.damage(DOWN, bytes)
    end = time.monotonic() + 1.0
    while not arm.state().fault:
        assert time.monotonic() < end, "the way from the lie to the truth is a jump"
        time.sleep(0.002)


@only("e-series")
@pytest.mark.parametrize("lie", ["a joint is off by 1 rad", "the clock runs at double pace"])
def test_a_lie_at_rest_is_a_fault_and_nothing_moves(arm, robot, network, lie):
    change, what = LIES[lie]
    before = moved(robot)
    network.damage(DOWN, Lie(change))
    end = time.monotonic() + 0.5
    while not arm.state().fault:
        assert time.monotonic() < end, "no fault"
        time.sleep(0.002)
    assert_contradiction(arm, network, what)
    with pytest.raises(ArmError, match="recover first"):
        arm.start()
    assert moved(robot) == before


@only("e-series")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (add(POSE, 1.0), r"has its tool 1000 mm and 0\.00 rad from where a ur5e would have it"),
        (add(JOINTS + 5, 1.0), r"has its tool 0 mm and 1\.00 rad from where a ur5e would have it"),
    ],
)
def test_a_lie_from_the_beginning_is_refused(network, robot, arm, change, said):
    arm.close()
    network.damage(DOWN, Lie(change))
    try:
        with pytest.raises(ArmError, match=f"robot at {network.address} {said}: check `model`"):
            arm.connect()
    finally:
        network.heal()
        arm.connect()


@only("e-series")
def test_text_messages_that_are_empty_stop_the_arm(arm, robot, network):
    sweep = Sweep(arm)
    sweep.run(FAST_S)
    event = time.monotonic_ns()
    network.damage(DOWN, texts(b""))
    said = "sent a state that cannot be, a text message of 0 bytes; valid is 3 or more: check what damages its data"
    assert said in sweep.until_refused(1.0)
    assert_at_rest_since(robot, event)


def test_text_messages_before_each_state_change_nothing(arm, network):
    sweep = Sweep(arm)
    sweep.run(FAST_S)
    network.damage(DOWN, texts(b"\x02hi\x00\x03"))
    begin = arm.state().stamp_ns
    sweep.run(1.0)
    assert arm.state().in_control
    assert arm.state().stamp_ns - begin > 0.9e9
    network.damage(DOWN, bytes)


def assert_never_near(arm):
    """Honest states use less than half of every limit; of the one on speed, what a joint at full speed does."""
    margins = arm.statistics().margins
    assert margins.keys() >= {"clock", "joint", "tool", "turn"}
    assert margins.pop("speed") <= 0.8
    assert max(margins.values()) < 0.5, margins


@pytest.mark.parametrize("generation", MODELS)
def test_motions_near_the_limits_are_honest(own_servers, generation):
    """Joints at full speed and acceleration, and a circle at 0.7 m/s and 10 m/s^2."""
    parts = {"max_speed": 2.0, "max_acceleration": 20.0, "model": MODELS[generation]}
    arm = build_arm("ur", UrConfig(own_servers("ur_server.py", generation).address, **OPTIONS | parts))
    arm.connect()
    arm.move_to_joints(FAR, QUICK)
    arm.move_to_joints(INITIAL_Q, QUICK)
    arm.start()
    state, begin = arm.state(), time.monotonic()
    radius, speed = 0.05, 0.7
    while (t := time.monotonic() - begin) < 3.0:
        grown = min(t, 1.0)
        angle = speed / radius * t
        way = np.array([np.cos(angle) - 1.0, np.sin(angle), 0.0])
        velocity = grown * speed * np.array([-np.sin(angle), np.cos(angle), 0.0])
        arm.command(Setpoint(state.tool_position + grown * radius * way, state.tool_quaternion, velocity, ZERO))
        time.sleep(0.008)
    arm.stop()
    assert_never_near(arm)
    arm.close()


def test_honest_states_that_come_in_bursts_are_believed(arm, network):
    """Every 10 ms another delay of up to 40 ms each way, and what waits behind a late package comes with it."""
    random = np.random.default_rng(4)
    sweep = Sweep(arm)
    end = time.monotonic() + 6.0
    while time.monotonic() < end:
        for direction in (UP, DOWN):
            network.delay(direction, random.uniform(0.0, 0.04))
        sweep.step()
    assert arm.state().in_control
    arm.stop()
    assert_never_near(arm)
    for direction in (UP, DOWN):
        network.delay(direction, 0.0)
