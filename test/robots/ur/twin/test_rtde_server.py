"""The RTDE server over real sockets: rates, recipes, owners, clients that misbehave."""

import random
import socket
import struct
import time

import numpy as np
import pytest
from real_time import wait_until
from ur_twin import free_address

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.rtde import PORT as RTDE_PORT
from bid_ros.robots.ur.rtde import PackageType, package
from bid_ros.robots.ur.twin import rtde_server
from bid_ros.robots.ur.twin.config import UrControllerConfig
from bid_ros.robots.ur.twin.controller import UrController
from bid_ros.robots.ur.twin.dashboard import DASHBOARD_PORT
from bid_ros.robots.ur.twin.plant import KinematicPlant
from bid_ros.robots.ur.twin.rtde_server import ERROR, field_names, text_message
from bid_ros.sim.net import Misbehaviour, Switchboard, TwinSession

HOME = (0.0, -1.5708, 1.5708, -1.5708, -1.5708, 0.0)


@pytest.fixture
def twin():
    made = UrController(UrControllerConfig(free_address()), KinematicPlant(HOME))
    made.start()
    yield made
    made.stop()


class Client:
    """A plain RTDE client."""

    def __init__(self, twin: UrController, negotiate: bool = True) -> None:
        self.link = socket.create_connection((twin.hostname, RTDE_PORT), timeout=3.0)
        if negotiate:
            assert self.ask(PackageType.REQUEST_PROTOCOL_VERSION, b"\x00\x02") == b"\x01"

    def send(self, kind: PackageType, payload: bytes = b"") -> None:
        self.link.sendall(package(kind, payload))

    def read(self) -> tuple[int, bytes]:
        size, kind = struct.unpack(">HB", self._exactly(3))
        return kind, self._exactly(size - 3)

    def ask(self, kind: PackageType, payload: bytes = b"") -> bytes:
        self.send(kind, payload)
        answer = (0, b"")
        while answer[0] != kind:
            answer = self.read()
        return answer[1]

    def outputs(self, names: str, frequency: float = 500.0) -> bytes:
        return self.ask(PackageType.SETUP_OUTPUTS, struct.pack(">d", frequency) + names.encode())

    def inputs(self, names: str) -> bytes:
        return self.ask(PackageType.SETUP_INPUTS, names.encode())

    def data(self, count: int) -> list[bytes]:
        """The next data packages."""
        found: list[bytes] = []
        while len(found) < count:
            kind, payload = self.read()
            if kind == PackageType.DATA_PACKAGE:
                found.append(payload)
        return found

    def closed(self) -> bool:
        """Whether the server has closed the connection; reads what is left."""
        try:
            while self.link.recv(65536):
                pass
        except ConnectionError:
            pass
        return True

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self.link.recv(count - len(data))
            if not piece:
                raise ConnectionError("closed")
            data += piece
        return data


def timestamps(packages: list[bytes]) -> list[float]:
    return [struct.unpack(">d", item[1:9])[0] for item in packages]


def assert_spaced(twin: UrController, stamps: list[float], period: float = 0.002) -> None:
    """Controller times are ``period`` s apart, or longer by what a busy computer made the twin leave out."""
    gaps = np.diff(stamps)
    assert gaps.min() > period - 1e-9
    assert gaps.sum() - period * len(gaps) <= twin.statistics()["lost_s"] + 1e-6


def test_version_and_first_package(twin):
    client = Client(twin)
    assert struct.unpack(">4I", client.ask(PackageType.GET_URCONTROL_VERSION)) == (5, 11, 0, 108249)
    assert client.outputs("timestamp,actual_q,robot_mode") == b"\x01DOUBLE,VECTOR6D,INT32"
    assert client.ask(PackageType.START) == b"\x01"
    (first,) = client.data(1)
    assert first[0] == 1 and struct.unpack(">6di", first[9:]) == (*HOME, 7)


def test_only_protocol_version_2_is_spoken(twin):
    client = Client(twin, negotiate=False)
    assert client.ask(PackageType.REQUEST_PROTOCOL_VERSION, b"\x00\x01") == b"\x00"
    client.send(PackageType.SETUP_INPUTS, b"input_int_register_0")
    kind, text = client.read()
    assert kind == PackageType.TEXT_MESSAGE and b"before it asked for protocol version 2" in text
    assert client.closed()


@pytest.mark.parametrize(("frequency", "period"), [(500.0, 0.002), (125.0, 0.008), (10.0, 0.1), (9999.0, 0.002)])
def test_requested_frequency_is_honoured(twin, frequency, period):
    client = Client(twin)
    client.outputs("timestamp", frequency)
    client.ask(PackageType.START)
    assert_spaced(twin, timestamps(client.data(6)), period)


def test_frequency_that_does_not_divide_the_rate_is_met_on_average(twin):
    client = Client(twin)
    client.outputs("timestamp", 200.0)
    client.ask(PackageType.START)
    stamps = timestamps(client.data(41))
    assert 1 / 200 - 1e-6 < (stamps[-1] - stamps[0]) / 40 < 1 / 200 + twin.statistics()["lost_s"] / 40 + 1e-6


def test_unknown_fields_are_not_found_and_configure_nothing(twin):
    client = Client(twin)
    assert client.outputs("timestamp,nonsense,actual_q") == b"\x00DOUBLE,NOT_FOUND,VECTOR6D"
    assert client.ask(PackageType.START) == b"\x00"
    assert client.inputs("input_int_register_0,input_int_register_48") == b"\x00INT32,NOT_FOUND"
    assert Client(twin).inputs("input_int_register_0") == b"\x01INT32"  # the first client does not hold it


def test_a_field_has_one_writer_until_it_leaves(twin):
    first, second = Client(twin), Client(twin)
    assert first.inputs("input_int_register_0,input_double_register_0") == b"\x01INT32,DOUBLE"
    assert first.inputs("input_int_register_0") == b"\x02INT32"
    assert second.inputs("input_int_register_1,input_double_register_0") == b"\x00INT32,IN_USE"
    first.link.close()
    wait_until(lambda: second.inputs("input_double_register_0") == b"\x01DOUBLE")


def test_pause_stops_the_packages_and_start_goes_on(twin):
    client = Client(twin)
    client.outputs("timestamp")
    client.ask(PackageType.START)
    last = timestamps(client.data(3))[-1]
    assert client.ask(PackageType.PAUSE) == b"\x01"
    wait_until(lambda: twin.statistics()["cycles"] * 0.002 > last + 0.1)
    client.ask(PackageType.START)
    assert timestamps(client.data(1))[0] > last + 0.09


MALFORMED = {
    "too small": b"\x00\x02U",
    "unknown type": b"\x00\x04Z\x00",
    "version too short": package(PackageType.REQUEST_PROTOCOL_VERSION, b"\x02"),
    "outputs too short": package(PackageType.SETUP_OUTPUTS, b"\x00\x00"),
    "frequency zero": package(PackageType.SETUP_OUTPUTS, struct.pack(">d", 0.0) + b"timestamp"),
    "frequency not a number": package(PackageType.SETUP_OUTPUTS, struct.pack(">d", float("nan")) + b"timestamp"),
    "no names": package(PackageType.SETUP_INPUTS),
    "too many names": package(PackageType.SETUP_INPUTS, b"x," * 1025),
    "names that are not text": package(PackageType.SETUP_INPUTS, b"\xff\xfe"),
    "empty data": package(PackageType.DATA_PACKAGE),
    "recipe zero": package(PackageType.DATA_PACKAGE, b"\x00"),
    "unknown recipe": package(PackageType.DATA_PACKAGE, b"\x05abcd"),
    "wrong data size": package(PackageType.DATA_PACKAGE, b"\x01\x00\x00\x00"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_package_ends_its_connection_with_one_sentence_and_no_other(twin, caplog, name):
    witness, culprit = Client(twin), Client(twin)
    witness.outputs("timestamp")
    witness.ask(PackageType.START)
    culprit.inputs("input_int_register_0")
    culprit.link.sendall(MALFORMED[name])
    assert culprit.closed()
    sentences = [record.getMessage() for record in caplog.records if "its connection is closed" in record.getMessage()]
    assert len(sentences) == 1 and twin.hostname in sentences[0]
    before = timestamps(witness.data(1))[0]
    assert_spaced(twin, [before, *timestamps(witness.data(5))])
    assert Client(twin).inputs("input_int_register_0") == b"\x01INT32"


def test_client_that_stops_reading_misses_packages_and_is_then_dropped(twin, monkeypatch, caplog):
    monkeypatch.setattr(rtde_server, "STALL_LIMIT_S", 0.3)
    witness, sleeper = Client(twin), Client(twin)
    witness.outputs("timestamp")
    witness.ask(PackageType.START)
    sleeper.inputs("input_int_register_0")
    registers = ",".join(f"output_double_register_{number}" for number in range(48))
    # The widest recipe the name list allows, so that the buffers between the two are full soon.
    sleeper.link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sleeper.outputs("actual_q," * 60 + registers[:1000].rpartition(",")[0])
    sleeper.ask(PackageType.START)
    wait_until(lambda: twin.statistics()["dropped"] == 1, 10.0)
    assert twin.statistics()["left_out"] > 0
    assert "has not read for" in caplog.text
    assert np.diff(timestamps(witness.data(400))).max() < 0.15  # the cycle did not wait for the sleeper
    assert Client(twin).inputs("input_int_register_0") == b"\x01INT32"


def test_client_that_sends_for_ever_and_reads_nothing_is_dropped(twin):
    flood = Client(twin)
    flood.link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with pytest.raises(OSError):
        for _ in range(2000):
            flood.link.sendall(package(PackageType.GET_URCONTROL_VERSION) * 1000)
    assert Client(twin).outputs("timestamp") == b"\x01DOUBLE"


def test_fuzz_never_ends_the_twin(twin):
    generator = random.Random(20)
    witness = Client(twin)
    witness.outputs("timestamp")
    witness.ask(PackageType.START)
    valid = [
        package(PackageType.REQUEST_PROTOCOL_VERSION, b"\x00\x02"),
        package(PackageType.GET_URCONTROL_VERSION),
        package(PackageType.SETUP_INPUTS, b"input_int_register_0,input_double_register_0,input_int_register_1"),
        package(PackageType.SETUP_OUTPUTS, struct.pack(">d", 125.0) + b"timestamp,actual_q,output_int_register_0"),
        package(PackageType.START),
        package(PackageType.DATA_PACKAGE, struct.pack(">Bidi", 1, 11, 0.5, 1)),
        package(PackageType.PAUSE),
    ]
    for _ in range(120):
        stream = bytearray(b"".join(generator.sample(valid, generator.randrange(1, len(valid) + 1))))
        for _ in range(generator.randrange(5)):
            stream[generator.randrange(len(stream))] = generator.randrange(256)
        if generator.random() < 0.2:
            stream = bytearray(generator.randbytes(generator.randrange(200)))
        with socket.create_connection((twin.hostname, RTDE_PORT)) as link:
            link.sendall(stream)
    wait_until(lambda: twin.statistics()["clients"] == 1)
    assert_spaced(twin, timestamps(witness.data(500)))


def test_dashboard_lines_of_any_bytes_never_end_the_twin(twin):
    generator = random.Random(21)
    words = [
        b"stop",
        b"brake release",
        b"popup ",
        b"unlock protective stop",
        b"is in remote control",
    ]
    for _ in range(120):
        lines = [generator.choice(words) + generator.randbytes(generator.randrange(60)) for _ in range(5)]
        with socket.create_connection((twin.hostname, DASHBOARD_PORT)) as link:
            link.sendall(b"\n".join([*lines, b""]) if generator.random() < 0.8 else generator.randbytes(9000))
    wait_until(lambda: twin.statistics()["clients"] == 0)
    with socket.create_connection((twin.hostname, DASHBOARD_PORT), 3.0) as link:
        answers = link.makefile()
        assert answers.readline().startswith("Connected")
        link.sendall(b"robotmode\n")
        assert answers.readline() == "Robotmode: RUNNING\n"


@pytest.mark.parametrize("read_first", [False, True])
def test_a_dashboard_client_that_quits_and_leaves_at_once_ends_nothing_but_its_connection(twin, read_first):
    """The greeting unread, its close is a reset: the answer to ``quit`` fails, and so does the goodbye."""
    for _ in range(20):
        with socket.create_connection((twin.hostname, DASHBOARD_PORT), 3.0) as link:
            wait_until(lambda: twin.statistics()["clients"] == 1)
            if read_first:
                assert link.recv(100).startswith(b"Connected")
            link.sendall(b"robotmode\nquit\n")
        wait_until(lambda: twin.statistics()["clients"] == 0)
    assert Client(twin).outputs("timestamp") == b"\x01DOUBLE"


def test_a_connection_that_fails_while_it_says_goodbye_is_dropped_once():
    class Leaver(TwinSession):
        times = 0

        def received(self, data):
            self.transport.close()
            raise Misbehaviour("it says nonsense and quits")

        def lost(self):
            self.times += 1

    session = Leaver()
    board = Switchboard(address := free_address())
    board.listen(DASHBOARD_PORT, "test", lambda: session)
    with socket.create_connection((address, DASHBOARD_PORT)) as link:
        link.sendall(b"quit\n")
        wait_until(lambda: board.poll() or session.times == 1)
    board.poll()
    assert (session.times, board.sessions, board.dropped) == (1, [], 1)
    board.close()


def test_too_many_clients_are_not_let_in(twin):
    many = [Client(twin) for _ in range(64)]
    with socket.create_connection((twin.hostname, RTDE_PORT), timeout=3.0) as late:
        assert late.recv(1) == b""
    assert many[0].outputs("timestamp") == b"\x01DOUBLE"


def test_twins_side_by_side_and_a_taken_address(twin):
    other = UrController(UrControllerConfig(free_address()), KinematicPlant(HOME))
    other.start()
    assert Client(other).outputs("timestamp") == Client(twin).outputs("timestamp")
    other.stop()
    second = UrController(UrControllerConfig(twin.hostname), KinematicPlant(HOME))
    with pytest.raises(ArmError, match=f"cannot serve RTDE on {twin.hostname}:30004"):
        second.start()
    second.stop()


def test_cycle_is_far_shorter_than_its_period(twin):
    clients = [Client(twin) for _ in range(2)]
    names = "timestamp," + "actual_q,target_q,actual_TCP_pose," * 7 + "runtime_state"
    for client in clients:
        client.outputs(names)
        client.ask(PackageType.START)
    start, cycles = time.process_time(), twin.statistics()["cycles"]
    for _ in range(300):
        for client in clients:
            client.data(1)
    # Processor time of cycle and Python clients together, of the 2 ms there are.
    assert (time.process_time() - start) / (twin.statistics()["cycles"] - cycles) < 0.0012


def test_what_clients_write_is_reported_to_all(twin):
    writer, reader = Client(twin), Client(twin)
    writer.inputs("input_int_register_0,input_double_register_5,input_double_register_47")
    assert reader.outputs("input_double_register_47,input_int_register_0,input_double_register_5,input_int_register_1")
    reader.ask(PackageType.START)
    writer.send(PackageType.DATA_PACKAGE, struct.pack(">Bidd", 1, -7, 0.1, 2.5))
    written = struct.pack(">Bdidi", 1, 2.5, -7, 0.1, 0)
    packages = reader.data(50)
    assert packages[0] in (bytes([1]) + bytes(24), written) and packages[-1] == written


def test_text_message_has_lengths_source_and_level():
    assert text_message("no", "RTDE", ERROR) == b"\x00\x0cM\x02no\x04RTDE\x01"
    assert len(text_message("x" * 999, "s", 3)) == 3 + 1 + 255 + 1 + 1 + 1


def test_field_names():
    assert field_names(b"a,b,") == field_names(b"a, b") == ["a", "b"]
    for payload in (b"", b"x" * 2049, "\xe4".encode()):
        with pytest.raises(Misbehaviour, match="field names"):
            field_names(payload)
