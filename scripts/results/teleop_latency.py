"""Measure how long the arm's set-point takes to follow a person: from a key or a stick to the first motion.

It starts the system in its twin, drives it through a pseudo-terminal, the topics of a gamepad or of a leader arm, or
the websocket of the page, and waits for the arm to rest between two presses. A press counts until the set-point has
moved 10 um; the arm's state is published 50 times a second, which adds up to 20 ms.

Usage: teleop-latency [SYSTEM [PRESSES [DEVICE...]]]
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

import numpy as np
import rclpy
from rclpy.node import Node
from sensor_msgs.msg import JointState, Joy
from websockets.sync.client import connect

from bid_msgs.msg import ArmStatus, EpisodeEvent
from bid_ros.core.stamps import stamp_to_ns
from bid_ros.core.topics import ARM_STATUS, EPISODE_EVENT, TOPICS, Qos
from bid_ros.nodes.executor import FastExecutor
from bid_ros.nodes.topics import profile

READY_S, REST_S, LOST_S, MOVED_M = 90.0, 0.6, 2.0, 1e-5
PORT = 8767
# Of a leader: which joint is its elbow, and where it rests, rad.
ELBOWS = {
    "franka_place": (3, (0.0, -0.28, 0.0, -2.40, 0.0, 2.12, 0.785)),
    "ur5_pick": (2, (0.0, -1.6, 1.8, -1.8, -1.57, 0.0)),
}


class Person:
    """Presses, and watches the set-point."""

    def __init__(self) -> None:
        rclpy.init()
        self.node = Node("person")
        self._executor = FastExecutor()
        self._executor.add_node(self.node)
        self.started, self.states = False, []
        self.node.create_subscription(ArmStatus, ARM_STATUS, self._on_status, profile(TOPICS[ARM_STATUS].qos))
        self.node.create_subscription(EpisodeEvent, EPISODE_EVENT, self._on_event, profile(TOPICS[EPISODE_EVENT].qos))

    def _on_status(self, status: ArmStatus) -> None:
        at = status.reference.position
        self.states.append((stamp_to_ns(status.reference_stamp), np.array([at.x, at.y, at.z])))

    def _on_event(self, event: EpisodeEvent) -> None:
        self.started = event.kind == EpisodeEvent.START

    def until(self, condition: Callable[[], bool], limit_s: float) -> bool:
        """Spin until the condition holds; False when the time is over."""
        end = time.monotonic() + limit_s
        while not condition():
            if time.monotonic() > end:
                return False
            self._executor.spin_once(timeout_sec=0.01)
        return True

    def latency_ms(self, press: Callable[[], None]) -> float:
        """Press once; return ms until the set-point moves, infinity if it does not."""
        self.until(lambda: False, REST_S)
        rest = self.states[-1][1]
        self.states.clear()
        pressed_ns = time.time_ns()
        press()
        moved = lambda: any(np.linalg.norm(at - rest) > MOVED_M for _, at in self.states)  # noqa: E731
        if not self.until(moved, LOST_S):
            return float("inf")
        first = next(stamp for stamp, at in self.states if np.linalg.norm(at - rest) > MOVED_M)
        return (first - pressed_ns) / 1e6


class Hand:
    """What a person holds. An episode begins once it is there."""

    settings = ""

    def open(self, person: Person) -> None:
        """Connect to the node. Raises OSError if it is not there yet."""

    def press(self, turn: int) -> None:
        """Press away or back."""

    def rest(self) -> None:
        """Say that it is there, and that nothing is pressed."""


class Keys(Hand):
    """A terminal in which keys are pressed."""

    def __init__(self) -> None:
        self._master, slave = pty.openpty()
        self.settings = f"terminal: {os.ttyname(slave)}"

    def open(self, person: Person) -> None:
        """There is nothing to connect to."""

    def press(self, turn: int) -> None:
        """Press away or back."""
        os.write(self._master, (b"w", b"s")[turn % 2])


class Stick(Hand):
    """A gamepad on a topic. It falls silent after a press, which stops the arm."""

    settings = ""

    def open(self, person: Person) -> None:
        """Publish from the node of the person."""
        self._pad = person.node.create_publisher(Joy, "joy", profile(Qos()))

    def rest(self) -> None:
        """Leave the stick alone."""
        self._pad.publish(Joy(axes=[0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0], buttons=[0] * 8))

    def press(self, turn: int) -> None:
        """Push the stick away or back."""
        way = (1.0, -1.0)[turn % 2]
        self._pad.publish(Joy(axes=[0.0, way, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0], buttons=[0, 0, 0, 0, 1, 0, 0, 0]))


class Browser(Hand):
    """What the page sends over its websocket, as often as the page does."""

    settings, PERIOD_S, HELD_S = f"port: {PORT}", 0.03, 0.1

    def __init__(self) -> None:
        self._open = ExitStack()

    def open(self, person: Person) -> None:
        """Connect to the page."""
        self._socket = self._open.enter_context(connect(f"ws://127.0.0.1:{PORT}/drive"))
        self._twist, self._until, self._echo = [0.0] * 6, 0.0, 0
        person.node.create_timer(self.PERIOD_S, self._send)

    def press(self, turn: int) -> None:
        """Hold the key for away or back for a moment."""
        self._twist[0], self._until = (1.0, -1.0)[turn % 2], time.monotonic() + self.HELD_S
        self._send()

    def _send(self) -> None:
        with suppress(TimeoutError):
            while True:
                heard = self._socket.recv(timeout=0)
                if isinstance(heard, str):
                    self._echo = json.loads(heard)["number"]
                else:
                    self._socket.send(heard[1 : 1 + heard[0]])  # the image has been seen
        live = time.monotonic() < self._until
        said = {"live": live, "twist": self._twist, "toggles": 0, "marks": 0, "mark": "", "echo": self._echo}
        self._socket.send(json.dumps(said))


class LeaderArm(Hand):
    """A leader arm at 100 Hz whose elbow is moved by hand, by 0.05 rad."""

    settings, PERIOD_S = "", 0.01

    def __init__(self, system: str) -> None:
        self._elbow, angles = ELBOWS[system]
        self._angles = list(angles)

    def open(self, person: Person) -> None:
        """Publish from the node of the person, with the pedal down."""
        self._joints = person.node.create_publisher(JointState, "leader/joint_states", profile(Qos()))
        self._pedal = person.node.create_publisher(Joy, "leader/hold", profile(Qos()))
        person.node.create_timer(self.PERIOD_S, self._send)

    def press(self, turn: int) -> None:
        """Move the elbow."""
        self._angles[self._elbow] += (0.05, -0.05)[turn % 2]
        self._send()

    def _send(self) -> None:
        names = [f"joint{number}" for number in range(len(self._angles))]
        self._joints.publish(JointState(name=names, position=self._angles))
        self._pedal.publish(Joy(buttons=[1]))


def measure(system: str, device: str, presses: int) -> np.ndarray:
    """Return the latencies in ms of a device."""
    hand = {"keyboard": Keys, "joy": Stick, "page": Browser, "leader": lambda: LeaderArm(system)}[device]()
    with tempfile.TemporaryDirectory() as folder:
        options = ["--device-settings", hand.settings, "--episodes", "1", "--timeout", "3600"]
        command = [sys.executable, "-m", "bid_ros.cli", "up", system, "--driver", device, *options, "--no-record"]
        run = subprocess.Popen([*command, "--moving", "0", "--out", f"{folder}/out"], stderr=subprocess.DEVNULL)
        person = Person()
        try:
            if not person.until(lambda: _opened(hand, person), READY_S):
                raise SystemExit("error: the device was not there in time")
            if not person.until(lambda: hand.rest() or (person.started and bool(person.states)), READY_S):
                raise SystemExit("error: no episode began in time")
            return np.array([person.latency_ms(lambda turn=turn: hand.press(turn)) for turn in range(presses)])
        finally:
            run.terminate()
            run.wait()
            rclpy.shutdown()


def _opened(hand: Hand, person: Person) -> bool:
    """Open the device; return whether the node is there that it connects to."""
    try:
        hand.open(person)
    except OSError:
        return False
    return True


def main(system: str = "franka_place", presses: str = "100", *devices: str) -> None:
    """Print the percentiles of each device."""
    for device in devices or ("keyboard", "joy", "page", "leader"):
        found = measure(system, device, int(presses))
        p50, p99 = np.percentile(found[np.isfinite(found)], [50, 99])
        lost = int(np.sum(~np.isfinite(found)))
        numbers = f"p50 {p50:.1f}  p99 {p99:.1f}  max {found.max():.1f} ms"
        print(f"{device:9} {len(found)} presses  {numbers}, {lost} lost", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
