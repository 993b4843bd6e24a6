"""Primary and secondary interface over real sockets, read by the layouts of Universal Robots' guide."""

import socket
import struct
import time

import numpy as np
import pytest
from ur_twin import free_address, wait_until

from bid_ros.robots.ur.kinematics import UR5, UR5E
from bid_ros.robots.ur.twin.config import UrControllerConfig
from bid_ros.robots.ur.twin.controller import UrController
from bid_ros.robots.ur.twin.machine import UrMachine
from bid_ros.robots.ur.twin.plant import KinematicPlant
from bid_ros.robots.ur.twin.primary import PrimarySession
from bid_ros.sim.net import Switchboard

HOME = (0.0, -1.5708, 1.5708, -1.5708, -1.5708, 0.0)
PRIMARY, SECONDARY = 30001, 30002
STATE, MESSAGE = 16, 20
MODE, JOINTS, TOOL, MASTERBOARD, CARTESIAN, KINEMATICS, CONFIGURATION = range(7)
SIZES = {MODE: 47, JOINTS: 251, TOOL: 37, MASTERBOARD: 75, CARTESIAN: 101, KINEMATICS: 225, CONFIGURATION: 445}


@pytest.fixture
def twin():
    made = UrController(UrControllerConfig(free_address()), KinematicPlant(HOME))
    made.start()
    yield made
    made.stop()


class Client:
    """Reads messages; says nothing."""

    def __init__(self, address, port=PRIMARY):
        self.link = socket.create_connection((address, port), timeout=3.0)
        self._stream = self.link.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stream.close()
        self.link.close()

    def message(self):
        size, kind = struct.unpack(">IB", self._exactly(5))
        return kind, self._exactly(size - 5)

    def state(self):
        """The next robot state: type of a part -> its payload."""
        kind, rest = self.message()
        while kind != STATE:
            kind, rest = self.message()
        parts = {}
        while rest:
            size, part = struct.unpack_from(">IB", rest)
            assert len(rest) >= size == SIZES[part]
            parts[part], rest = rest[5:size], rest[size:]
        return parts

    def closed(self):
        while self._stream.read(65536):
            pass
        return True

    def _exactly(self, count):
        data = self._stream.read(count)
        if len(data) < count:
            raise ConnectionError("closed")
        return data


def spaced(twin, states):
    """Whether states are 0.1 s of the controller's clock apart, or longer by what a busy computer left out."""
    gaps = np.diff([struct.unpack_from(">Q", state[MODE])[0] for state in states])  # us
    left_out = gaps.sum() - 100_000 * len(gaps)
    return gaps.min() >= 99_999 and left_out <= 1e6 * twin.statistics()["lost_s"] + len(gaps)


def mode_of(state):
    """Fields of the robot's mode: flags, robot mode, control mode, speeds."""
    _, *flags, robot_mode, control_mode, fraction, scaling, limit, _ = struct.unpack(">Q7?BB3dB", state[MODE])
    return flags, robot_mode, control_mode, (fraction, scaling, limit)


@pytest.mark.parametrize("port", [PRIMARY, SECONDARY])
@pytest.mark.parametrize(("generation", "version"), [("e-series", (5, 11, 0, 108249)), ("cb3", (3, 15, 0, 106331))])
def test_a_client_is_told_the_version_first(generation, version, port):
    twin = UrController(UrControllerConfig(free_address(), generation), KinematicPlant(HOME))
    twin.start()
    try:
        with Client(twin.hostname, port) as client:
            kind, data = client.message()
        assert (kind, data[9]) == (MESSAGE, 3)
        assert data[10:20] == b"\x09URControl"
        assert struct.unpack_from(">BBii", data, 20) == version
    finally:
        twin.stop()


@pytest.mark.parametrize("port", [PRIMARY, SECONDARY])
def test_the_state_comes_ten_times_a_second_with_all_parts(twin, port):
    with Client(twin.hostname, port) as client:
        states = [client.state() for _ in range(4)]
    assert set(states[0]) == set(SIZES)
    assert spaced(twin, states)


def test_the_state_says_where_the_arm_is_and_what_it_is(twin):
    with Client(twin.hostname) as client:
        state = client.state()
    assert mode_of(state) == ([True, True, True, False, False, False, False], 7, 0, (1.0, 1.0, 1.0))
    joints = [struct.unpack_from(">3d4fB", state[JOINTS], 41 * joint) for joint in range(6)]
    assert [joint[0] for joint in joints] == [joint[1] for joint in joints] == list(HOME)
    assert {joint[7] for joint in joints} == {253}
    pose = struct.unpack(">12d", state[CARTESIAN])
    np.testing.assert_allclose(pose, [*UR5E.forward(HOME), *[0.0] * 6], atol=1e-12)
    assert struct.unpack(">BBddfBffB", state[TOOL]) == (1, 1, 0.0, 0.0, 48.0, 0, 0.0, 25.0, 253)
    assert struct.unpack_from(">II", state[MASTERBOARD]) == (0, 0) and state[MASTERBOARD][60] == 1


@pytest.mark.parametrize("arm", [UR5E, UR5])
def test_kinematics_and_configuration_are_those_of_the_arm(arm):
    twin = UrController(UrControllerConfig(free_address()), KinematicPlant(HOME), arm)
    twin.start()
    try:
        with Client(twin.hostname) as client:
            state = client.state()
    finally:
        twin.stop()
    a, d, alpha = zip(*arm.table, strict=True)
    table = struct.unpack(">24dI", state[KINEMATICS][24:])
    assert table == (*[0.0] * 6, *a, *d, *alpha, 0)
    numbers = struct.unpack(">53d4i", state[CONFIGURATION])
    assert numbers[29:53] == (*a, *d, *alpha, *[0.0] * 6)
    assert numbers[0] == -numbers[1] == pytest.approx(-2 * np.pi)
    assert numbers[55] == 1  # UR5 or UR5e


def test_the_state_follows_the_modes(twin):
    with Client(twin.hostname) as client:
        twin.loop.call(lambda: twin.machine.protective_stop("a test"))
        wait_until(lambda: mode_of(client.state())[0][4])
        assert client.state()[MASTERBOARD][60] == 3
        twin.loop.call(twin.machine.emergency_stop)
        wait_until(lambda: mode_of(client.state())[1] == 3)
        flags = mode_of(client.state())[0]
    assert flags == [True, True, False, True, False, False, False]


def test_a_refused_program_is_an_exception_at_the_primary_interface_alone(twin):
    for port in (PRIMARY, SECONDARY):
        with Client(twin.hostname, port) as client:
            client.message()
            client.link.sendall(b"def mine():\n  movej([0,0,0,0,0,0])\nend\n")
            if port == PRIMARY:
                start = time.monotonic()
                kind, data = client.message()
                while kind == STATE:
                    kind, data = client.message()
                assert time.monotonic() - start < 1.0
                assert (kind, data[9]) == (MESSAGE, 10)
                assert struct.unpack_from(">ii", data, 10) == (1, 1)
                assert data[18:].startswith(b"a program that begins 'def mine():'")
            assert client.closed()


def test_a_client_that_stops_reading_misses_states_and_none_is_cut():
    """Cycle by cycle, without a clock: until the sockets are full, and on."""
    machine = UrMachine(UrControllerConfig(), KinematicPlant(HOME), UR5E)
    board = Switchboard(address := free_address())

    def cycles(count):
        for _ in range(count):
            machine.clock_s += 0.002
            board.poll()
            board.publish()

    board.listen(PRIMARY, "test", lambda: PrimarySession(machine, told=True))
    with Client(address) as sleeper:
        wait_until(lambda: board.poll() or board.sessions)
        while not board.sessions[0].blocked:
            cycles(50)
        cycles(5000)
        assert len(board.sessions) == 1
        stamps = []
        while not stamps or stamps[-1] < machine.clock_s * 1e6 - 200_000:
            cycles(50)
            stamps += [struct.unpack_from(">Q", sleeper.state()[MODE])[0] for _ in range(2)]
        assert max(np.diff(stamps)) > 1_000_000 and min(np.diff(stamps)) > 0
    board.close()
