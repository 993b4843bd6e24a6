"""What only a UR does over sockets: its rate, its Dashboard, its gripper, and the process that drives it."""

import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import numpy as np
import pytest
from real_time import HoldUps, wait_until
from robots.conftest import running
from robots.ur_sweep import OF_TWIN, at_rest, stream, ur
from ur_twin import free_address

from bid_ros.control.setpoint import Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.robots.base import Dynamics
from bid_ros.robots.protocol import DriverRequest
from bid_ros.robots.robotiq.driver import RobotiqConfig
from bid_ros.robots.ur.twin.pendant import INITIAL_Q

ZERO = np.zeros(3)


@pytest.fixture(scope="module")
def robot(module_servers):
    return module_servers("ur_server.py", "e-series")


@pytest.fixture
def arm(robot):
    built = ur(robot.address)
    built.connect()
    built.move_to_joints(INITIAL_Q, Dynamics(1.0, 1.0, 1.0))
    yield built
    built.close()


def periods(arm, tries=3):
    """Connect, stream for 1 s, return the statistics and close. Where the computer held up this thread, do it again."""
    gaps: list[float] = []
    with closing(arm):
        arm.connect()
        arm.start()
        try:
            stream(arm, [0.0, 0.05, 0.0], 1.0, gaps=gaps)
            return arm.statistics()
        except ArmError:
            if tries == 1 or max(gaps) < OF_TWIN["silence_timeout_s"]:
                raise
    return periods(arm, tries - 1)


@pytest.mark.parametrize("rate", [125, 500])
def test_set_points_go_out_at_the_robots_rate(robot, rate):
    arm = ur(robot.address, rate_hz=rate)
    statistics = periods(arm)
    assert statistics.nominal_ms == 1000 / rate
    assert statistics.count + statistics.skipped == pytest.approx(rate, rel=0.2)
    assert statistics.p50_ms == pytest.approx(statistics.nominal_ms, abs=0.5)
    assert statistics.p50_ms <= statistics.p99_ms <= statistics.max_ms
    # Within a period where the robot's cycle follows the stream's closely, by chance.
    assert 0.0 < statistics.longest_echo_ms < 1000.0
    with pytest.raises(ArmError, match="not connected"):
        arm.statistics()


def test_an_emergency_stop_and_the_power_stay_the_work_of_a_person_at_the_robot(own_servers):
    robot = own_servers("ur_server.py", "e-series")
    arm = ur(robot.address)
    arm.connect()
    arm.start()
    stream(arm, [0.0, 0.1, 0.0], 0.4)
    assert robot.ask("emergency stop") == "ok"
    with pytest.raises(ArmError, match="is in an emergency stop"):
        stream(arm, [0.0, 0.1, 0.0], 1.0)
    wait_until(lambda: at_rest(arm), 0.5, "rest")
    with pytest.raises(ArmError, match="EMERGENCY_STOP: clear that at the robot"):
        arm.recover()
    assert robot.ask("release emergency stop") == "ok"
    with pytest.raises(ArmError, match="POWER_OFF: switch it on and release its brakes"):
        arm.recover()
    assert "POWER_OFF" in arm.state().fault
    # Only a recovery, which a person asked for, clears what made the last one fail.
    with pytest.raises(ArmError, match=r"POWER_OFF: .*; recover first"):
        arm.connect()
    arm.close()
    with pytest.raises(ArmError, match="POWER_OFF"):
        arm.connect()


def dashboard(address, command):
    with socket.create_connection((address, 29999), 2.0) as connection:
        connection.recv(1000)
        connection.sendall(command.encode() + b"\n")
        return connection.recv(1000).decode().strip()


def test_local_mode_is_named_at_connecting_and_when_the_program_was_stopped(own_servers):
    robot = own_servers("ur_server.py", "e-series")
    arm = ur(robot.address)
    assert robot.ask("local") == "ok"
    with pytest.raises(ArmError, match="is in local mode: switch it to remote control"):
        arm.connect()
    assert robot.ask("remote") == "ok"
    arm.connect()
    arm.start()
    stream(arm, [0.0, 0.1, 0.0], 0.4)
    assert robot.ask("local") == "ok"
    assert robot.ask("stop program") == "ok"
    with pytest.raises(ArmError, match="stopped our program: look at the pendant, whether it is in local mode"):
        stream(arm, [0.0, 0.1, 0.0], 1.0)
    wait_until(lambda: at_rest(arm), 0.5, "rest")
    with pytest.raises(ArmError, match="is in local mode"):
        arm.recover()
    assert "is in local mode" in arm.state().fault
    arm.close()


def test_a_robot_that_another_client_drives_is_left_to_it(arm, robot):
    second = ur(robot.address)
    with pytest.raises(ArmError, match="runs another program: stop that on the pendant first"):
        second.connect()
    arm.start()
    stream(arm, [0.0, 0.05, 0.0], 0.3)
    assert arm.state().fault == ""


def test_a_program_that_is_left_over_is_ended_by_a_recovery(arm, robot, newest_arm_pid):
    os.kill(newest_arm_pid(), signal.SIGKILL)
    wait_until(lambda: arm.state().fault, 1.0, "the fault")
    assert "was ended by signal 9" in arm.state().fault
    arm.recover()
    arm.start()
    stream(arm, [0.0, 0.05, 0.0], 0.2)
    assert arm.state().in_control


@pytest.mark.parametrize("version", ["6.1.0.0", "5.3.0.0", "3.9.0.0", "0.0.0.0"])
def test_a_controller_of_an_unknown_version_is_refused(own_servers, version):
    robot = own_servers("ur_server.py", "e-series", version)
    with pytest.raises(ArmError, match=r"has the software '.*'; valid are 3\.10 and later 3\.x \(CB3\) and 5\.4"):
        ur(robot.address).connect()


def test_a_cb3_does_not_take_500_hz(own_servers):
    robot = own_servers("ur_server.py", "cb3")
    with pytest.raises(ArmError, match="is a CB3: rate_hz is 500; valid are 0 and 125"):
        ur(robot.address, rate_hz=500).connect()


@pytest.mark.parametrize("parts", [{"model": "ur5"}, {"tool_offset": (0.0, 0.0, 0.2), "model": "ur5"}])
def test_a_wrong_model_is_found_at_connecting(robot, parts):
    with pytest.raises(
        ArmError, match=r"its tool \d+ mm and \d\.\d+ rad from where a ur5 would have it: check `model`"
    ):
        ur(robot.address, **parts).connect()


def test_the_tool_frame_is_set_on_the_robot(robot):
    plain, long = ur(robot.address), ur(robot.address, tool_offset=(0.0, 0.0, 0.17))
    places = []
    for arm in (plain, long):
        arm.connect()
        places.append(arm.state().tool_position)
        arm.close()
    assert np.linalg.norm(places[1] - places[0]) == pytest.approx(0.17, abs=1e-4)


@pytest.mark.parametrize(("joint", "value"), [(1, 7.0), (3, -1.0), (6, 2.0)])
def test_joint_targets_outside_the_limits_are_refused_and_nothing_moves(robot, joint, value):
    low, high = [-6.28] * 6, [6.28] * 6
    low[2], high[5] = -0.5, 1.5
    arm = ur(robot.address, joint_min=tuple(low), joint_max=tuple(high))
    arm.connect()
    before = arm.state().joint_positions
    target = before.copy()
    target[joint - 1] = value
    with pytest.raises(ArmError, match=f"joint {joint} of the robot at .* would be at {value:.3f} rad; valid is"):
        arm.move_to_joints(target)
    assert np.array_equal(arm.state().joint_positions, before)
    assert arm.state().fault == ""
    arm.close()


OWNER = "ur/owner.py"


def test_an_owner_that_is_killed_leaves_no_motion_no_program_and_no_process(own_servers, owners):
    robot = own_servers("ur_server.py", "e-series")
    owner = owners(OWNER, robot.address)
    assert owner.line() == "moving"
    event = time.monotonic_ns()
    owner.close()
    wait_until(lambda: dashboard(robot.address, "running") == "Program running: false", 2.0, "the end of the program")
    moved = (int(robot.ask("last motion")) - event) / 1e6
    assert -100 < moved < 500, f"moved {moved:.0f} ms after its owner was killed"
    wait_until(lambda: "'clients': 0" in robot.ask("statistics"), 2.0, "the process to leave the robot")


class Garbage:
    """Ports of a robot whose Dashboard is in order, and whose RTDE answers random bytes, or nothing without a seed."""

    def __init__(self, address, seed=None):
        self._random = None if seed is None else np.random.default_rng(seed)
        self.asked = threading.Event()
        self._ports = ExitStack()
        for port in (29999, 30004):
            server = self._ports.enter_context(socket.create_server((address, port)))
            threading.Thread(target=self._serve, args=(server, port), daemon=True).start()

    def close(self):
        self._ports.close()

    def _serve(self, server, port):
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=self._speak, args=(client, port), daemon=True).start()

    def _speak(self, client, port):
        answers = {
            "PolyscopeVersion": "URSoftware 5.11.0.108249",
            "is in remote control": "true",
            "running": "Program running: false",
            "robotmode": "Robotmode: RUNNING",
            "safetymode": "Safetymode: NORMAL",
            "get serial number": "20195500001",
        }
        try:
            if port == 29999:
                client.sendall(b"Connected\n")
            while data := client.recv(4096):
                if port == 29999:
                    client.sendall(answers.get(data.decode().strip(), "?").encode() + b"\n")
                    continue
                self.asked.set()
                if self._random is not None:
                    client.sendall(self._random.bytes(int(self._random.integers(1, 200))))
        except OSError:
            pass


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 6), marks=pytest.mark.long)])
def test_garbage_from_the_robots_port_is_one_sentence_and_no_crash(seeds):
    """Three robots at once, each with garbage of its own, as each connection waits long."""

    def said(seed):
        address = free_address()
        with HoldUps() as since, closing(Garbage(address, seed)):
            with pytest.raises(ArmError, match=f"robot at {address}") as caught:
                ur(address, connect_timeout_s=2.0).connect()
            assert since.seconds() < 4.0
        return str(caught.value)

    with ThreadPoolExecutor(len(seeds)) as threads:
        assert not [words for words in threads.map(said, seeds) if "\n" in words]


def test_an_owner_that_is_killed_while_it_connects_leaves_no_process(owners):
    """ur_rtde waits for ever for a robot that says nothing, and no Python runs meanwhile."""
    address = free_address()
    ports = Garbage(address)
    owner = owners(OWNER, address, "robot")
    assert ports.asked.wait(10.0)
    child = owner.child()
    assert running(child)
    owner.close()
    wait_until(lambda: not running(child), 7.0, "the end of the process")
    ports.close()


def test_a_process_that_does_not_answer_is_ended(arm, newest_arm_pid):
    pid = newest_arm_pid()
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(ArmError, match="does not answer; reset to start it again"):
        arm.statistics()
    assert "does not answer" in arm.state().fault
    # Else its late answer would be taken for another one's.
    wait_until(lambda: not running(pid), 2.0, "the end of the process")
    arm.recover()
    arm.start()
    assert arm.state().in_control


def test_closing_ends_a_joint_motion_of_another_thread(robot):
    arm = ur(robot.address)
    arm.connect()
    goal = arm.state().joint_positions + np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    errors = []

    def home():
        try:
            arm.move_to_joints(goal, Dynamics(0.05, 0.1, 0.1))
        except ArmError as error:
            errors.append(str(error))

    thread = threading.Thread(target=home)
    thread.start()
    wait_until(lambda: not at_rest(arm), 2.0, "the motion to begin")
    with HoldUps() as since:
        arm.close()
        assert since.seconds() < 3.0, "the motion itself would take six seconds"
    thread.join(1.0)
    assert "it was stopped" in errors[0]
    with pytest.raises(ArmError, match="not connected"):
        arm.state()


def test_a_gripper_that_is_off_leaves_nothing_connected(robot):
    def refuse(server):
        client, _ = server.accept()
        while client.recv(100):
            client.sendall(b"POS ?\n")

    address = free_address()
    with socket.create_server((address, 63352)) as server:
        threading.Thread(target=refuse, args=(server,), daemon=True).start()
        arm = ur(robot.address, gripper=RobotiqConfig(address))
        with pytest.raises(ArmError, match="has no value of POS: check its power"):
            arm.connect()
    with pytest.raises(ArmError, match="has no connected gripper"):
        arm.command_gripper(0.05)
    with pytest.raises(ArmError, match="not connected"):
        arm.state()
    assert dashboard(robot.address, "running") == "Program running: false"


def test_a_gripper_that_is_lost_during_a_recovery_stays_a_fault_until_the_next_connection(robot):
    arm = ur(robot.address, gripper=RobotiqConfig())
    arm.connect()
    arm.start()
    with pytest.raises(ArmError, match="no inverse kinematics solution"):
        arm.command(Setpoint(np.array([2.0, 0.0, 0.5]), arm.state().tool_quaternion, ZERO, ZERO))
    link, hand, ask = arm._link, arm._hand, arm._link.ask

    def lost_meanwhile(name, *arguments, **options):
        if name is DriverRequest.CLEAR:
            hand._report_lost(ArmError("gripper lost"))
        return ask(name, *arguments, **options)

    link.ask = lost_meanwhile
    arm.recover()
    assert arm._hand is not hand and arm._link is not link, "a gripper that is lost needs a new connection"
    assert arm.state().fault == ""
    arm.close()
