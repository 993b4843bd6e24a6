"""Measure how soon the arm of a twin rests when the link to its policy is cut.

The link is a TCP proxy on loopback. When it is cut, nothing passes any more, and no end is told.

Usage: remote_cut.py [SYSTEM [CUTS [SAMPLES]]]
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from remote_parts import CutLink, pointer, served

from bid_ros.commands.tasks import task_of
from bid_ros.policy.bundle import bundled_task

READY_S, REST_M_S = 120.0, 0.002


class Watcher:
    """Hears the arm."""

    def __init__(self) -> None:
        import rclpy
        from rclpy.node import Node

        from bid_msgs.msg import ArmStatus, Decision
        from bid_ros.core.stamps import stamp_ns
        from bid_ros.core.topics import ARM_STATUS, DECISION, TOPICS
        from bid_ros.nodes.executor import LeanExecutor
        from bid_ros.nodes.topics import profile

        rclpy.init()
        self._node, self._executor, self.stopped = Node("watcher"), LeanExecutor(), ArmStatus.STOPPED
        self._executor.add_node(self._node)
        self.mode, self.reason, self.decisions = 0, "", 0
        self.speeds: deque[tuple[int, float]] = deque(maxlen=5000)

        def take(status: ArmStatus) -> None:
            self.mode, self.reason = status.mode, status.reason
            self.speeds.append((stamp_ns(status), float(np.linalg.norm(status.reference_twist[:3]))))

        def count(_: Decision) -> None:
            self.decisions += 1

        self._node.create_subscription(Decision, DECISION, count, profile(TOPICS[DECISION].qos))
        self._node.create_subscription(ArmStatus, ARM_STATUS, take, profile(TOPICS[ARM_STATUS].qos))

    def until(self, condition, limit_s: float) -> bool:
        """Spin until the condition holds; False when the time is over."""
        end = time.monotonic() + limit_s
        while not condition():
            if time.monotonic() > end:
                return False
            self._executor.spin_once(timeout_sec=0.01)
        return True

    def spin(self, seconds: float) -> None:
        """Hear for a while."""
        self.until(lambda: False, seconds)


def rest_after_cut_ms(watcher: Watcher, system: str, bundle: Path, link: CutLink, samples: str, turn: int) -> float:
    """Run a system, cut its link while the arm moves, and return ms from the cut until the set-point rests."""
    watcher.speeds.clear()
    watcher.mode = watcher.decisions = 0
    options = [
        "--bundle",
        str(bundle),
        "--samples",
        samples,
        "--episodes",
        "1",
        "--no-record",
        "--seed",
        str(21 + turn),
    ]
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "bid_ros.cli", "up", system, *options, "--out", f"{out}/run"]
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            moving = lambda: len(watcher.speeds) > 20 and min(s for _, s in list(watcher.speeds)[-20:]) > 0.02  # noqa: E731
            # The first motion may be that of the preparation, which no policy drives.
            if not watcher.until(lambda: watcher.decisions > 3 and moving(), READY_S):
                raise SystemExit("error: the policy never moved the arm")
            watcher.spin(0.1 * (turn % 5) / 5)
            cut = time.time_ns()
            link.passing = False
            if not watcher.until(lambda: watcher.mode == watcher.stopped and watcher.speeds[-1][1] < REST_M_S, 5.0):
                raise SystemExit(f"error: the arm did not stop within 5 s of the cut: {watcher.reason}")
            return (max(at for at, speed in watcher.speeds if speed >= REST_M_S) - cut) / 1e6
        finally:
            run.send_signal(signal.SIGINT)
            run.wait()
            link.passing = True


def cut(system: str = "franka_place", cuts: str = "5", samples: str = "4") -> None:
    """Print how soon the arm of a twin rests when the link to its policy is cut."""
    bundle = Path(f"models/{system}")
    task = task_of("", bundled_task(bundle), str(bundle))
    watcher, found = Watcher(), []
    with ExitStack() as stack:
        port = stack.enter_context(served(bundle, int(samples)))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        link = CutLink(port)
        stack.callback(link.close)
        pointed = pointer(folder / "remote", task, link.port)
        for turn in range(int(cuts)):
            found.append(rest_after_cut_ms(watcher, system, pointed, link, samples, turn))
            print(f"  cut {turn + 1}: at rest after {found[-1]:.0f} ms; {watcher.reason}", flush=True)
    print(f"{system}: at rest {min(found):.0f} to {max(found):.0f} ms after the cut, {len(found)} cuts")


if __name__ == "__main__":
    cut(*sys.argv[1:])
