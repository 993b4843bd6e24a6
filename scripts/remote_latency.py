"""Measure a policy elsewhere: what decisions take over a slow link, and how soon the arm rests when it is cut.

The link is a TCP proxy in this process, on loopback. It holds every byte back by a delay, and loses packets of 1448
bytes. TCP sends a lost one again, so the loss is simulated as the delay of that: one round trip, because the packets
behind it report the gap; 200 ms, Linux's shortest retransmission time-out, if it was the last of its burst. The bytes
behind it wait. Congestion control is not simulated.

Usage: remote_latency.py decisions [BUNDLE [SECONDS [SAMPLES]]]
       remote_latency.py cut [SYSTEM [CUTS [SAMPLES]]]
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np

from bid_ros.commands.serve import PRIORITY
from bid_ros.commands.tasks import task_of
from bid_ros.core.errors import RemoteError
from bid_ros.core.observation import Observation
from bid_ros.core.schedule import AbsoluteSchedule
from bid_ros.core.task import Task
from bid_ros.policy.agreement import random_observations
from bid_ros.policy.bundle import bundled_task, load_bundle
from bid_ros.policy.decide import DecisionMaker, bundle_decoder
from bid_ros.policy.latency import DelayMeter
from bid_ros.policy.registry import load_policy
from bid_ros.policy.remote.config import RemoteConfig
from bid_ros.policy.remote.pointing import ask_metadata, own_words, write_remote_bundle
from bid_ros.system.priority import raise_priority

HERE = "127.0.0.1"
PACKET, RETRANSMISSION_S = 1448, 0.2
LATE_NS = 40_000_000  # of a decision; then it is skipped, as the policy node does
READY_S, START_S, REST_M_S = 120.0, 60.0, 0.002
TIMEOUT_MS = 250.0
TURN_S = 5.0


class SlowLink:
    """A proxy in front of a port, in a thread of its own.

    Args:
        port: of the server on loopback.
        delay_s: in each direction, s.
        loss: share of the packets.
        seed: of the losses.

    Attributes:
        port: where it serves.
        passing: clear it, and nothing passes any more, as through a cable that is unplugged.
    """

    def __init__(self, port: int, delay_s: float = 0.0, loss: float = 0.0, seed: int = 0) -> None:
        self._behind, self._delay_s, self._loss = port, delay_s, loss
        self._rng = np.random.default_rng(seed)
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
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        giving = asyncio.create_task(self._give(waiting, sink))
        with suppress(OSError):
            while data := await source.read(1 << 20):
                now = time.monotonic()
                for first in range(0, len(data), PACKET):
                    last = first + PACKET >= len(data)
                    waiting.put_nowait((now + self._delay_s + self._repeated_s(last), data[first : first + PACKET]))
        waiting.put_nowait((0.0, b""))
        await giving

    def _repeated_s(self, last: bool) -> float:
        if self._rng.random() >= self._loss:
            return 0.0
        return RETRANSMISSION_S if last else 2 * self._delay_s

    async def _give(self, waiting: asyncio.Queue[tuple[float, bytes]], sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while True:
                due, data = await waiting.get()
                left = due - time.monotonic()
                if left > 0:
                    await asyncio.sleep(left)
                while not self.passing:
                    await asyncio.sleep(0.01)
                if not data or sink.is_closing():
                    break
                sink.write(data)
            sink.write_eof()


@contextmanager
def served(bundle: Path, samples: int) -> Iterator[int]:
    """Run ``bid serve`` as a process of its own; yield its port, and print its report at the end."""
    options = ["--port", "0", "--samples", str(samples)]
    command = [sys.executable, "-m", "bid_ros.cli", "serve", str(bundle), *options]
    back = lambda: os.nice(-os.nice(0))  # it takes its own priority  # noqa: E731
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=back)
    try:
        for line in process.stderr:
            if found := re.search(r"at ws://127\.0\.0\.1:(\d+);", line):
                break
        else:
            raise SystemExit("error: bid serve did not start")
        threading.Thread(target=lambda: deque(process.stderr, 0), daemon=True).start()
        yield int(found[1])
    finally:
        process.send_signal(signal.SIGINT)
        print(f"  the server: {process.stdout.read().strip()}", flush=True)
        process.wait()


def pointer(folder: Path, task: Task, port: int) -> Path:
    """Write the bundle that points to a port."""
    address = f"ws://{HERE}:{port}"
    settings = RemoteConfig(address, TIMEOUT_MS)
    write_remote_bundle(folder, task, settings, own_words(ask_metadata(settings, START_S)))
    return folder


def overlapping(seen: list[Observation]) -> list[Observation]:
    """Return observations that begin with the rows that the one before ended with, as those of a run do."""
    found = seen[:1]
    for each in seen[1:]:
        before = found[-1].values
        rows = {name: np.concatenate([before[name][1:], value[-1:]]) for name, value in each.values.items()}
        found.append(Observation(each.stamp_ns, rows))
    return found


class Decided:
    """A policy that decides on the task's schedule, for a few seconds at a time.

    Args:
        name: of its row in the table.
        bundle: its folder.
        task: its task.
        samples: N.
    """

    def __init__(self, name: str, bundle: Path, task: Task, samples: int) -> None:
        found = load_bundle(bundle, task)
        policy = load_policy(found, task)
        self._name, self._task, self._seen = name, task, overlapping(random_observations(found, task, 50))
        self._policy, self._sizes_kb = policy, list[float]()
        self._maker = DecisionMaker(policy, bundle_decoder("bid+delay", found, task, samples, 1), task)
        self._times_ms: list[float] = []
        self._told: list[int] = []
        self._missed = self._failed = 0
        self._seconds = 0.0
        policy.warm_up(samples)

    def decide(self, seconds: float) -> None:
        """Decide as the policy node does. The delay is measured anew."""
        self._maker.reset()
        self._maker.delay = None
        meter = DelayMeter(self._task.dt_ns)
        schedule = AbsoluteSchedule(self._task.dt_ns, time.monotonic_ns(), LATE_NS)
        for _ in range(round(seconds * 1e9 / self._task.dt_ns)):
            if self._turn(schedule, meter):
                self._told.append(meter.steps)
        self._missed += schedule.skipped
        self._seconds += seconds + schedule.skipped * self._task.dt_ns / 1e9

    def _turn(self, schedule: AbsoluteSchedule, meter: DelayMeter) -> bool:
        """Wait for the next decision and make it; return whether there was one."""
        tick = None
        while tick is None:
            time.sleep(max(0.0, (schedule.due_ns - time.monotonic_ns()) / 1e9))
            tick = schedule.take(time.monotonic_ns())
        seen = Observation(tick.due_ns, self._seen[tick.index % len(self._seen)].values)
        begin = time.monotonic_ns()
        try:
            self._maker.decide(seen)
        except RemoteError:
            self._failed += 1
            return False
        took = time.monotonic_ns() - begin
        meter.took(took)
        self._sizes_kb.append(getattr(self._policy, "vitals", {}).get("question_kb", 0.0))
        self._maker.delay = meter.steps
        self._times_ms.append(took / 1e6)
        return True

    def row(self) -> str:
        """Return a row of the table."""
        times = self._times_ms
        p50, p99 = np.percentile(times, [50, 99])
        gone = f"{self._missed + self._failed} ({self._failed} given up)"
        shares = np.bincount(self._told) / len(self._told)
        told = ", ".join(f"{number}: {100 * share:.0f} %" for number, share in enumerate(shares) if share)
        rate = f"{len(times) / self._seconds:.2f}"
        size = f"{np.median(self._sizes_kb):.1f}"
        return f"| {self._name} | {size} | {rate} | {p50:.1f} | {p99:.1f} | {max(times):.1f} | {gone} | {told} |"


def decisions(bundle: str = "models/franka_place", seconds: str = "60", samples: str = "16") -> None:
    """Print what decisions take here, on loopback, and over slow links. They take turns: load hits all alike."""
    task, count = task_of("", bundled_task(bundle), bundle), int(samples)
    with ExitStack() as stack:
        port = stack.enter_context(served(Path(bundle), count))
        raise_priority(PRIORITY, every_thread=True)  # as the policy node
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        all_of = [
            Decided("in this process", Path(bundle), task, count),
            Decided("bid serve, loopback", pointer(folder / "direct", task, port), task, count),
        ]
        for delay_ms, loss in ((5, 0.0), (5, 0.01)):
            link = SlowLink(port, delay_ms / 1000, loss)
            stack.callback(link.close)
            name = f"bid serve, {delay_ms} ms each way, {100 * loss:.0f} % loss"
            all_of.append(Decided(name, pointer(folder / f"{delay_ms}_{loss}", task, link.port), task, count))
        for _ in range(round(float(seconds) / TURN_S)):
            for each in all_of:
                each.decide(TURN_S)
        print("| policy | kB a question | decisions a second | p50 ms | p99 ms | max ms | missed | delay told, steps |")
        print("|---|---|---|---|---|---|---|---|")
        for each in all_of:
            print(each.row(), flush=True)


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


def rest_after_cut_ms(watcher: Watcher, system: str, bundle: Path, link: SlowLink, samples: str, turn: int) -> float:
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
        link = SlowLink(port, 0.005, 0.0)
        stack.callback(link.close)
        pointed = pointer(folder / "remote", task, link.port)
        for turn in range(int(cuts)):
            found.append(rest_after_cut_ms(watcher, system, pointed, link, samples, turn))
            print(f"  cut {turn + 1}: at rest after {found[-1]:.0f} ms; {watcher.reason}", flush=True)
    print(f"{system}: at rest {min(found):.0f} to {max(found):.0f} ms after the cut, {len(found)} cuts")


if __name__ == "__main__":
    verbs = {"decisions": decisions, "cut": cut}
    if len(sys.argv) < 2 or sys.argv[1] not in verbs:
        raise SystemExit(__doc__)
    verbs[sys.argv[1]](*sys.argv[2:])
