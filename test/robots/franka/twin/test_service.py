"""Who may speak to the twin, and what becomes of those who speak nonsense. In lockstep."""

import random
import socket
import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from fci_client import (
    GET_MODEL,
    HAND,
    IDLE,
    MOVE,
    MOVING,
    REFLEX,
    ROBOT,
    SET_LOAD,
    STOP_MOVE,
    TORQUE,
    RawClient,
    lockstep,
)

from bid_ros.core.errors import ArmError

HOST = "127.0.43.1"


@pytest.fixture(scope="module")
def controller():
    with lockstep(HOST) as served:
        yield served


@pytest.fixture
def client(controller):
    made = RawClient(controller)
    made.connect()
    assert made.recover() == 0
    yield made
    made.close()
    controller.cycle()
    assert not controller.robot.connected


def moving(client):
    client.move()
    client.control(5, torque=(0.5,) * 7)
    return client


def addresses():
    """Local addresses of this process's sockets, by inode."""
    found = {}
    for table in ("tcp", "udp"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            found[fields[9]] = socket.inet_ntoa(struct.pack("<I", int(fields[1].split(":")[0], 16)))
    own = set()
    for number in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            own.add(str(number.readlink()).removeprefix("socket:[").removesuffix("]"))
    return {inode: found[inode] for inode in own if inode in found}


def test_every_socket_is_on_its_loopback_address():
    before = addresses()
    with lockstep("127.0.43.2") as controller:
        client = RawClient(controller)
        client.connect()
        new = {inode: address for inode, address in addresses().items() if inode not in before}
        ours = [address for address in new.values() if address != "127.0.0.1"]
        client.close()
    assert len(ours) >= 4, "two listening, the client's connection, its datagrams"
    assert set(ours) == {"127.0.43.2"}


@pytest.mark.parametrize("address", ["0.0.0.0", "10.0.0.1", "", "localhost", "::1"])
def test_other_addresses_are_refused(address):
    with pytest.raises(ArmError, match=rf"the twin's address is '{address}'; valid are loopback addresses"):
        lockstep(address).__enter__()


def test_a_stranger_changes_nothing_with_datagrams(client):
    moving(client)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for _ in range(20):
            stranger.sendto(b"x", client.server)
            stranger.sendto(client.packet(torque=(40.0,) * 7), client.server)
            stranger.sendto(client.packet(finished=True), client.server)
            state = client.control(torque=(0.5,) * 7)
            assert state.mode == MOVING
            np.testing.assert_allclose(state.torque, 0.5)


@pytest.mark.parametrize("size", [0, 1, 100, 371, 373, 2000, 5000])
def test_a_datagram_of_another_size_is_no_command(client, size):
    moving(client)
    client.udp.sendto(random.Random(size).randbytes(size), client.server)
    state = client.control(torque=(0.5,) * 7)
    assert state.mode == MOVING
    np.testing.assert_allclose(state.torque, 0.5)


@pytest.mark.parametrize(
    "number", [lambda now: now - 1, lambda now: 0, lambda now: now + 1, lambda now: 2**63], ids=["old", "0", "1", "far"]
)
def test_a_command_that_answers_no_new_state_is_ignored(client, number):
    moving(client)
    for _ in range(3):
        now = client.state.number
        client.udp.sendto(client.packet(torque=(0.5,) * 7), client.server)
        client.udp.sendto(client.packet(torque=(30.0,) * 7, number=number(now)), client.server)
        np.testing.assert_allclose(client.wait().torque, 0.5)


def test_a_command_that_came_before_its_motion_is_ignored(client):
    client.udp.sendto(client.packet(torque=(1.0,) * 7), client.server)
    client.move()
    np.testing.assert_allclose(client.state.torque, 0.0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_command_that_is_not_finite_is_ignored(client, value):
    moving(client)
    client.udp.sendto(client.packet(torque=(0.5, value, 0.5, 0.5, 0.5, 0.5, 0.5)), client.server)
    np.testing.assert_allclose(client.wait().torque, 0.5)


@pytest.mark.parametrize("dialect", [ROBOT, HAND], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("with_client", [True, False], ids=["client", "alone"])
def test_random_bytes_end_nothing_but_their_own_connection(controller, dialect, with_client):
    client = RawClient(controller) if with_client else None
    if client is not None:
        client.connect()
        client.recover()
        moving(client)
    draw = random.Random(7)
    for _ in range(60):
        stranger = RawClient(controller, dialect)
        data = draw.randbytes(draw.choice((1, 9, 10, 12, 13, 100, 5000)))
        stranger.tcp.sendall(data)
        controller.cycle()
        if len(data) > 100:
            assert stranger.closed
        stranger.close()
        if client is not None:
            assert client.control(torque=(0.5,) * 7).mode == MOVING
    if client is not None:
        client.close()
    controller.cycle()
    again = RawClient(controller, dialect)
    assert [answer[0] for answer in again.connect()] == [0]
    again.close()
    controller.cycle()


def message(command, payload, dialect=ROBOT, size=None):
    header = dialect.header.pack(command, 1, dialect.header.size + len(payload) if size is None else size)
    return header + payload


LOAD = struct.pack("<13d", *[0.0] * 13)


@pytest.mark.parametrize(
    "data",
    [
        message(99, b""),
        message(MOVE, TORQUE),
        message(0, b"", size=4),
        message(0, b"", size=2**32 - 1),
        message(MOVE, TORQUE, size=len(TORQUE)),
        message(0, struct.pack("<HH", 10, 0)),
        message(0, struct.pack("<HH", 10, 4000)),
    ],
    ids=["unknown", "before-connect", "short", "huge", "cut", "port-0", "second-client"],
)
def test_who_does_not_keep_to_the_protocol_is_disconnected(client, controller, data):
    stranger = RawClient(controller)
    stranger.tcp.sendall(data)
    controller.cycle()
    with pytest.raises(ConnectionResetError):  # after an orderly end libfranka would go on looking for an answer
        stranger.answers()
    stranger.close()
    assert client.wait().mode == IDLE
    assert not client.closed


def test_the_client_is_disconnected_too_and_the_arm_holds_still(controller):
    client = RawClient(controller)
    client.connect()
    client.recover()
    moving(client)
    client.tcp.sendall(message(SET_LOAD, struct.pack("<13d", float("nan"), *[0.0] * 12)))
    controller.cycle()
    assert client.closed
    assert not controller.robot.connected
    client.close()
    again = RawClient(controller)
    again.connect()
    assert again.wait().mode == REFLEX
    assert again.recover() == 0
    before = again.wait(300).q
    assert again.state.mode == IDLE
    np.testing.assert_allclose(again.wait(100).q, before, atol=1e-4)
    again.close()
    controller.cycle()


def test_pieces_of_a_message_are_put_together(client):
    data = message(STOP_MOVE, b"")
    for byte in data:
        client.tcp.sendall(bytes([byte]))
        client.wait()
    assert [answer[0] for answer in client.answers()] == [STOP_MOVE]


def test_many_messages_at_once_are_answered_in_order(client):
    client.tcp.sendall(message(SET_LOAD, LOAD) * 3 + message(STOP_MOVE, b""))
    client.wait()
    assert [answer[0] for answer in client.answers()] == [SET_LOAD] * 3 + [STOP_MOVE]


def test_idle_connections_keep_nobody_out(controller):
    idle = [socket.create_connection((HOST, ROBOT.port)) for _ in range(12)]
    for _ in idle:
        controller.cycle()
    client = RawClient(controller)
    assert client.connect()[0][0] == 0
    for link in idle:
        link.close()
    controller.cycle()
    assert not client.closed
    client.close()
    controller.cycle()


def test_a_client_that_does_not_read_is_disconnected(controller):
    client = RawClient(controller)
    client.connect()
    for _ in range(2000):
        try:
            client.ask(GET_MODEL)
        except OSError:
            break
        controller.cycle()
        if not controller.robot.connected:
            break
    assert not controller.robot.connected
    client.close()


def test_a_client_comes_back_at_once(controller):
    for _ in range(5):
        client = RawClient(controller)
        assert client.connect()[0][0] == 0
        assert client.recover() == 0
        _, answers = client.move()
        assert answers[0][0] == MOVE
        assert client.control(5, torque=(0.3,) * 7).mode == MOVING
        client.close()  # while it moves
        controller.cycle()


@pytest.mark.parametrize(
    ("values", "status"),
    [((0.5, *[0.0] * 12), 0), ((-0.1, *[0.0] * 12), 2), ((1e300, *[0.0] * 12), 2), ((0.5, 1e300, *[0.0] * 11), 2)],
)
def test_a_load_that_no_robot_has_is_refused(client, values, status):
    client.ask(SET_LOAD, struct.pack("<13d", *values))
    client.wait()
    assert client.answers()[0][2] == bytes([status])
    assert np.isfinite(client.wait(3).q).all()


@pytest.mark.parametrize("command", [7, 8])
@pytest.mark.parametrize(("scale", "status"), [(1.0, 0), (2.0, 2), (-1.0, 2), (1e200, 2)])
def test_a_frame_that_is_no_transform_is_refused(client, command, scale, status):
    matrix = np.eye(4) * [scale, scale, scale, 1.0]
    client.ask(command, struct.pack("<16d", *matrix.ravel(order="F")))
    client.wait()
    assert client.answers()[0][2] == bytes([status])
