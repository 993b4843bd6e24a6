"""Measure how long the arm's set-point takes to follow a person: from a key or a stick to the first motion.

It starts the system in its twin, drives it through a pseudo-terminal or the topic of a gamepad, and waits for the arm
to rest between two presses. A press counts until the set-point has moved 10 um; the arm's state is published 50 times
a second, which adds up to 20 ms.

Usage: teleop_latency.py [SYSTEM [PRESSES]]
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
import rclpy
from rclpy.node import Node
from sensor_msgs.msg import Joy

from bid_msgs.msg import ArmStatus, EpisodeEvent
from bid_ros.core.stamps import stamp_to_ns
from bid_ros.core.topics import ARM_STATUS, EPISODE_EVENT, TOPICS, Qos
from bid_ros.nodes.executor import LeanExecutor
from bid_ros.nodes.topics import profile

READY_S, REST_S, LOST_S, MOVED_M = 90.0, 0.6, 2.0, 1e-5


class Person:
    """Presses, and watches the set-point."""

    def __init__(self) -> None:
        rclpy.init()
        self.node = Node("person")
        self._executor = LeanExecutor()
        self._executor.add_node(self.node)
        self.started, self.states = False, []
        self.node.create_subscription(ArmStatus, ARM_STATUS, self._on_status, profile(TOPICS[ARM_STATUS].qos))
        self.node.create_subscription(EpisodeEvent, EPISODE_EVENT, self._on_event, profile(TOPICS[EPISODE_EVENT].qos))
        self.pad = self.node.create_publisher(Joy, "joy", profile(Qos()))

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


def measure(system: str, device: str, presses: int) -> np.ndarray:
    """Return the latencies in ms of a device."""
    master, slave = pty.openpty()
    with tempfile.TemporaryDirectory() as folder:
        settings = {"keyboard": f"terminal: {os.ttyname(slave)}"}.get(device, "")
        options = ["--device", device, "--device-settings", settings, "--episodes", "1", "--timeout", "3600"]
        command = [sys.executable, "-m", "bid_ros.cli", "teleop", system, *options, "--no-record"]
        run = subprocess.Popen([*command, "--out", f"{folder}/out"], stderr=subprocess.DEVNULL)
        person = Person()
        try:
            if not person.until(lambda: person.started and bool(person.states), READY_S):
                raise SystemExit("error: no episode began in time")
            keys = [b"w", b"s"]
            stick = [Joy(axes=[0.0, way, 1.0, 0.0, 0.0, 1.0], buttons=[0, 0, 0, 0, 1, 0]) for way in (1.0, -1.0)]

            def press(turn: int) -> None:
                if device == "keyboard":
                    os.write(master, keys[turn % 2])
                else:
                    person.pad.publish(stick[turn % 2])

            return np.array([person.latency_ms(lambda turn=turn: press(turn)) for turn in range(presses)])
        finally:
            run.terminate()
            run.wait()
            rclpy.shutdown()


def main(system: str = "franka_place", presses: str = "100") -> None:
    """Print the percentiles of each device."""
    for device in ("keyboard", "joy"):
        found = measure(system, device, int(presses))
        p50, p99 = np.percentile(found[np.isfinite(found)], [50, 99])
        lost = int(np.sum(~np.isfinite(found)))
        numbers = f"p50 {p50:.1f}  p99 {p99:.1f}  max {found.max():.1f} ms"
        print(f"{device:9} {len(found)} presses  {numbers}, {lost} lost", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
