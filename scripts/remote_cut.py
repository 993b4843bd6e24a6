"""Measure how soon the arm of a twin rests when the link to its policy is cut.

The link is a TCP proxy on loopback. When it is cut, nothing passes any more, and no end is told.

Usage: remote_cut.py [SYSTEM [CUTS [SAMPLES]]]
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
from remote_server import HERE, pointer, served

from bid_ros.commands.tasks import task_of
from bid_ros.policy.bundle import bundled_task

READY_S, REST_M_S = 120.0, 0.002


class CutLink:
    """A TCP proxy in front of a port of loopback, in a thread of its own.

    Args:
        port: of the server.

    Attributes:
        port: where it serves.
        passing: clear it, and nothing passes any more, as through a cable that is unplugged.
    """

    def __init__(self, port: int) -> None:
        self._behind = port
        self.passing = True
        self.port = 0
        self._writers: list[asyncio.StreamWriter] = []
        self._loop = asyncio.new_event_loop()
        self._end, ready = asyncio.Event(), threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(ready),), daemon=True)
        self._thread.start()
        ready.wait()

    def close(self) -> None:
        """End the proxy and its connections."""
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    async def _serve(self, ready: threading.Event) -> None:
        server = await asyncio.start_server(self._client, HERE, 0, limit=1 << 20)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._end.wait()
        server.close()
        self.passing = True
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            behind, ahead = await asyncio.open_connection(HERE, self._behind, limit=1 << 20)
            self._writers += [writer, ahead]
            await asyncio.gather(self._pass(reader, ahead), self._pass(behind, writer))

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Pass bytes in one direction, in order."""
        with suppress(OSError):
            while data := await source.read(1 << 20):
                while not self.passing:
                    await asyncio.sleep(0.01)
                if sink.is_closing():
                    break
                sink.write(data)
            sink.write_eof()


class Watcher:
    """Hears the arm."""

    def __init__(self) -> None:
        import rclpy
        from rclpy.node import Node

        from bid_msgs.msg import ArmStatus, Decision
        from bid_ros.core.stamps import stamp_ns
        from bid_ros.core.topics import ARM_STATUS, DECISION, TOPICS
        from bid_ros.nodes.executor import FastExecutor
        from bid_ros.nodes.topics import profile

        rclpy.init()
        self._node, self._executor, self.stopped = Node("watcher"), FastExecutor(), ArmStatus.STOPPED
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
