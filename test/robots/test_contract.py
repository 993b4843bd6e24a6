"""What every arm must do, run through the real client against a simulated robot that speaks the robot's protocol."""

import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from real_time import HoldUps, wait_until
from ros_domain import own_domain
from ros_robot import POSES, POSITIONS, TRAJECTORIES, forward_arm, mute_ros, pose_arm, ros_arm, transform_arm, twist_arm

from bid_ros.control.setpoint import JointSetpoint, Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.robots.base import Arm, Dynamics, JointArm
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.registry import build_arm
from bid_ros.robots.unheard import RESTING_TWIN_S
from bid_ros.robots.ur.config import UrConfig

PERIOD_S = 0.01
ZERO = np.zeros(3)


# A robot compensates the friction of its joints, the simulated one does not: 60 % of its Coulomb friction in Nm.
FRICTION = (0.68, 0.68, 0.68, 0.68, 0.46, 0.26, 0.15)


def franka(address, **parts):
    config = FrankaConfig(
        address,
        twin=True,
        dynamics=Dynamics(0.5, 0.1, 0.1),
        translational_stiffness=2500.0,
        rotational_stiffness=120.0,
        friction_coulomb=FRICTION,
        friction_viscous=(0.2,) * 7,
        state_timeout_s=0.5,
        silence_timeout_s=0.5,
        beat_timeout_s=0.5,
        **parts,
    )
    return build_arm("franka", config)


def ur(address, **parts):
    return build_arm(
        "ur", UrConfig(address, twin=True, lookahead_time_s=0.05, gain=500.0, state_timeout_s=0.2, **parts)
    )


@contextmanager
def mute(address, ports):
    """A robot that takes connections, and never says anything."""
    with ExitStack() as listening:
        for port in ports:
            listening.enter_context(socket.create_server((address, port)))
        yield


@dataclass(frozen=True)
class Case:
    """An arm: how it is built, which simulated robot it drives, and the ports that it needs first.

    ``mute`` makes a robot at an address that never speaks. ``impatient`` says how it is built to give up soon.
    """

    build: Callable[..., Arm]
    server: tuple[str, ...]
    ports: tuple[int, ...]
    mute: Callable[..., AbstractContextManager[None]] = mute
    impatient: Mapping[str, Any] = field(default_factory=dict)


def ros(build, controller, *server):
    """The arm behind ``ros_server.py``."""
    served = ("ros_server.py", str(own_domain()), controller, *server)
    return Case(build, served, (), mute_ros, {"connect_timeout_s": 3.0})


CASES = {
    "franka": Case(franka, ("franky_sim_server.py",), (1337,)),
    "ur e-series": Case(ur, ("ur_server.py", "e-series"), (29999, 30004)),
    "ur cb3": Case(partial(ur, model="ur5"), ("ur_server.py", "cb3"), (29999, 30004)),
    "ros trajectories": ros(ros_arm, TRAJECTORIES),
    "ros transforms": ros(transform_arm, TRAJECTORIES, "transforms"),
    "ros positions": ros(forward_arm, POSITIONS),
    "ros poses": ros(pose_arm, POSES),
    "ros twists": ros(twist_arm, TRAJECTORIES),
}
# What these add to the others is a table or a message, which have tests of their own: scripts/test_all.sh runs them.
LONG = ("ur cb3", "ros transforms", "ros positions", "ros poses", "ros twists")
ARMS = [pytest.param(case, id=name, marks=[pytest.mark.long] * (name in LONG)) for name, case in CASES.items()]
every_arm = pytest.mark.parametrize("case", ARMS)


def by_joints(arm):
    """Whether the arm takes set-points of the joints; a controller may take the tool's pose or twist alone."""
    return getattr(vars(arm)["_config"], "by_joints", True)


def joint_arm(arm):
    """Return the arm; a test of joints is left out for one that takes none."""
    if not by_joints(arm):
        pytest.skip("its controller takes no joints")
    return arm


class ToolSpace:
    """Set-points of the tool: places are its positions."""

    name = "tool"
    unit = "m"
    worst, at_end = 0.010, 0.002  # m, of a streamed move
    start = staticmethod(lambda arm: arm.start())

    @staticmethod
    def offset(arm):
        return np.array([-0.03, 0.03, -0.025])

    @staticmethod
    def measured(state):
        return state.tool_position

    @staticmethod
    def command(arm, place, velocity, quaternion):
        arm.command(Setpoint(place, quaternion, velocity, ZERO))


class JointSpace:
    """Set-points of the joints: places are their positions."""

    name = "joints"
    unit = "rad"
    worst, at_end = 0.03, 0.006  # rad, of a streamed move
    start = staticmethod(lambda arm: joint_arm(arm).start_joints())

    @staticmethod
    def offset(arm):
        return 0.06 * np.array([1, -1, 1, 1, -1, 1, 1])[: len(arm.info.joint_names)]

    @staticmethod
    def measured(state):
        return state.joint_positions

    @staticmethod
    def command(arm, place, velocity, quaternion):
        arm.command_joints(JointSetpoint(place, velocity))


SPACES = (ToolSpace, JointSpace)
every_space = pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name)


# Of module scope, so that pytest runs the tests arm by arm, with one simulated robot at a time.
@pytest.fixture(scope="module", params=ARMS)
def connectable(request, module_servers):
    case = request.param
    server = module_servers(*case.server)
    yield lambda: case.build(server.address)
    server.close()


@pytest.fixture
def arm(connectable):
    """A connected arm, at rest where the test before left it."""
    built = connectable()
    built.connect()
    yield built
    built.close()


def connect(arm):
    """Connect an arm that gives up soon. On a busy computer nodes find each other late."""
    with suppress(ArmError):
        return arm.connect()
    with suppress(ArmError):
        return arm.connect()
    return arm.connect()


def hold(arm, space):
    """Command what is measured now."""
    state = arm.state()
    place = space.measured(state)
    space.command(arm, place, np.zeros(len(place)), state.tool_quaternion)


def stream(arm, place, seconds, space=ToolSpace):
    """Stream places ``place(t)`` at 100 Hz; return rows (time, measured, wanted) and the times of :class:`Call`.

    Each row is of the time at which the robot was read, as this process may be held up between two of its lines.
    """
    quaternion = arm.state().tool_quaternion
    begin_ns, begin = time.time_ns(), time.monotonic()
    rows, calls = [], []
    for k in range(round(seconds / PERIOD_S)):
        t = time.monotonic() - begin
        velocity = (place(t + 1e-4) - place(t)) / 1e-4
        call = Call()
        space.command(arm, place(t), velocity, quaternion)
        state = arm.state()
        calls.append(call.times())
        read = (state.stamp_ns - begin_ns) / 1e9
        rows.append((read, space.measured(state), place(read)))
        time.sleep(max(0.0, begin + (k + 1) * PERIOD_S - time.monotonic()))
    return rows, calls


def assert_prompt(measure, when):
    """Calls return without waiting for the robot, in less than a period.

    ``measure`` returns the times of :class:`Call`. A busy computer holds up calls too, but hardly three times in a row.
    """
    tries = []
    for _ in range(3):
        took, waited = 1000 * np.array(measure()).T
        tries.append((np.median(took), np.quantile(waited, 0.9), max(waited)))
        if tries[-1][0] < 1000 * PERIOD_S and tries[-1][1] < 2.0 and tries[-1][2] < 50.0:
            return
    said = "; ".join(", ".join(f"{value:.1f}" for value in values) for values in tries)
    raise AssertionError(f"calls {when} took, and waited (p90, max), in ms, three times: {said}")


class Call:
    """Times a call of this thread: how long it took, and how much of that it waited for something else than a core."""

    def __init__(self):
        self._begin = self._clocks()

    def times(self):
        """Return both in s."""
        took, busy = (now - before for now, before in zip(self._clocks(), self._begin, strict=True))
        return took / 1e9, max(0, took - busy) / 1e9

    def _clocks(self):
        ready_ns = int(Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_text().split()[1])
        return time.monotonic_ns(), time.thread_time_ns() + ready_ns


def smooth(start, offset, seconds):
    """A minimum-jerk move by ``offset``; at rest before 0 and after ``seconds``."""

    def place(t):
        s = min(max(t / seconds, 0.0), 1.0)
        return start + offset * (10 * s**3 - 15 * s**4 + 6 * s**5)

    return place


def joint_speed(arm):
    return float(np.abs(arm.state().joint_velocities).max())


# Each with a robot of its own. They come first, as the robot that the others share runs on until the file ends.


@every_arm
def test_an_arm_that_is_not_connected_says_so(case):
    arm = case.build("127.77.250.1")
    arm.stop()
    arm.close()
    for call in (arm.state, arm.start, arm.start_joints, lambda: arm.command_gripper(0.05)):
        with pytest.raises(ArmError, match="connect"):
            call()


@every_arm
def test_an_address_where_nothing_listens_is_one_sentence(case):
    with HoldUps() as since:
        with pytest.raises(ArmError, match=r"127\.77\.250\.1: .* check the address") as caught:
            case.build("127.77.250.1").connect()
        assert since.seconds() < 2.0
    assert "\n" not in str(caught.value)


@every_arm
def test_a_robot_that_accepts_but_never_speaks_times_out(case):
    with case.mute("127.77.250.2", case.ports):
        arm = case.build("127.77.250.2", connect_timeout_s=0.5)
        with HoldUps() as since:
            with pytest.raises(ArmError, match=r"no answer from the robot at 127\.77\.250\.2 within 0\.5 s: check"):
                arm.connect()
            assert since.seconds() < 2.0


@every_arm
def test_a_silent_robot_is_a_fault_until_a_person_recovers(own_servers, case):
    server = own_servers(*case.server)
    arm = case.build(server.address, **case.impatient)
    connect(arm)
    for space in SPACES[: 1 + by_joints(arm)]:
        space.start(arm)
        server.freeze()
        wait_until(lambda: arm.state().fault, 2.0 + RESTING_TWIN_S, "the fault")
        assert server.address in arm.state().fault
        assert not arm.state().in_control
        with HoldUps() as since:
            with pytest.raises(ArmError, match=server.address):
                hold(arm, space)
            with pytest.raises(ArmError, match="recover first"):
                space.start(arm)
            arm.state()
            assert since.seconds() < 0.05, "a lost robot must not block the loop"
        server.go_on()
        with pytest.raises(ArmError, match="recover first"):
            space.start(arm)
        arm.recover()
        space.start(arm)
        place = space.measured(arm.state())
        stream(arm, lambda t, place=place: place, 0.2, space)
        assert arm.state().in_control
        arm.stop()
    space.start(arm)
    server.process.kill()
    wait_until(lambda: arm.state().fault, 2.0, "the fault")
    with pytest.raises(ArmError, match=server.address):
        arm.recover()
    assert server.address in arm.state().fault, "the state stays readable when recovery fails"
    if case.ports:  # rebooted, it has its address again; one behind ROS has a name that goes with its process
        own_servers(*case.server, f"address={server.address}")
        with pytest.raises(ArmError, match="first"):
            space.start(arm)
        arm.recover()
        space.start(arm)
        assert arm.state().in_control and not arm.state().fault
    arm.stop()
    arm.close()
    arm.close()


# With one robot for all.


def test_it_is_an_arm_and_its_state_is_finite(arm):
    assert isinstance(arm, Arm) and isinstance(arm, JointArm)
    state, info = arm.state(), arm.info
    assert len(info.joint_names) == len(state.joint_positions) == len(state.joint_velocities)
    for values in (state.joint_positions, state.joint_velocities, state.tool_position):
        assert np.isfinite(values).all()
    assert np.linalg.norm(state.tool_quaternion) == pytest.approx(1.0)
    assert 0.0 <= state.gripper_width <= info.gripper_max + 0.002
    assert not state.in_control
    assert state.fault == ""
    assert abs(time.time_ns() - state.stamp_ns) < 1e9


def test_the_state_goes_on_in_and_out_of_control(arm):
    for begin in (lambda: None, arm.start):
        begin()
        stamp = arm.state().stamp_ns
        wait_until(lambda stamp=stamp: arm.state().stamp_ns > stamp, 1.0, "a newer state")


@every_space
def test_entering_control_does_not_move_and_holding_keeps_the_pose_without_waiting_for_the_robot(arm, space):
    before = arm.state()
    space.start(arm)
    space.start(arm)
    assert arm.state().in_control
    place = space.measured(before)
    assert_prompt(lambda: stream(arm, lambda t: place, 1.0, space)[1], "for a command and a state")
    drift = np.linalg.norm(arm.state().tool_position - before.tool_position)
    assert drift < 0.002, f"drifted {1000 * drift:.2f} mm"


@every_space
def test_a_streamed_move_is_tracked(arm, space):
    space.start(arm)
    offset = space.offset(arm)
    length = np.linalg.norm(offset)
    limits = {"worst": space.worst, "at the end": space.at_end, "peak speed": 1.3 * 1.875 * length}
    tries = []
    # There, back and there again. A busy computer holds up one move or the other: without the right to raise a
    # priority two of three. Of an arm that cannot follow no move is good.
    for way in (offset, -offset, offset, -offset, offset):
        rows, _ = stream(arm, smooth(space.measured(arm.state()), way, 1.0), 1.4, space)
        errors = [np.linalg.norm(measured - wanted) for _, measured, wanted in rows]
        speeds = [np.linalg.norm(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(rows[::5]) if b[0] > a[0]]
        tries.append(dict(zip(limits, (max(errors), errors[-1], max(speeds)), strict=True)))
        good = [all(found[name] < limit for name, limit in limits.items()) for found in tries]
        if good == [True] or sum(good) == 2:
            return
    raise AssertionError(f"in {space.unit} and s: {tries}; valid is less than {limits}")


def test_who_follows_the_tool_takes_no_joints_and_the_other_way_round(arm):
    state = joint_arm(arm).state()
    place, speeds = state.joint_positions, np.zeros(len(state.joint_positions))
    arm.start()
    with pytest.raises(ArmError, match="start_joints first"):
        arm.command_joints(JointSetpoint(place, speeds))
    with pytest.raises(ArmError, match="stop it first"):
        arm.start_joints()
    arm.stop()
    arm.start_joints()
    with pytest.raises(ArmError, match="start first"):
        hold(arm, ToolSpace)
    with pytest.raises(ArmError, match="stop it first"):
        arm.start()
    hold(arm, JointSpace)
    assert arm.state().in_control


def test_the_gripper_does_not_block_the_arm_and_the_newest_request_wins(arm):
    arm.start()
    state = arm.state()

    def measure():
        arm.command_gripper(0.0)
        wait_until(lambda: arm.state().gripper_busy, 1.0, "the gripper to begin")
        requests = []
        for width in (0.08, 0.01, arm.info.gripper_max):
            begin = time.monotonic()
            arm.command_gripper(width)
            requests.append(time.monotonic() - begin)
        asked.append(sum(requests))
        return stream(arm, lambda t: state.tool_position, 0.5)[1]

    asked: list[float] = []
    assert_prompt(measure, "while the gripper moved")
    assert min(asked) < 0.01, f"three requests took {1000 * min(asked):.1f} ms"
    wait_until(lambda: arm.state().gripper_width < 0.07, 3.0, "the gripper to close")
    wait_until(lambda: arm.state().gripper_width > 0.075 and not arm.state().gripper_busy, 5.0, "the last request")


def test_noise_between_the_thresholds_moves_no_finger(arm):
    arm.command_gripper(arm.info.gripper_max)
    wait_until(lambda: arm.state().gripper_busy, 1.0, "the gripper to begin")
    wait_until(lambda: not arm.state().gripper_busy, 5.0, "an open gripper")
    for width in (0.058, 0.05, 0.047):
        arm.command_gripper(width)
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        assert not arm.state().gripper_busy
        time.sleep(0.005)


@every_space
def test_a_stop_in_motion_comes_to_rest_and_can_be_repeated(arm, space):
    space.start(arm)
    stream(arm, smooth(space.measured(arm.state()), 2 * space.offset(arm), 0.6), 0.3, space)
    assert joint_speed(arm) > 0.05
    begin = time.monotonic()
    arm.stop()
    wait_until(lambda: joint_speed(arm) < 0.02, 0.5 - (time.monotonic() - begin), "rest")
    state = arm.state()
    assert not state.in_control
    assert state.fault == ""
    arm.stop()
    with pytest.raises(ArmError, match="not in control"):
        hold(arm, space)
    space.start(arm)
    stream(arm, lambda t: space.measured(state), 0.1, space)
    assert arm.state().in_control


def test_homing_waits_and_leaves_control(arm):
    joint_arm(arm).start()
    start = arm.state().joint_positions
    goal = start + 0.1 * np.isin(np.arange(len(start)), (1, 3))
    arm.move_to_joints(goal, Dynamics(0.5, 0.3, 0.3))
    assert arm.state().joint_positions == pytest.approx(goal, abs=0.015)
    assert not arm.state().in_control
    with pytest.raises(ArmError, match=f"valid is {len(goal)} finite numbers"):
        arm.move_to_joints(np.zeros(3))


def test_a_stop_ends_homing_early(arm):
    start = joint_arm(arm).state().joint_positions
    goal = start + 0.5 * (np.arange(len(start)) == 0)
    outcome = []

    def home():
        try:
            arm.move_to_joints(goal, Dynamics(0.3, 0.1, 0.1))
        except ArmError as error:
            outcome.append(str(error))

    thread = threading.Thread(target=home)
    thread.start()
    wait_until(lambda: joint_speed(arm) > 0.1, 2.0, "homing to begin")
    with HoldUps() as since:
        arm.stop()
        assert since.seconds() < 1.5
    thread.join(1.0)
    assert not thread.is_alive()
    assert "it was stopped" in outcome[0]
    wait_until(lambda: joint_speed(arm) < 0.02, 0.5, "rest")
    assert goal[0] - arm.state().joint_positions[0] > 0.1
    arm.start()
    assert arm.state().in_control


def test_recovery_without_a_fault_is_harmless(arm):
    arm.recover()
    arm.start()
    assert arm.state().in_control


@pytest.mark.parametrize("width", [float("nan"), float("inf")])
def test_an_impossible_width_is_refused(arm, width):
    with pytest.raises(ArmError, match="finite"):
        arm.command_gripper(width)


def test_a_set_point_that_is_not_finite_is_refused(arm):
    arm.start()
    state = arm.state()
    with pytest.raises(ArmError, match="finite"):
        arm.command(Setpoint(np.full(3, np.nan), state.tool_quaternion, ZERO, ZERO))
    stream(arm, lambda t: state.tool_position, 0.1)
    assert arm.state().in_control


@pytest.mark.parametrize("wrong", [np.nan, np.inf, "short"])
def test_a_set_point_of_joints_that_does_not_fit_is_refused(arm, wrong):
    joint_arm(arm).start_joints()
    place = arm.state().joint_positions
    bad = place[1:] if wrong == "short" else np.full(len(place), wrong)
    with pytest.raises(ArmError, match=r"finite|valid are"):
        arm.command_joints(JointSetpoint(bad, np.zeros(len(bad))))
    stream(arm, lambda t: place, 0.1, JointSpace)
    assert arm.state().in_control
