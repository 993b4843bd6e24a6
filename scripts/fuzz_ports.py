"""Sends random bytes to every port of a twin, beside a client that holds the arm and without one.

Usage: python scripts/fuzz_ports.py [--tasks franka_place,ur5_pick] [--seconds 180] [--seed 0] [--out out/fuzz]

Each task's twin runs in a process of its own on a loopback address, first with a client, then without, for so many
seconds each. One line of a table says what was sent and what became of it. The twin's log stays in the folder. Exit
status 0 if no twin ended or failed, no arm moved, the client noticed nothing, and the log has one sentence a line.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from bid_ros.control.setpoint import Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.core.tables import markdown_table
from bid_ros.robots.base import Arm
from bid_ros.robots.connecting import connect_within
from bid_ros.robots.registry import build_arm, load_arm_config
from bid_ros.system.folder import System, find_system

# Where the twins listen, with a header that their messages begin with: command or type, and size.
FRAMES: Final = {
    1337: lambda kind, size: struct.pack("<III", kind, 1, size + 12),
    1338: lambda kind, size: struct.pack("<HII", kind, 1, size + 10),
    30004: lambda kind, size: struct.pack(">HB", size + 3, ord("MUVORPIST"[kind % 9])),
}
# Of this process alone, so that two of them may run.
ADDRESS: Final = f"127.79.{os.getpid() % 250 + 1}.1"
JOINTS: Final = {"franka": 7, "ur": 6}
SIZES: Final = (0, 1, 3, 12, 13, 100, 371, 1500, 5000)
PAUSE_S: Final = 0.01  # between two connections: who floods a twin tests the computer
STILL_RAD: Final = 0.02  # an arm that holds its pose moves less
SAMPLE_S: Final = 0.02
START_S: Final = 60.0
SLOW: Final = 0.01  # share of the time that a twin may lose; more says that the computer is too busy to judge a client
COLUMNS: Final = (
    *("task", "client noticed", "s", "connections", "datagrams", "bytes", "lines of log"),
    *("moved, rad", "time lost, s", "what failed"),
)


def serve(task: str, address: str) -> None:
    """Run a task's twin; answer a line of the input with how far a joint has been from its start, rad, and lost s."""
    from bid_ros.tasks.twins import build_twin, scene_model

    logging.basicConfig(format="%(message)s", level=logging.INFO)
    system = find_system(task)
    twin, model = build_twin(system.task, address), scene_model(system.task)
    hinges = [joint for joint in range(model.njnt) if model.jnt_type[joint] == 3][: JOINTS[system.task.robot]]
    where = [model.jnt_qposadr[joint] for joint in hinges]
    twin.start()
    first, moved, ended = twin.scene_state().qpos[where], 0.0, threading.Event()

    def watch() -> None:
        nonlocal moved
        while not ended.wait(SAMPLE_S):
            moved = max(moved, float(np.abs(twin.scene_state().qpos[where] - first).max()))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    print("serves", flush=True)
    for _ in sys.stdin:
        twin.scene_state()  # raises if it has ended
        print(json.dumps([moved, twin.statistics()["lost_s"]]), flush=True)
    ended.set()
    watcher.join()
    twin.stop()


class Fuzz:
    """Sends random bytes to the ports of an address.

    Args:
        address: of the twin.
        seed: of what is sent.

    Attributes:
        connections, datagrams, sent: numbers of what was sent; ``sent`` in bytes.
    """

    def __init__(self, address: str, seed: int) -> None:
        self._address, self._draw = address, random.Random(seed)
        self.connections = self.datagrams = self.sent = 0
        self._ports: dict[str, list[int]] = {}
        self._open: list[socket.socket] = []

    def step(self) -> None:
        """Look for ports now and then, then disturb one of TCP and one of UDP."""
        if self.connections % 50 == 0:
            self._ports = {kind: ports(kind, self._address) for kind in ("tcp", "udp")}
        if self._ports["tcp"]:
            self._connect(self._draw.choice(self._ports["tcp"]))
        if self._ports["udp"]:
            self._datagram(self._draw.choice(self._ports["udp"]))

    def close(self) -> None:
        """Close what is still open."""
        for link in self._open:
            link.close()

    def _connect(self, port: int) -> None:
        self.connections += 1
        with contextlib.suppress(OSError):  # who is thrown out while it sends has what it deserves
            link = socket.create_connection((self._address, port), 2.0)
            self._open.append(link)
            for _ in range(self._draw.randrange(1, 4)):
                data = self._message(port)
                link.sendall(data)
                self.sent += len(data)
        # Some stay for a while, and read nothing.
        while self._open and (len(self._open) > 6 or self._draw.random() < 0.7):
            self._open.pop(self._draw.randrange(len(self._open))).close()

    def _datagram(self, port: int) -> None:
        data = self._draw.randbytes(self._draw.choice(SIZES))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link, contextlib.suppress(OSError):
            link.sendto(data, (self._address, port))
            self.datagrams += 1
            self.sent += len(data)

    def _message(self, port: int) -> bytes:
        """Return bytes, lines of text, or what looks like a message of the port."""
        size, draw = self._draw.choice(SIZES), self._draw
        frame: Callable[[int, int], bytes] | None = FRAMES.get(port)
        chance = draw.random()
        if frame is not None and chance < 0.5:
            return frame(draw.randrange(16), size) + draw.randbytes(size)
        if chance < 0.75:
            return bytes(draw.randrange(32, 127) for _ in range(size)) + b"\n"
        return draw.randbytes(size)


def ports(kind: str, address: str) -> list[int]:
    """Return the ports of an address that are open, of ``tcp`` those that listen."""
    found = set()
    for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]:
        _, local, _, state, *_ = line.split()
        host, port = local.split(":")
        if socket.inet_ntoa(struct.pack("<I", int(host, 16))) == address and (kind == "udp" or state == "0A"):
            found.add(int(port, 16))
    return sorted(found)


class Client:
    """An arm that holds its pose, driven in a thread; ``fault`` says what it noticed, or nothing."""

    def __init__(self, system: System, address: str) -> None:
        robot = system.task.robot
        self._arm: Arm = build_arm(robot, load_arm_config(system.file("robot.yaml"), address, True, robot))
        self.fault = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._hold, daemon=True)
        connect_within(self._arm, START_S, lambda: False)
        self._arm.start()
        self._thread.start()

    def _hold(self) -> None:
        held, still = self._arm.state(), np.zeros(3)
        try:
            while not self._ended.wait(0.01):
                self._arm.command(Setpoint(held.tool_position, held.tool_quaternion, still, still))
        except ArmError as error:
            self.fault = str(error)

    def close(self) -> None:
        """End the thread and the connection."""
        self._ended.set()
        self._thread.join()
        self._arm.close()


def trial(task: str, with_client: bool, options: argparse.Namespace) -> dict[str, Any]:
    """Disturb a task's twin for some seconds; return a row of the table."""
    system = find_system(task)
    address = ADDRESS
    log = options.out / f"{task}_{'client' if with_client else 'alone'}.log"
    command = [sys.executable, __file__, "--serve", task, "--address", address]
    with log.open("w") as errors, subprocess.Popen(command, **PIPES, stderr=errors, text=True) as twin:
        assert twin.stdin is not None and twin.stdout is not None
        noticed = "no client"
        problems = [] if twin.stdout.readline().strip() == "serves" else ["the twin did not start"]
        client = Client(system, address) if with_client and not problems else None
        fuzz, begin = Fuzz(address, options.seed), time.monotonic()
        while time.monotonic() - begin < options.seconds and twin.poll() is None and not problems:
            fuzz.step()
            time.sleep(PAUSE_S)
        fuzz.close()
        moved, lost_s = asked(twin)
        if client is not None:
            slow = lost_s > SLOW * options.seconds
            noticed = f"{client.fault} (slow twin)" if client.fault and slow else client.fault or "nothing"
            problems += [client.fault] if client.fault and not slow else []
            client.close()
        elif twin.poll() is None:
            Client(system, address).close()  # somebody can still connect
        with contextlib.suppress(OSError):
            twin.stdin.close()
    said = [line for line in log.read_text().splitlines() if line]
    problems += ["the log has a traceback"] if any("Traceback" in line for line in said) else []
    problems += [f"the twin ended with status {twin.returncode}"] if twin.returncode else []
    problems += [] if moved <= STILL_RAD else ["the arm moved"]
    values = (task, noticed, f"{options.seconds:g}", fuzz.connections, fuzz.datagrams, fuzz.sent)
    return dict(zip(COLUMNS, (*values, len(said), f"{moved:.4f}", f"{lost_s:.2f}", "; ".join(problems)), strict=True))


PIPES: Final[dict[str, Any]] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}


def asked(twin: subprocess.Popen[str]) -> tuple[float, float]:
    """Return how far a joint of the arm has been from its start, rad, and the s lost; NaN if the twin has ended."""
    assert twin.stdin is not None and twin.stdout is not None
    with contextlib.suppress(OSError):
        print(file=twin.stdin, flush=True)
    moved, lost_s = json.loads(twin.stdout.readline() or "[NaN, NaN]")
    return float(moved), float(lost_s)


def main() -> int:
    """Run every trial, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="franka_place,ur5_pick", help="comma list of tasks")
    parser.add_argument("--seconds", type=float, default=180.0, help="of each trial (180)")
    parser.add_argument("--seed", type=int, default=0, help="of what is sent (0)")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"), help="folder of the logs (out/fuzz)")
    parser.add_argument("--serve", default="", help=argparse.SUPPRESS)
    parser.add_argument("--address", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.address)
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    rows = [trial(task, client, options) for task in options.tasks.split(",") for client in (True, False)]
    print(markdown_table(list(COLUMNS), [[str(value) for value in row.values()] for row in rows]))
    return int(any(row["what failed"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
