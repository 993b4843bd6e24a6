"""The Robotiq 2F-85: the client against its twin over sockets, and what bad gripper or network do to it."""

import contextlib
import socket
import threading

import numpy as np
import pytest
from real_time import wait_until
from robots.kinematic_fingers import GripperServer, KinematicFingers
from robots.tcp_proxy import DOWN, Network, corrupt
from ur_twin import free_address

from bid_ros.core.errors import ArmError
from bid_ros.robots.gripper import GripperThread, GripperThresholds
from bid_ros.robots.robotiq.driver import RobotiqConfig, RobotiqGripper
from bid_ros.robots.robotiq.registers import CLOSED_REGISTER, MAX_OPENING, OPEN_REGISTER, PORT
from bid_ros.robots.robotiq.twin import MOVING, RobotiqTwin
from bid_ros.robots.ur.twin.config import UrControllerConfig
from bid_ros.robots.ur.twin.controller import UrController
from bid_ros.robots.ur.twin.plant import KinematicPlant


@pytest.fixture
def rig():
    """A gripper that was never activated, with fingers that the test may block."""
    address, fingers = free_address(), KinematicFingers()
    twin = GripperServer(address, fingers)
    gripper = RobotiqGripper(RobotiqConfig(), address)
    yield gripper, fingers, twin, address
    gripper.close()
    twin.stop()


def test_connecting_moves_nothing_and_the_first_command_activates(rig):
    gripper, fingers, _, _ = rig
    assert gripper.width() == pytest.approx(MAX_OPENING, abs=1e-3)
    assert gripper.get("STA") == 0
    wait_until(gripper.begin_close(), 5.0)
    assert gripper.get("STA") == 3
    assert fingers.opening == 0.0
    assert gripper.width() == 0.0
    wait_until(gripper.begin_open(), 5.0)
    assert gripper.width() == pytest.approx(MAX_OPENING, abs=1e-3)


def test_closing_holds_an_object_of_any_size(rig):
    gripper, fingers, _, _ = rig
    fingers.object_width = 0.04
    wait_until(gripper.begin_close(), 5.0)
    assert gripper.get("OBJ") == 2
    assert gripper.width() == pytest.approx(0.04, abs=4e-4)


def test_speed_and_force_reach_the_gripper(rig):
    _, fingers, _, address = rig
    asked = []
    fingers.command = lambda opening, speed, force: asked.append((opening, speed, force))
    slow = RobotiqGripper(RobotiqConfig(speed=0.085, force=100.0, open_width=0.05), address)
    slow.begin_open()
    slow.close()
    assert asked[0] == pytest.approx((0.05, 0.085, 100.0), abs=0.5)
    assert asked[0][:2] == pytest.approx((0.05, 0.085), abs=4e-4)


def test_a_command_that_takes_too_long_ends_without_success(rig):
    _, _, _, address = rig
    gripper = RobotiqGripper(RobotiqConfig(speed=0.02, move_timeout_s=1.0), address)
    command = gripper.begin_close()
    assert not command()
    wait_until(command, 2.0)
    assert gripper.get("OBJ") == MOVING
    gripper.close()


@pytest.mark.parametrize("width", np.linspace(0.0, MAX_OPENING, 7))
def test_widths_and_registers_are_each_others_inverse(width):
    config = RobotiqConfig(open_register=10, closed_register=210)
    assert config.width(config.register(width)) == pytest.approx(width, abs=0.5 * MAX_OPENING / 200)
    assert (config.register(1.0), config.register(-1.0)) == (10, 210)
    assert (config.width(0), config.width(255)) == (MAX_OPENING, 0.0)


def test_it_works_as_the_gripper_of_an_arm(rig):
    gripper, fingers, _, _ = rig
    errors = []
    thread = GripperThread(gripper, GripperThresholds(0.045, 0.06), (ArmError,), errors.append)
    thread.start()
    fingers.object_width = 0.03
    thread.request(0.0)
    wait_until(lambda: thread.width < 0.031 and not thread.busy)
    thread.request(0.08)
    wait_until(lambda: thread.width > 0.084 and not thread.busy)
    thread.stop()
    assert errors == []


def test_a_gripper_that_goes_away_is_one_sentence(rig):
    gripper, _, twin, address = rig
    errors = []
    thread = GripperThread(gripper, GripperThresholds(0.045, 0.06), (ArmError,), errors.append)
    thread.start()
    twin.stop()
    gripper._socket.shutdown(socket.SHUT_RDWR)
    wait_until(lambda: errors)
    assert str(errors[0]).startswith(f"gripper at {address}:{PORT}: ")
    assert "check its cable and power" in str(errors[0])
    thread.stop()


def test_where_nothing_listens_is_one_sentence():
    address = free_address()
    with pytest.raises(
        ArmError, match=rf"gripper at {address}:{PORT}: Connection refused: check that the gripper's URCap"
    ):
        RobotiqGripper(RobotiqConfig(), address)


def test_damaged_answers_are_refused(rig):
    _, _, _, address = rig
    network = Network(free_address(), address, (PORT,))
    gripper = RobotiqGripper(RobotiqConfig(timeout_s=0.3), network.address)
    network.damage(DOWN, corrupt, PORT)
    with pytest.raises(ArmError, match=f"gripper at {network.address}"):
        gripper.width()
    gripper.close()
    network.close()


class Scripted:
    """A gripper that gives the same answers to everybody, byte by byte if asked to."""

    def __init__(self, answers, slowly=False):
        self.address, self._answers, self._slowly = free_address(), answers, slowly
        self._server = socket.create_server((self.address, PORT))
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        self._server.close()

    def _serve(self):
        client, _ = self._server.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):
            while data := client.recv(1000):
                answer = self._answers.get(data.decode().split("\n")[0], b"")
                for part in [answer[i : i + 1] for i in range(len(answer))] if self._slowly else [answer]:
                    client.sendall(part)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "no answer in time after GET POS"),
        (b"POS ?\n", "has no value of POS: check its power and the robot's emergency stop"),
        (b"POS 999\n", "has no value of POS"),
        (b"ACT 1\n", "answered 'ACT 1' to GET POS; valid is 'POS 0' to 'POS 255'"),
        (b"\xff\xfe\n", "to GET POS; valid is"),
        (b"x" * 1000, "to GET POS; valid is"),
    ],
)
def test_answers_that_are_none_are_one_sentence(answer, said):
    server = Scripted({"GET POS": answer})
    gripper = RobotiqGripper(RobotiqConfig(timeout_s=0.2), server.address)
    with pytest.raises(ArmError) as caught:
        gripper.width()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    gripper.close()
    server.close()


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_answers_may_come_in_pieces_and_without_end_of_line(end):
    server = Scripted({"GET POS": b"POS 123" + end, "SET GTO 1": b"ack" + end}, slowly=True)
    gripper = RobotiqGripper(RobotiqConfig(), server.address)
    for _ in range(3):
        assert gripper.get("POS") == 123
        gripper.set(GTO=1)
    gripper.close()
    server.close()


@pytest.mark.parametrize(("fault", "said"), [(8, "too hot"), (13, "the activation failed"), (3, "unknown")])
def test_a_fault_of_the_gripper_is_named(fault, said):
    answers = dict.fromkeys(("SET ACT 0", "SET ACT 1"), b"ack")
    server = Scripted({**answers, "GET STA": b"STA 3\n", "GET FLT": f"FLT {fault}\n".encode()})
    gripper = RobotiqGripper(RobotiqConfig(), server.address)
    with pytest.raises(ArmError, match=f"reports fault {fault}: .*{said}"):
        gripper.check()
    gripper.close()
    server.close()


def test_a_gripper_after_an_emergency_stop_is_one_sentence_and_the_next_connection_activates_it(rig):
    gripper, fingers, twin, address = rig
    fingers.object_width = 0.04
    wait_until(gripper.begin_close(), 5.0)
    twin.gripper.emergency_stop()
    assert (gripper.get("STA"), gripper.get("FLT")) == (3, 5)
    command = gripper.begin_open()
    with pytest.raises(ArmError, match=r"does not move since an emergency stop \(fault 5\): take out .* then reset"):
        wait_until(command)
    assert gripper.width() == pytest.approx(0.04, abs=4e-4), "what it holds is not dropped"
    after = RobotiqGripper(RobotiqConfig(), address)
    assert after.get("FLT") == 5, "connecting changes nothing"
    wait_until(after.begin_open(), 5.0)
    assert after.width() > 0.084 and after.get("FLT") == 0
    after.close()


def test_an_activation_that_does_not_end_is_one_sentence():
    answers = dict.fromkeys(("SET ACT 0", "SET ACT 1"), b"ack")
    server = Scripted({**answers, "GET STA": b"STA 0\n"})
    gripper = RobotiqGripper(RobotiqConfig(activation_timeout_s=1.0), server.address)
    with pytest.raises(ArmError, match="was not activated within 1 s: check what blocks its fingers"):
        gripper.begin_open()
    gripper.close()
    server.close()


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"speed": 0.5}, r"robotiq: speed is 0\.5; valid is a number from 0\.02 to 0\.15"),
        ({"force": 5.0}, r"force is 5\.0; valid is a number from 20 to 235"),
        ({"closed_register": 300}, "valid is a whole number from 150 to 255"),
        ({"open_width": float("nan")}, "open_width is nan"),
    ],
)
def test_impossible_configurations_are_refused(parts, said):
    with pytest.raises(ArmError, match=said):
        RobotiqConfig(**parts)


@pytest.mark.parametrize(
    ("request_line", "answer"),
    [
        ("GET POS", f"POS {OPEN_REGISTER}\n"),
        ("GET FLT", "FLT 7\n"),
        ("GET XYZ", "?"),
        ("GET", "?"),
        ("SET POS", "?"),
        ("SET POS 256", "?"),
        ("SET POS -1", "?"),
        ("SET STA 3", "?"),
        ("SET POS 10 SPE 20 FOR 30", "ack"),
        ("", "?"),
        ("\x00\xff", "?"),
    ],
)
def test_the_twin_answers_as_the_gripper_words_it(request_line, answer):
    assert RobotiqTwin(KinematicFingers()).answer(request_line) == answer


def test_the_twin_moves_only_when_it_is_active_and_told_to_go():
    fingers = KinematicFingers()
    twin = RobotiqTwin(fingers)
    twin.answer(f"SET POS {CLOSED_REGISTER} GTO 1")
    assert fingers.status == 3
    twin.answer("SET ACT 1")
    wait_until(lambda: twin.answer("GET STA") == "STA 3\n")
    twin.answer(f"SET POS {CLOSED_REGISTER} GTO 1 SPE 255")
    wait_until(lambda: fingers.opening == 0.0)
    wait_until(lambda: twin.answer("GET OBJ") == "OBJ 3\n")


@pytest.mark.parametrize("seed", range(3))
def test_random_bytes_neither_stop_nor_move_the_twin(rig, seed):
    gripper, fingers, _, address = rig
    random = np.random.default_rng(seed)
    for _ in range(40):
        with socket.create_connection((address, PORT), 1.0) as client:
            client.sendall(random.bytes(int(random.integers(1, 2000))) + b"\n")
    assert gripper.get("ACT") == 0
    assert fingers.status == 3


@pytest.mark.parametrize("seed", range(4))
def test_answers_of_any_bytes_are_an_opening_or_one_sentence(seed):
    random = np.random.default_rng(seed)
    heads = [b"", b"POS ", b"POS 12", b"POS -1\n", b"POS 999\n", b"STA 3\n", b"ack", b"POS 7\nPOS 8\n"]

    def babble(server):
        with contextlib.suppress(OSError):  # of the server, when the test is over
            while True:
                client, _ = server.accept()
                with contextlib.suppress(OSError):
                    while client.recv(100):
                        noise = random.bytes(int(random.integers(0, 120)))
                        client.sendall(heads[int(random.integers(len(heads)))] + noise + random.choice([b"", b"\n"]))

    address = free_address()
    with socket.create_server((address, PORT)) as server:
        threading.Thread(target=babble, args=(server,), daemon=True).start()
        refused = 0
        for _ in range(15):
            gripper = RobotiqGripper(RobotiqConfig(timeout_s=0.1), address)
            for ask in (gripper.width, gripper.begin_open, gripper.check):
                try:
                    answer = ask()
                    assert ask != gripper.width or 0.0 <= answer <= MAX_OPENING
                except ArmError as error:
                    refused += 1
                    assert str(error).startswith(f"gripper at {address}:{PORT}")
                    assert "\n" not in str(error)
            gripper.close()
        assert refused > 15


def test_a_port_that_is_taken_is_one_sentence(rig):
    _, _, _, address = rig
    with pytest.raises(ArmError, match=f"the twin cannot serve gripper on {address}:{PORT}"):
        GripperServer(address, KinematicFingers())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_gripper_whose_controller_stopped_ends_its_connections():
    class Broken(KinematicPlant):
        broken = False

        def step(self, target_q, target_qd, dt):
            if self.broken:
                raise FloatingPointError("the physics has exploded")

    address, plant = free_address(), Broken([0.0] * 6)
    twin = UrController(UrControllerConfig(address), plant, gripper=RobotiqTwin(KinematicFingers()))
    twin.start()
    try:
        with socket.create_connection((address, PORT), timeout=3.0) as client:
            client.sendall(b"GET POS\n")
            assert client.recv(64) == f"POS {OPEN_REGISTER}\n".encode()
            plant.broken = True
            assert client.recv(64) == b""
    finally:
        twin.stop()
