"""How late set-points arrive at a UR: what is made of the registers that it reports back, and their RTDE client."""

import socket
import struct
import threading

import pytest
from ur_twin import free_address

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.echo import MOST, REGISTERS, EchoLink, UrEcho
from bid_ros.robots.ur.rtde import PORT, PackageError, PackageReader, PackageType, package

PERIOD_S = 0.008


def numbers(step):
    return (0.001 * step, 0.0, 0.3, 0.0, 0.0, 0.0)


class Robot:
    """Reports every 20 ms what it was sent ``delay_s`` ago, there and back again."""

    def __init__(self, delay_s):
        self.delay_s, self.now = delay_s, 10.0
        self.sent = [(0.0, (7.0,) * 6)]  # what used the registers before
        self.reported = 0.0
        self.echo = UrEcho(self.newest, lambda: round(1e9 * self.now))

    def newest(self):
        if self.now - self.reported < 0.02:
            return None
        self.reported = self.now
        return [sent for at, sent in self.sent if at <= self.now - self.delay_s(self.now)][-1]

    def run(self, poses):
        late = []
        for pose in poses:
            self.now += PERIOD_S
            self.sent.append((self.now, pose))
            self.echo.sent(pose)
            late.append(self.echo.late_s())
        return late


@pytest.mark.parametrize("delay_s", [0.0, 0.05, 0.3])
def test_a_delay_is_told_within_the_time_between_two_reports(delay_s):
    late = Robot(lambda now: delay_s).run(map(numbers, range(200)))
    assert delay_s <= max(late) <= delay_s + 0.02 + 2 * PERIOD_S


def test_a_delay_that_grows_is_told_as_it_grows():
    late = Robot(lambda now: 0.1 * (now - 10.0)).run(map(numbers, range(250)))
    assert late[-1] == pytest.approx(0.2, abs=0.04)


def test_the_longest_delay_is_kept():
    robot = Robot(lambda now: 0.1 if now < 10.5 else 0.0)
    late = robot.run(map(numbers, range(200)))
    assert robot.echo.longest_s == max(late) > 0.1 > late[-1]


def test_a_robot_that_reports_nothing_more_gets_later_and_later():
    robot = Robot(lambda now: 0.0)
    robot.run(map(numbers, range(50)))
    robot.delay_s = lambda now: now - 10.4
    assert robot.run(map(numbers, range(50, 150)))[-1] == pytest.approx(0.8, abs=0.04)


def test_set_points_that_never_arrive_are_kept_up_to_a_bound():
    late = Robot(lambda now: 10.0).run(map(numbers, range(3 * MOST)))
    assert late[-1] == pytest.approx(PERIOD_S * (MOST - 1), abs=PERIOD_S)


def test_the_same_set_point_again_is_no_news_that_could_be_late():
    robot = Robot(lambda now: 0.0)
    late = robot.run([numbers(1)] * 200)
    assert late[-1] == 0.0
    # And a motion that begins afterwards is measured from its own beginning.
    assert max(robot.run(map(numbers, range(2, 50)))) <= 0.02 + 2 * PERIOD_S


def test_what_the_registers_are_used_for_afterwards_is_no_delay():
    robot = Robot(lambda now: 0.0)
    robot.run(map(numbers, range(50)))
    robot.echo.forget()
    robot.sent.append((robot.now, (9.0,) * 6))
    robot.now += 5.0
    assert robot.echo.late_s() == 0.0
    # The pose in which it ended may be the first one of the next motion.
    assert max(robot.run(map(numbers, range(49, 80)))) <= 0.02 + 2 * PERIOD_S


class Controller:
    """Answers one RTDE client with prepared answers, then sends what the test gives it."""

    def __init__(self, *answers):
        self.address = free_address()
        self.server = socket.create_server((self.address, PORT))
        self.server.settimeout(3.0)
        self.asked = []
        self.client = None
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._serve, args=(answers,), daemon=True)
        self.thread.start()

    def _serve(self, answers):
        self.client, _ = self.server.accept()
        self.client.settimeout(3.0)
        reader = PackageReader()
        for answer in answers:
            self.asked += reader.feed(self.client.recv(4096))
            self.client.sendall(answer)
        self.ready.set()

    def close(self):
        self.thread.join(3.0)
        self.server.close()
        if self.client is not None:
            self.client.close()


VERSION = package(PackageType.REQUEST_PROTOCOL_VERSION, b"\x01")
OUTPUTS = package(PackageType.SETUP_OUTPUTS, b"\x01" + ",".join(["DOUBLE"] * 6).encode())
START = package(PackageType.START, b"\x01")


@pytest.fixture
def served():
    made = []

    def serve(*answers):
        made.append(Controller(*answers))
        return made[-1]

    yield serve
    for controller in made:
        controller.close()


def data(*values):
    return package(PackageType.DATA_PACKAGE, b"\x01" + struct.pack(">6d", *values))


def until(link, condition, limit_s=3.0):
    waiting = threading.Event()
    for _ in range(int(limit_s / 0.002)):
        newest = link.newest()
        if condition(newest):
            return newest
        waiting.wait(0.002)
    raise AssertionError("nothing came")


def test_the_newest_of_what_came_is_returned_and_nothing_twice(served):
    text = package(PackageType.TEXT_MESSAGE, b"\x02hi\x04RTDE\x03")
    controller = served(VERSION, OUTPUTS, text + START)
    link = EchoLink(controller.address, 3.0)
    assert controller.ready.wait(3.0)
    assert [kind for kind, _ in controller.asked] == [
        PackageType.REQUEST_PROTOCOL_VERSION,
        PackageType.SETUP_OUTPUTS,
        PackageType.START,
    ]
    assert controller.asked[1][1] == struct.pack(">d", 125.0) + REGISTERS.encode()
    assert link.newest() is None
    controller.client.sendall(data(*[1.0] * 6) + text + data(*[2.0] * 6) + data(*[3.0] * 6)[:20])
    assert until(link, lambda newest: newest == (2.0,) * 6)
    assert link.newest() is None
    controller.client.sendall(data(*[3.0] * 6)[20:])
    assert until(link, bool) == (3.0,) * 6


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ((package(PackageType.REQUEST_PROTOCOL_VERSION, b"\x00"),), "it refused protocol version 2"),
        (
            (VERSION, package(PackageType.SETUP_OUTPUTS, b"\x01NOT_FOUND,DOUBLE")),
            "it refused input_double_register_0,.*_5",
        ),
        ((VERSION, OUTPUTS, package(PackageType.START, b"\x00")), "it refused a start"),
        ((VERSION, package(PackageType.SETUP_OUTPUTS)), "it refused input_double_register_0"),
        ((VERSION, b"\x00\x00U"), "an RTDE package of size 0"),
    ],
)
def test_a_controller_that_does_not_report_is_one_sentence(served, answers, why):
    controller = served(*answers)
    with pytest.raises(ArmError, match=f"robot at {controller.address} does not report what it hears from us .*{why}"):
        EchoLink(controller.address, 3.0)


def test_a_controller_that_is_silent_or_leaves_is_one_sentence(served):
    silent = served()
    with pytest.raises(ArmError, match=r"does not report what it hears from us .*timed out"):
        EchoLink(silent.address, 0.1)
    leaving = served(VERSION)
    threading.Thread(target=lambda: (leaving.ready.wait(3.0), leaving.client.close()), daemon=True).start()
    with pytest.raises(ArmError, match="does not report what it hears from us"):
        EchoLink(leaving.address, 3.0)


@pytest.mark.parametrize("garbage", [b"\x00\x00U", b"\x00\x05U\x01\x02", b"\xff\xff\x00", b"\x00\x03M"])
def test_bytes_that_are_no_packages_are_an_error(served, garbage):
    controller = served(VERSION, OUTPUTS, START)
    link = EchoLink(controller.address, 3.0)
    assert controller.ready.wait(3.0)
    controller.client.sendall(garbage)
    with pytest.raises(
        PackageError, match=r"an RTDE package|a data package of 2 bytes; valid is 49|a text message of 0"
    ):
        until(link, bool)


def test_a_connection_that_is_closed_is_an_error(served):
    controller = served(VERSION, OUTPUTS, START)
    link = EchoLink(controller.address, 3.0)
    assert controller.ready.wait(3.0)
    controller.client.close()
    with pytest.raises(ConnectionError):
        until(link, bool)
