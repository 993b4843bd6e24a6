"""The controller's program, motions and modes, cycle by cycle in its own time: no sockets, no clocks, no waiting."""

import socket
import subprocess
import sys

import numpy as np
import pytest
from real_time import wait_until
from ur_twin import TwinProcess, free_address

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.kinematics import UR5E
from bid_ros.robots.ur.rtde import PORT as RTDE_PORT
from bid_ros.robots.ur.twin.commands import COMMANDS, commands
from bid_ros.robots.ur.twin.config import UrControllerConfig
from bid_ros.robots.ur.twin.controller import UrController
from bid_ros.robots.ur.twin.machine import SAFETY_BITS, RobotMode, RuntimeState, SafetyMode, UrMachine
from bid_ros.robots.ur.twin.mujoco_plant import standing_arm
from bid_ros.robots.ur.twin.plant import KinematicPlant
from bid_ros.robots.ur.twin.robot import DEVIATION_LIMIT, STOP_DECELERATION
from bid_ros.robots.ur.twin.rtde_server import write_outputs

HOME = (0.0, -1.5708, 1.5708, -1.5708, -1.5708, 0.0)
PERIOD = 0.002
READY, DONE = 1, 2
MOVE_J, SERVO_J, SERVO_STOP, SERVO_L, SET_TCP, STOP_J, WATCHDOG, STOP_SCRIPT = 1, 11, 16, 24, 29, 34, 35, 255
TEACH, END_TEACH, FREEDRIVE, END_FREEDRIVE = 18, 19, 52, 53
ALL_FREE = (1,) * 6
WITHIN_LIMITS, GET_JOINT_TORQUES, GET_POSE = 37, 38, 43


class Hand:
    """A machine and the hand that writes its registers, as the client does."""

    def __init__(self, plant=None, unlock_delay_s=5.0):
        self.plant = plant or KinematicPlant(HOME)
        self.machine = UrMachine(UrControllerConfig(unlock_delay_s=unlock_delay_s), self.plant, UR5E)
        self.outputs = self.machine.outputs
        self.machine.run()
        self.speeds = [self.plant.joint_velocities]

    def write(self, command, *doubles, ints=()):
        inputs = self.machine.inputs
        for number, value in enumerate((command, *ints)):
            inputs.set(f"input_int_register_{number}", value)
        for number, value in enumerate(doubles):
            inputs.set(f"input_double_register_{number}", value)
        inputs.written(["input_int_register_0"])

    def cycles(self, count):
        for _ in range(count):
            self.machine.cycle()
            self.speeds.append(self.plant.joint_velocities)

    def until(self, condition, limit_s=10.0):
        """Cycle until ``condition`` holds; return the time it took, s."""
        start = self.machine.clock_s
        while not condition():
            assert self.machine.clock_s - start < limit_s, "the condition was not met in time"
            self.cycles(1)
        return self.machine.clock_s - start

    def call(self, command, *doubles, ints=()):
        """Give a command and wait for its end, as the client does."""
        self.write(command, *doubles, ints=ints)
        self.until(lambda: self.state == DONE or self.machine.runtime is not RuntimeState.PLAYING)
        done = self.state == DONE and self.machine.runtime is RuntimeState.PLAYING
        self.write(0)
        self.cycles(1)
        return done

    @property
    def state(self):
        return self.outputs.get("output_int_register_0")

    @property
    def q(self):
        return self.plant.joint_positions

    @property
    def still(self):
        return not self.plant.joint_velocities.any()

    def hardest(self):
        """Largest change of a joint's speed in one cycle, rad/s^2."""
        return float(np.abs(np.diff(self.speeds, axis=0)).max() / PERIOD)


def moving(hand, speed=1.0):
    """Bring every joint to ``speed`` on a long move that nothing waits for."""
    assert hand.call(MOVE_J, *(np.array(HOME) + 4.5), speed, 20.0, ints=(1,))
    hand.until(lambda: hand.plant.joint_velocities[0] > speed - 1e-9)
    return hand


# --- the register protocol --------------------------------------------------------------------------------------------


def test_command_is_done_until_the_client_clears_it():
    hand = Hand()
    assert hand.state == READY
    hand.write(SET_TCP, 0.0, 0.0, 0.1, 0.0, 0.0, 0.0)
    hand.cycles(3)
    assert hand.state == DONE and hand.machine.robot.tcp == (0.0, 0.0, 0.1, 0.0, 0.0, 0.0)
    hand.machine.robot.tcp = (0.0,) * 6
    hand.cycles(5)  # executed once, not in every cycle
    assert hand.machine.robot.tcp == (0.0,) * 6
    hand.write(0)
    hand.cycles(1)
    assert hand.state == READY


def test_move_is_done_when_the_arm_is_there_and_not_before():
    hand = Hand()
    target = np.array(HOME) + 0.3
    hand.write(MOVE_J, *target, 1.0, 5.0, ints=(0,))
    there = []
    while hand.state != DONE:
        there.append(np.allclose(hand.q, target, atol=1e-12) and hand.still)
        hand.cycles(1)
    assert not any(there[:-2])
    np.testing.assert_allclose(hand.q, target, atol=1e-12)
    assert hand.still and hand.hardest() < 5.0 + 1e-6


def test_streaming_commands_are_ready_at_once_and_keep_the_last_target():
    hand = Hand()
    target = np.array(HOME) + 0.1
    hand.write(SERVO_J, *target, 0.0, 0.0, PERIOD, 0.05, 600.0)
    hand.cycles(1)
    assert hand.state == READY
    hand.until(lambda: np.allclose(hand.q, target, atol=1e-5))
    hand.cycles(500)  # nothing new comes: it stays
    np.testing.assert_allclose(hand.q, target, atol=1e-5)
    assert hand.machine.runtime is RuntimeState.PLAYING
    assert hand.call(SERVO_STOP, 10.0)
    assert hand.call(MOVE_J, *HOME, 1.0, 5.0, ints=(0,))


def test_two_threads_cannot_move_the_arm():
    hand = Hand()
    hand.write(SERVO_J, *(np.array(HOME) + 0.5), 0.0, 0.0, PERIOD, 0.05, 600.0)
    hand.until(lambda: not hand.still)
    assert not hand.call(MOVE_J, *HOME, 1.0, 5.0, ints=(0,))
    hand.until(lambda: hand.machine.runtime is RuntimeState.STOPPED)
    assert hand.still


def test_asynchronous_move_is_done_at_once_and_arrives():
    hand = Hand()
    assert hand.call(MOVE_J, *(np.array(HOME) + 0.3), 1.0, 5.0, ints=(1,))
    assert not np.allclose(hand.q, np.array(HOME) + 0.3, atol=0.1)
    hand.until(lambda: np.allclose(hand.q, np.array(HOME) + 0.3, atol=1e-12) and hand.still)
    hand.cycles(2)
    assert hand.call(MOVE_J, *HOME, 1.0, 5.0, ints=(0,))


@pytest.mark.parametrize("asynchronous", [0, 1])
def test_stop_ends_an_asynchronous_move(asynchronous):
    hand = moving(Hand())
    assert hand.call(STOP_J, 5.0, ints=(asynchronous,))
    assert hand.still or asynchronous
    hand.until(lambda: hand.still, 1.0)
    assert hand.machine.runtime is RuntimeState.PLAYING and hand.q[0] < 4.0


@pytest.mark.parametrize(("begin", "end"), [(FREEDRIVE, END_FREEDRIVE), (TEACH, END_TEACH)])
def test_in_freedrive_a_person_moves_the_arm_and_the_client_does_not(begin, end):
    hand = Hand()
    target = np.array(HOME) + 0.3
    assert hand.call(begin, *[0.0] * 6, ints=ALL_FREE)
    assert hand.call(MOVE_J, *target, 1.0, 5.0, ints=(0,)) and hand.call(MOVE_J, *target, 1.0, 5.0, ints=(1,))
    hand.cycles(300)
    np.testing.assert_array_equal(hand.q, HOME)
    guided = np.array(HOME) + 1.0  # further than an arm may leave a path that it follows
    hand.plant.joint_positions = guided
    assert hand.call(end)
    hand.cycles(300)
    assert (hand.machine.robot_mode, hand.machine.safety_mode) == (RobotMode.RUNNING, SafetyMode.NORMAL)
    np.testing.assert_array_equal(hand.q, guided)
    assert hand.call(MOVE_J, *target, 1.0, 5.0, ints=(0,))  # the same program drives it again
    np.testing.assert_allclose(hand.q, target, atol=1e-12)


def test_a_servo_that_was_not_ended_draws_on_at_the_arm_after_freedrive():
    hand = Hand()
    target = np.array(HOME) + 0.1
    hand.write(SERVO_J, *target, 0.0, 0.0, PERIOD, 0.05, 600.0)
    hand.until(lambda: np.allclose(hand.q, target, atol=1e-5))
    assert hand.call(FREEDRIVE, *[0.0] * 6, ints=ALL_FREE)
    hand.plant.joint_positions = np.array(HOME)
    hand.cycles(300)
    np.testing.assert_array_equal(hand.q, HOME)
    assert hand.call(END_FREEDRIVE)
    hand.until(lambda: np.allclose(hand.q, target, atol=1e-5))
    assert hand.hardest() < 40.0 + 1e-6


def test_an_arm_with_mass_yields_in_freedrive_and_stays_where_it_is_left():
    hand = Hand(plant=standing_arm(HOME))
    push = hand.plant._data.xfrc_applied[hand.plant._model.body("tool0").id]
    assert hand.call(FREEDRIVE, *[0.0] * 6, ints=ALL_FREE)
    hand.cycles(250)
    np.testing.assert_allclose(hand.q, HOME, atol=1e-6)  # its motors carry its weight
    push[1] = 30.0  # N
    hand.until(lambda: abs(hand.q[0] - HOME[0]) > 0.05)
    push[1] = 0.0
    assert hand.call(END_FREEDRIVE)
    left = hand.q
    hand.cycles(250)
    np.testing.assert_allclose(hand.q, left, atol=0.01)
    assert hand.machine.safety_mode is SafetyMode.NORMAL


def test_freedrive_along_some_axes_is_refused_and_an_old_controller_has_none(caplog):
    hand = Hand()
    assert not hand.call(FREEDRIVE, *[0.0] * 6, ints=(1, 1, 0, 1, 1, 1))
    assert "the twin frees all axes alone; valid are free_axes of ones" in caplog.text
    assert FREEDRIVE in commands(e_series=True) and FREEDRIVE not in commands(e_series=False)


@pytest.mark.parametrize(("joint", "within"), [(6.2, 1), (7.0, 0)])
def test_the_limits_of_the_joints_are_answered(joint, within):
    hand = Hand()
    assert hand.call(WITHIN_LIMITS, joint, *HOME[1:])
    assert hand.outputs.get("output_int_register_1") == within


def test_new_move_replaces_an_asynchronous_one():
    hand = Hand()
    assert hand.call(MOVE_J, *(np.array(HOME) + 3.0), 1.0, 5.0, ints=(1,))
    hand.cycles(100)
    assert hand.call(MOVE_J, *HOME, 1.0, 5.0, ints=(0,))
    np.testing.assert_allclose(hand.q, HOME, atol=1e-12)


@pytest.mark.parametrize("command", [GET_JOINT_TORQUES, GET_POSE])
def test_a_command_that_is_not_simulated_ends_the_program_and_holds_no_number(command, caplog):
    hand = Hand()
    hand.cycles(1)

    def answers():
        return [hand.outputs.get(f"output_double_register_{number}") for number in range(6)]

    assert np.isnan(answers()).all() and hand.outputs.get("output_int_register_1") == -1
    assert hand.call(WITHIN_LIMITS, *HOME)
    assert hand.outputs.get("output_int_register_1") == 1
    hand.write(command)
    hand.cycles(1)
    assert np.isnan(answers()).all() and hand.outputs.get("output_int_register_1") == -1
    assert hand.machine.runtime is not RuntimeState.PLAYING and hand.state != DONE
    assert f"command {command} of ur_rtde is not simulated by the twin" in caplog.text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 1e200, 2e6])
@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_registers_that_hold_no_or_a_huge_number_never_end_the_controller(command, value):
    hand = Hand()
    hand.write(command, *[value] * 20)
    hand.cycles(3)
    hand.write(0)
    hand.until(lambda: hand.still)
    write_outputs(hand.machine)
    assert np.isfinite(hand.q).all() and np.allclose(hand.q, HOME, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_numbers_of_any_size_never_end_the_controller(seed):
    generator = np.random.default_rng(seed)
    hand = Hand()
    for _ in range(300):
        numbers = 10.0 ** generator.uniform(-308, 308, 20) * generator.choice([-1.0, 0.0, 1.0], 20)
        few = generator.random(20) < 0.9
        hand.write(int(generator.choice(list(COMMANDS))), *np.where(few, generator.normal(0.0, 1.0, 20), numbers))
        hand.cycles(int(generator.integers(1, 5)))
        write_outputs(hand.machine)
        hand.write(0)
        hand.cycles(1)
        if hand.machine.runtime is RuntimeState.STOPPED:
            hand.machine.clock_s += 10.0
            hand.machine.unlock()
            hand.machine.run()
    assert np.isfinite(hand.q).all() and np.abs(hand.q).max() <= 2 * np.pi


@pytest.mark.parametrize("seed", range(5))
def test_random_registers_never_end_the_controller(seed):
    generator = np.random.default_rng(seed)
    hand = Hand()
    for _ in range(300):
        command = int(generator.choice([0, *COMMANDS, *COMMANDS, *COMMANDS, 77, 254, 255, -1, 2**31 - 1]))
        hand.write(command, *generator.normal(0.0, 2.0, 20), ints=generator.integers(-1, 3, 7).tolist())
        hand.cycles(int(generator.integers(1, 10)))
        if hand.machine.runtime is RuntimeState.STOPPED:
            hand.machine.clock_s += 10.0
            hand.machine.unlock()
            hand.machine.run()
    assert np.isfinite(hand.q).all() and np.abs(hand.q).max() <= 2 * np.pi
    assert np.abs(hand.speeds).max() <= np.pi + 1e-9


# --- ends of a program: always a decelerating stop --------------------------------------------------------------------


def end_by_client(hand):
    hand.write(STOP_SCRIPT)


def end_at_the_dashboard(hand):
    hand.machine.end_program("stopped at the dashboard")


def end_by_protective_stop(hand):
    hand.machine.protective_stop("a test")


def end_by_script_error(hand):
    hand.write(SERVO_L, *[9.0] * 6, 0.0, 0.0, PERIOD, 0.1, 300.0)


@pytest.mark.parametrize("end", [end_by_client, end_at_the_dashboard, end_by_protective_stop, end_by_script_error])
def test_program_end_stops_the_arm_within_its_deceleration(end):
    hand = moving(Hand(), speed=3.0)
    hand.speeds.clear()
    hand.speeds.append(hand.plant.joint_velocities)
    end(hand)
    took = hand.until(lambda: hand.still)
    assert took <= 3.0 / STOP_DECELERATION + 2 * PERIOD
    assert hand.hardest() <= STOP_DECELERATION + 1e-6
    assert (np.diff(np.array(hand.speeds)[:, 0]) <= 1e-12).all()  # it only ever becomes slower
    hand.cycles(2)
    assert hand.machine.runtime is RuntimeState.STOPPED
    rest = hand.q.copy()
    hand.cycles(500)
    np.testing.assert_array_equal(hand.q, rest)


def test_watchdog_ends_the_program_when_the_register_is_no_longer_written():
    hand = Hand()
    assert hand.call(WATCHDOG, 10.0)
    moving(hand)
    for _ in range(20):
        hand.write(0)
        hand.cycles(49)
    hand.write(0)
    assert hand.machine.runtime is RuntimeState.PLAYING
    took = hand.until(lambda: hand.machine.runtime is not RuntimeState.PLAYING)
    assert took == pytest.approx(0.1, abs=2 * PERIOD)
    hand.until(lambda: hand.still, 0.1)


def test_without_a_watchdog_a_silent_client_ends_nothing():
    hand = moving(Hand(), speed=0.1)
    hand.cycles(1000)
    assert not hand.still and hand.machine.runtime is RuntimeState.PLAYING


@pytest.mark.parametrize("frequency", [0.0, -1.0])
def test_watchdog_needs_a_frequency(frequency):
    assert not Hand().call(WATCHDOG, frequency)


# --- modes ------------------------------------------------------------------------------------------------------------


def test_protective_stop_latches_until_it_is_unlocked_and_a_new_program_runs():
    hand = Hand(unlock_delay_s=0.5)
    machine = hand.machine
    machine.protective_stop("the first reason")
    machine.protective_stop("another")
    assert machine.safety_mode is SafetyMode.PROTECTIVE_STOP and machine.stop_reason == "the first reason"
    hand.cycles(200)
    assert not machine.unlock()
    machine.run()
    assert machine.runtime is RuntimeState.STOPPED
    hand.cycles(60)
    assert machine.unlock()
    assert SAFETY_BITS[machine.safety_mode] == 1 and machine.runtime is RuntimeState.STOPPED
    machine.run()
    hand.write(0)
    assert hand.call(MOVE_J, *HOME, 1.0, 5.0, ints=(0,))


def test_power_goes_off_and_comes_back_in_order():
    hand = moving(Hand())
    machine = hand.machine
    machine.power_off()
    hand.cycles(1)
    assert hand.still and machine.runtime is RuntimeState.STOPPED
    assert (machine.robot_mode, machine.status_bits) == (RobotMode.POWER_OFF, 0)
    machine.brake_release()
    seen = []
    hand.until(lambda: seen.append(machine.robot_mode) or machine.robot_mode is RobotMode.RUNNING)
    order = [RobotMode.BOOTING, RobotMode.POWER_ON, RobotMode.IDLE, RobotMode.RUNNING]
    assert sorted(set(seen), key=seen.index) == order
    machine.run()
    assert machine.status_bits == 3


def test_emergency_stop_cuts_the_power_until_it_is_released():
    hand = moving(Hand())
    machine = hand.machine
    machine.emergency_stop()
    hand.cycles(1)
    assert hand.still and SAFETY_BITS[machine.safety_mode] == 1 << 6 | 1 << 7 | 1 << 10
    machine.power_on()
    hand.cycles(500)
    assert machine.robot_mode is RobotMode.POWER_OFF
    machine.release_emergency_stop()
    machine.brake_release()
    hand.until(lambda: machine.ready)


class Blocked(KinematicPlant):
    """An arm that something holds back."""

    def step(self, target_q, target_qd, dt):
        super().step(np.minimum(target_q, [0.2, *[9.0] * 5]), target_qd, dt)


def test_arm_that_leaves_its_path_is_stopped():
    hand = Hand(plant=Blocked(HOME))
    hand.write(MOVE_J, 2.0, *HOME[1:], 1.0, 20.0, ints=(1,))
    hand.until(lambda: hand.machine.safety_mode is SafetyMode.PROTECTIVE_STOP, 5.0)
    assert "joint 1 is 0.3" in hand.machine.stop_reason and "off its path" in hand.machine.stop_reason
    np.testing.assert_allclose(hand.machine.robot.q, hand.q, atol=0.01)
    assert DEVIATION_LIMIT == 0.3


def test_arm_with_mass_follows_and_is_stopped_where_its_motors_are_too_weak():
    # The plant knows its own model exactly, so that a free arm follows says nothing of how well a real one does.
    hand = Hand(plant=standing_arm(HOME))
    target = np.array(HOME) + 0.5
    assert hand.call(MOVE_J, *target, 3.0, 10.0, ints=(0,))
    np.testing.assert_allclose(hand.q, target, atol=1e-6)
    assert np.abs(hand.plant.joint_torques).max() > 6.0  # it carries its weight
    hand.plant._limits[:] = 1.0  # N m
    hand.until(lambda: hand.machine.safety_mode is SafetyMode.PROTECTIVE_STOP, 5.0)
    assert "off its path" in hand.machine.stop_reason


def test_outputs_agree_with_each_other():
    hand = moving(Hand(), speed=0.2)
    hand.machine.robot.tcp = (0.0, 0.0, 0.1, 0.0, 0.0, 0.0)
    hand.cycles(1)
    write_outputs(hand.machine)
    values, places = hand.outputs.values, hand.outputs.places
    for way in ("actual", "target"):
        expected = UR5E.forward(values[places[f"{way}_q"]], hand.machine.robot.tcp)
        np.testing.assert_allclose(values[places[f"{way}_TCP_pose"]], expected, atol=1e-12)
    np.testing.assert_array_equal(values[places["actual_qd"]], hand.plant.joint_velocities)
    assert hand.outputs.get("runtime_state") == 2 and hand.outputs.get("timestamp") == hand.machine.clock_s


# --- configuration, thread, command line ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"address": "localhost"}, "address is 'localhost'; valid is an IPv4 address"),
        ({"generation": "ur10"}, "generation is 'ur10'; valid are e-series, cb3"),
        ({"version": (5, 11)}, r"version is \(5, 11\); valid are four numbers"),
        ({"version": (5, 11, -1, 0)}, "valid are four numbers"),
        ({"unlock_delay_s": -1.0}, "unlock_delay_s is -1.0 s; valid is 0.0 to 60.0"),
        ({"unlock_delay_s": float("nan")}, "unlock_delay_s is nan"),
    ],
)
def test_impossible_configuration_is_one_sentence(values, message):
    with pytest.raises(ArmError, match=message):
        UrControllerConfig(**values)


def test_rate_and_version_follow_the_generation():
    assert (UrControllerConfig().rate, UrControllerConfig().version[0]) == (500, 5)
    assert (UrControllerConfig(generation="cb3").rate, UrControllerConfig(generation="cb3").version[0]) == (125, 3)
    assert UrControllerConfig(version=(9, 0, 0, 0)).version == (9, 0, 0, 0)


def test_twin_that_does_not_run_says_so():
    twin = UrController(UrControllerConfig(free_address()), KinematicPlant(HOME))
    with pytest.raises(ArmError, match="does not run; start it first"):
        twin.loop.call(lambda: twin.machine.protective_stop("a test"))
    twin.start()
    assert twin.loop.call(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        twin.loop.call(lambda: 1 // 0)
    twin.stop()
    twin.stop()
    with pytest.raises(ArmError, match="does not run"):
        twin.loop.call(twin.machine.power_off)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_failing_plant_ends_the_twin_with_its_reason_and_closes_its_connections():
    class Broken(KinematicPlant):
        def step(self, target_q, target_qd, dt):
            raise FloatingPointError("the physics has exploded")

    twin = UrController(UrControllerConfig(free_address()), Broken(HOME))
    twin.start()
    with pytest.raises(ArmError, match="the UR twin has ended: the physics has exploded"):
        while True:
            twin.loop.call(twin.machine.power_off)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((twin.hostname, RTDE_PORT), timeout=3.0)
    twin.stop()


def test_statistics_count_cycles_in_real_time():
    twin = UrController(UrControllerConfig(free_address()), KinematicPlant(HOME))
    twin.start()
    wait_until(lambda: twin.statistics()["cycles"] > 300)
    statistics = twin.statistics()
    twin.stop()
    assert 0.3 < statistics["real_time_factor"] < 1.02
    assert 0.0 < statistics["cycle_ms"] < 2.0 and statistics["clients"] == 0


def test_command_line_obeys_the_pendant():
    twin = TwinProcess("--no-physics")
    try:
        assert twin.pendant("protective stop the table") == "ok"
        assert "protective stop: the table" in twin.log()
        assert twin.pendant("dance").startswith("unknown command 'dance'; valid are protective stop, emergency stop")
        assert "real_time_factor" in twin.pendant("statistics")
    finally:
        twin.close()


def test_command_line_names_a_taken_address():
    twin = TwinProcess("--no-physics")
    try:
        command = [sys.executable, "-m", "bid_ros.robots.ur.twin", "--no-physics", "--address", twin.address]
        second = subprocess.run(command, capture_output=True, text=True, timeout=30.0)
        assert second.returncode == 1 and f"cannot serve RTDE on {twin.address}" in second.stderr
    finally:
        twin.close()
