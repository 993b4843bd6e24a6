"""The Robotiq twin's registers, as the gripper's manual describes them."""

import socket
import time

import pytest
from robots.kinematic_fingers import GripperServer, KinematicFingers
from ur_twin import free_address

from bid_ros.robots.robotiq import twin as robotiq_twin
from bid_ros.robots.robotiq.registers import CLOSED_REGISTER, MAX_OPENING, OPEN_REGISTER, PORT
from bid_ros.robots.robotiq.twin import MOVING, RobotiqTwin
from bid_ros.sim.net import MAX_CLIENTS

ACTIVATING, ACTIVE = 1, 3


class Gripper:
    """A twin without a socket, and its fingers."""

    def __init__(self, object_width=0.0):
        self.fingers = KinematicFingers(object_width=object_width)
        self.twin = RobotiqTwin(self.fingers)

    def get(self, name):
        answer = self.twin.answer(f"GET {name}")
        assert answer.startswith(f"{name} ")
        return int(answer.split()[1])

    def set(self, request):
        assert self.twin.answer(f"SET {request}") == "ack"

    def until(self, name, value, limit_s=3.0):
        end = time.monotonic() + limit_s
        while self.get(name) != value:
            assert time.monotonic() < end, f"{name} is {self.get(name)} and not {value}"
            time.sleep(0.002)

    def activate(self):
        self.set("ACT 1")
        self.until("STA", ACTIVE)


@pytest.fixture
def gripper():
    return Gripper()


def test_a_request_to_an_inactive_gripper_is_never_reported_as_reached(gripper):
    gripper.set("POS 128 SPE 255 FOR 0 GTO 1")
    end = time.monotonic() + 3 * robotiq_twin.REACTION_S
    while time.monotonic() < end:
        assert (gripper.get("PRE"), gripper.get("OBJ"), gripper.get("POS")) == (0, MOVING, OPEN_REGISTER)
    assert gripper.get("FLT") == 7 and gripper.fingers.opening == MAX_OPENING


def test_a_request_during_the_activation_is_carried_out_after_it(gripper):
    gripper.set("ACT 1")
    gripper.set("POS 128 SPE 255 GTO 1")
    assert (gripper.get("STA"), gripper.get("FLT"), gripper.get("OBJ")) == (ACTIVATING, 5, MOVING)
    gripper.until("STA", ACTIVE)
    gripper.until("OBJ", 3)
    assert (gripper.get("PRE"), gripper.get("POS"), gripper.get("FLT")) == (128, 128, 0)


def test_a_request_during_the_activation_needs_no_second_request_to_begin():
    fingers, address = KinematicFingers(), free_address()
    twin = GripperServer(address, fingers)
    try:
        with socket.create_connection((address, PORT), 3.0) as client:
            client.sendall(f"SET ACT 1\nSET POS {CLOSED_REGISTER} SPE 255 GTO 1\n".encode())
            assert client.makefile("rb").read(6) == b"ackack"
            end = time.monotonic() + 3.0
            while fingers.opening > 0.0:
                assert time.monotonic() < end
                time.sleep(0.002)
    finally:
        twin.stop()


@pytest.mark.parametrize("request_line", ["GTO 0", "ACT 0"])
def test_go_and_activation_at_zero_stop_the_fingers(gripper, request_line):
    gripper.activate()
    gripper.set(f"POS {CLOSED_REGISTER} SPE 0 GTO 1")
    at = gripper.fingers.opening
    while gripper.fingers.opening == at:
        time.sleep(0.002)
    gripper.set(request_line)
    stopped = gripper.fingers.opening
    assert 0.0 < stopped < MAX_OPENING
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        assert gripper.fingers.opening == stopped and gripper.get("OBJ") == MOVING
    if request_line == "GTO 0":
        gripper.set("GTO 1 SPE 255")
        gripper.until("OBJ", 3)
        assert gripper.get("POS") == CLOSED_REGISTER


def test_a_reset_forgets_what_was_asked_for(gripper):
    gripper.activate()
    gripper.set(f"POS {CLOSED_REGISTER} SPE 0 GTO 1")
    gripper.set("ACT 0")
    stopped = gripper.fingers.opening
    assert (gripper.get("GTO"), gripper.get("STA"), gripper.get("FLT")) == (0, 0, 7)
    gripper.activate()
    assert gripper.fingers.opening == stopped


def test_a_held_object_stays_held_where_the_fingers_are_stopped():
    gripper = Gripper(object_width=0.04)
    gripper.activate()
    gripper.set(f"POS {CLOSED_REGISTER} SPE 255 GTO 1")
    gripper.until("OBJ", 2)
    gripper.set("GTO 0")
    assert gripper.fingers.opening == 0.04


@pytest.mark.parametrize(("direction", "end"), [(1, OPEN_REGISTER), (0, CLOSED_REGISTER)])
def test_the_automatic_release_moves_slowly_to_an_end_and_then_asks_for_a_reset(gripper, direction, end):
    gripper.activate()
    gripper.set(f"POS {(OPEN_REGISTER + CLOSED_REGISTER) // 2} SPE 255 GTO 1")
    gripper.until("OBJ", 3)
    gripper.set(f"ADR {direction} ATR 1")
    begin = gripper.fingers.opening
    assert (gripper.get("FLT"), gripper.get("STA")) == (11, 0)
    gripper.set(f"POS {OPEN_REGISTER} SPE 255 GTO 1")  # overridden
    start = time.monotonic()
    gripper.until("FLT", 15, 5.0)
    assert gripper.get("POS") == end
    assert time.monotonic() - start > abs(gripper.fingers.opening - begin) / 0.02 - 0.1
    gripper.set("ATR 0")
    assert gripper.get("FLT") == 15
    gripper.set("ACT 0")
    gripper.activate()
    assert gripper.get("FLT") == 0


def test_a_reset_as_the_urcap_does_it_is_understood(gripper):
    for name in ("ACT", "ATR"):
        gripper.set(f"{name} 0")
    assert (gripper.get("ACT"), gripper.get("ATR"), gripper.get("ADR"), gripper.get("STA")) == (0, 0, 0, 0)


def test_no_more_clients_are_let_in_than_there_are_places(gripper):
    address = free_address()
    twin = GripperServer(address, gripper.fingers)

    def ask(client):
        client.sendall(b"GET ACT\n")
        return client.recv(64)

    clients = []
    try:
        for _ in range(MAX_CLIENTS):
            clients.append(socket.create_connection((address, PORT), 3.0))
            assert ask(clients[-1]) == b"ACT 0\n"
        with socket.create_connection((address, PORT), 3.0) as late:
            assert late.recv(64) == b""
        assert ask(clients[0]) == b"ACT 0\n"
        clients.pop().close()

        def let_in():
            with socket.create_connection((address, PORT), 3.0) as client:
                try:
                    return ask(client) == b"ACT 0\n"
                except ConnectionError:
                    return False

        end = time.monotonic() + 3.0
        while not let_in():
            assert time.monotonic() < end
    finally:
        for client in clients:
            client.close()
        twin.stop()
