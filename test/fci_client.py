"""A client of the Franka twin that speaks libfranka's protocol byte by byte, and the twin's controller in lockstep."""

from __future__ import annotations

import socket
import struct
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from franky_sim.franka_robot_protocol import UDPCommand
from franky_sim.mujoco_simulator import MujocoSimulator

from bid_ros.robots.franka.fast_franky_sim import FastFrankaRobot
from bid_ros.robots.franka.model import HOME_Q
from bid_ros.robots.franka.twin.controller import FrankaController
from bid_ros.robots.franka.twin.messages import HAND, ROBOT, Dialect

CONNECT, MOVE, STOP_MOVE, SET_LOAD, RECOVER, GET_MODEL = 0, 1, 2, 9, 10, 11
TORQUE = struct.pack("<II6d", 2, 4, *[1.0] * 6)  # external controller, no motion generator
JOINTS = struct.pack("<II6d", 0, 0, *[1.0] * 6)  # joint impedance, joint positions
IDLE, MOVING, REFLEX = 1, 2, 4  # robot modes
STILL = (0.0,) * 7


@dataclass(frozen=True)
class State:
    """What a datagram of the arm says, as far as tests look at it."""

    number: int
    mode: int
    errors: tuple[int, ...]
    reflex: tuple[int, ...]
    success: float
    q: tuple[float, ...]
    wanted: tuple[float, ...]
    dq: tuple[float, ...]
    torque: tuple[float, ...]

    @classmethod
    def of(cls, data: bytes) -> State:
        # After seven transforms and the loads: elbows, tau_J, tau_J_d, dtau_J, q, q_d, dq.
        floats = struct.unpack_from("<179f", data, 8)
        (success,) = struct.unpack("<f", data[-4:])
        bits = [tuple(i for i, bit in enumerate(data[a:b]) if bit) for a, b in ((-87, -46), (-46, -5))]
        at = 6 * 16 + 1 + 9 + 3 + 1 + 9 + 3 + 4
        torque, q, wanted, dq = (floats[at + 7 * part : at + 7 * part + 7] for part in (1, 3, 4, 5))
        return cls(struct.unpack_from("<Q", data)[0], data[-5], bits[0], bits[1], success, q, wanted, dq, torque)


class RawClient:
    """One client of one service; its socket for datagrams is its own.

    Attributes:
        state: newest of the arm; server: where its datagrams come from.
    """

    def __init__(self, controller: FrankaController, dialect: Dialect = ROBOT) -> None:
        self.controller, self.dialect = controller, dialect
        self.tcp = socket.create_connection((controller.hostname, dialect.port))
        self.tcp.setblocking(False)
        self.tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.udp.setblocking(False)
        self.number, self.server, self.state = 0, ("", 0), None
        self._rest = b""

    def close(self) -> None:
        self.tcp.close()
        self.udp.close()

    def ask(self, command: int, payload: bytes = b"") -> int:
        self.number += 1
        size = self.dialect.header.size + len(payload)
        self.tcp.sendall(self.dialect.header.pack(command, self.number, size) + payload)
        return self.number

    def connect(self, version: int | None = None) -> list[tuple[int, int, bytes]]:
        version = self.dialect.version if version is None else version
        self.ask(CONNECT, struct.pack("<HH", version, self.udp.getsockname()[1]))
        self.controller.cycle()
        self.listen()
        return self.answers()

    def answers(self) -> list[tuple[int, int, bytes]]:
        """Return command, number and payload of every answer; raises ConnectionError if the server has closed."""
        found = []
        with suppress(BlockingIOError):
            while True:
                data = self.tcp.recv(65_536)
                if not data:
                    raise ConnectionError
                self._rest += data
        while len(self._rest) >= self.dialect.header.size:
            command, number, size = self.dialect.header.unpack_from(self._rest)
            found.append((command, number, self._rest[self.dialect.header.size : size]))
            self._rest = self._rest[size:]
        return found

    @property
    def closed(self) -> bool:
        try:
            self.answers()
        except ConnectionError:
            return True
        return False

    def listen(self) -> State | None:
        """Take the newest state, if one has come."""
        with suppress(BlockingIOError):
            while True:
                data, self.server = self.udp.recvfrom(4096)
                if self.dialect is ROBOT:
                    self.state = State.of(data)
        return self.state

    def packet(self, torque=STILL, q=STILL, number: int | None = None, finished: bool = False) -> bytes:
        if number is None:
            number = self.state.number
        return UDPCommand.STRUCT.pack(
            number, *q, *STILL, *[0.0] * 16, *[0.0] * 6, 0.0, 0.0, False, finished, *torque, finished
        )

    def control(self, cycles: int = 1, **command) -> State:
        """Answer each state with the same command for some cycles."""
        for _ in range(cycles):
            self.udp.sendto(self.packet(**command), self.server)
            self.wait()
        return self.state

    def wait(self, cycles: int = 1) -> State:
        """Let cycles pass without a command."""
        for _ in range(cycles):
            self.controller.cycle()
            self.listen()
        return self.state

    def recover(self, cycles: int = 1500) -> int:
        """Ask for the error recovery; return its status once it is answered."""
        number = self.ask(RECOVER)
        for _ in range(cycles):
            self.wait()
            for command, answered, payload in self.answers():
                if (command, answered) == (RECOVER, number):
                    return payload[0]
        raise TimeoutError("no answer to the error recovery")

    def move(self, payload: bytes = TORQUE) -> tuple[int, list[tuple[int, int, bytes]]]:
        number = self.ask(MOVE, payload)
        self.wait()
        return number, self.answers()


@contextmanager
def lockstep(*hostnames: str, **parts):
    """Serve an arm that moves only when a test lets a cycle pass."""
    simulator = MujocoSimulator()
    FastFrankaRobot.take_over(simulator.add_robot(initial_q=HOME_Q, initial_hand_width=0.08))
    controller = FrankaController(simulator, *hostnames, **parts)
    controller.start()
    try:
        yield controller
    finally:
        controller.close()


__all__ = ["HAND", "ROBOT", "RawClient", "lockstep"]
