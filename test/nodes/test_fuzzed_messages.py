"""Odd chunks, grants, heartbeats and resets at random: no node ends, each refusal is one sentence, limits are kept.

BID_FUZZ_S says for how long, 20 s if it is not given. BID_FUZZ_SEED repeats what was sent, 0 if it is not given.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from qos import COMMAND, EVERY_STATE, SCENES, STATE
from ros_bench import Bench
from std_srvs.srv import Trigger
from ur_twin import free_address

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import ArmStatus, Grant, Heartbeat, SafetyState, TwinScene
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.poses import pose_arrays
from bid_ros.core.rotation import matrix_from_quaternion, matrix_to_6d
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.topics import GRANT
from bid_ros.nodes.ros_messages import chunk_to_message, duration_message
from bid_ros.robots.registry import load_arm_config
from bid_ros.robots.ur.kinematics import UR5E
from bid_ros.system.description import describe
from bid_ros.system.folder import find_system
from bid_ros.system.run import RunArguments

FUZZ_S, SEED = float(os.environ.get("BID_FUZZ_S", "20")), int(os.environ.get("BID_FUZZ_SEED", "0"))
START_S = 60.0
pytestmark = [pytest.mark.long, pytest.mark.timeout(FUZZ_S + 2 * START_S)]
ROWS, OPEN = 12, 0.08
WINDOW_S = 0.2  # over which the speed of the tool is taken, as a busy computer steps the twin unevenly
SLACK = 1.1  # of the limits, for the same reason
EDGE_M = 0.01  # by which the tool lies beside its set-point
RESETS = ("/arm/reset", "/safety/reset", "/arm/reset")
ODD = (float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 1e-308, 1e9, -1.0, 0.0)
NAMES = ("", "policy", "teleop", "episode", "arm", "safety", "camera", "\U0001f916" * 50, "a b", "../x", "x" * 5000)


class Fuzz:
    """Twin, safety and arm node as ``bid up ur5_pick`` starts them. The test plays policy, camera and granter."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.chance = bench, random.Random(SEED)
        system = find_system("ur5_pick")
        specs = {spec.name: dict(spec.parameters) for spec in describe(system, RunArguments(bundle="none"))}
        self.task = system.task
        address = free_address()
        config = load_arm_config(system.file("robot.yaml"), address, True, self.task.robot)
        self._offset = [*config.tool_offset, 0.0, 0.0, 0.0]
        specs["twin"] |= {"address": address, "scene_rate_hz": 60}
        specs["arm"] |= {"robot_ip": address, "connect_wait_s": START_S}
        self.status, self.safety = ArmStatus(), SafetyState()
        self.said: set[str] = set()
        self.fastest = self.outside = 0.0
        self.sequence = self.sent = self.moved = 0
        self.printed: list[bytes] = []
        self._places: deque[tuple[int, np.ndarray]] = deque(maxlen=60)
        node = bench.node
        self.chunks = node.create_publisher(ChunkMessage, "/policy/chunk", COMMAND)
        self.beats = node.create_publisher(Heartbeat, "/heartbeat", STATE)
        self.grants = node.create_publisher(Grant, GRANT, STATE)
        self.resets = {name: node.create_client(Trigger, name) for name in RESETS}
        node.create_subscription(ArmStatus, "/arm/status", self._on_status, EVERY_STATE)
        node.create_subscription(SafetyState, "/safety/state", self._on_safety, EVERY_STATE)
        node.create_subscription(TwinScene, "/twin/scene", self._on_scene, SCENES)
        node.create_timer(0.05, self._live)
        for name in ("twin", "safety", "arm"):
            os.set_blocking(bench.start(name, specs[name]).stdout.fileno(), False)
        assert bench.until(lambda: self.status.mode == ArmStatus.HOLDING, START_S), self.status
        assert bench.until(lambda: all(client.service_is_ready() for client in self.resets.values()), START_S)

    def _live(self) -> None:
        for name in ("camera", "policy"):
            self.beats.publish(Heartbeat(node=name))
        self.grants.publish(self.grant())

    def grant(self) -> Grant:
        """Return an honest grant."""
        return Grant(granter="bench", sources=["policy"], duration=duration_message(500_000_000))

    def chunk(self) -> ChunkMessage:
        """Return an honest chunk: a wave of a random size about where the tool is, some of it too fast."""
        now, (place, turn) = time.time_ns(), pose_arrays(self.status.tool)
        rows = np.tile([*place, *matrix_to_6d(matrix_from_quaternion(turn)), OPEN], (ROWS, 1))
        size = self.chance.choice((0.01, 0.03, 0.03, 0.06))
        axis, phases = self.chance.randrange(3), np.arange(ROWS) * self.chance.choice((0.2, 0.4, 0.8))
        rows[:, axis] += size * (1.0 - np.cos(phases))
        self.sequence += 1
        chunk = ActionChunk(now, self.task.dt_ns, rows, source="policy", sequence=self.sequence)
        return chunk_to_message(chunk, self.task, "")

    def odd_chunk(self) -> ChunkMessage:
        """Return a chunk with one to three odd fields."""
        message = self.chunk()
        for _ in range(self.chance.randint(1, 3)):
            self.chance.choice(CHANGES)(message, self.chance)
        return message

    def odd_grant(self) -> Grant:
        """Return a grant with odd fields."""
        grant, chance = self.grant(), self.chance
        grant.sources = [chance.choice(NAMES) for _ in range(chance.choice((0, 1, 2, 300)))]
        grant.granter, grant.robot = chance.choice(NAMES), chance.choice(("", "", *NAMES))
        grant.duration = duration_message(chance.choice((-1, 0, 1, 999_999_999, 2**62)))
        return grant

    def odd_beat(self) -> Heartbeat:
        """Return a heartbeat with odd fields. Rarely one that tells two senders apart, since that stops the arm."""
        chance = self.chance
        number = chance.choice((*[0] * 9, chance.randrange(2**64)))
        beat = Heartbeat(node=chance.choice(NAMES), robot=chance.choice(NAMES), sequence=number)
        beat.work_age = chance.choice((float("nan"), float("inf"), -1.0, 1e30, 0.0))
        return beat

    def reset(self) -> None:
        """Ask for every reset, as ``bid reset`` does, whatever comes of it."""
        for name in RESETS:
            answer = self.resets[name].call_async(Trigger.Request())
            assert self.bench.until(answer.done, 30.0), f"{name} answers nothing"

    def turn(self) -> None:
        """Move for a while, send odd messages of a kind, and reset."""
        for process in self.bench.processes.values():  # a node waits where nobody reads what it prints
            with contextlib.suppress(BlockingIOError):
                self.printed.append(os.read(process.stdout.fileno(), 1 << 20))
        if self.status.mode not in (ArmStatus.HOLDING, ArmStatus.TRACKING) or self.safety.state != SafetyState.RUNNING:
            self.reset()
        self._send(lambda: self.chunks.publish(self.chunk()), self.chance.uniform(0.3, 1.0))
        odd: tuple[Callable[[], Any], ...] = (
            lambda: self.chunks.publish(self.odd_chunk()),
            lambda: self.grants.publish(self.odd_grant()),
            lambda: self.beats.publish(self.odd_beat()),
            self.reset,
        )
        self._send(self.chance.choice((odd[0], *odd)), self.chance.uniform(0.1, 0.5))

    def _send(self, what: Callable[[], Any], for_s: float) -> None:
        end = time.monotonic() + for_s
        while time.monotonic() < end:
            what()
            self.sent += 1
            pause = time.monotonic() + self.chance.choice((0.0, 0.01, 0.1))
            self.bench.until(lambda until=pause: time.monotonic() > until, 0.2)

    def _on_status(self, message: ArmStatus) -> None:
        self.status = message
        self.said.add(message.reason)
        self.moved += message.mode == ArmStatus.TRACKING

    def _on_safety(self, message: SafetyState) -> None:
        self.safety = message
        self.said.add(message.reason)

    def _on_scene(self, message: TwinScene) -> None:
        at, place = stamp_ns(message), np.asarray(UR5E.forward(message.qpos[:6].tolist(), self._offset)[:3])
        while self._places and at - self._places[0][0] > WINDOW_S * NANOSECONDS:
            before, there = self._places.popleft()
            self.fastest = max(self.fastest, float(np.linalg.norm(place - there)) / ((at - before) / NANOSECONDS))
        self._places.append((at, place))
        limits = self.task.limits
        low, high = np.subtract(limits.workspace_min, place), np.subtract(place, limits.workspace_max)
        self.outside = max(self.outside, float(low.max()), float(high.max()))


def _values(message: ChunkMessage, chance: random.Random) -> None:
    values = np.array(message.actions)
    for _ in range(chance.choice((1, 1, 5))):
        if values.size:
            values[chance.randrange(values.size)] = chance.choice(ODD)
    message.actions = values.tolist()


def _away(message: ChunkMessage, chance: random.Random) -> None:
    rows = np.array(message.actions)
    if rows.size == message.steps * message.dims and rows.size:
        rows = rows.reshape(message.steps, message.dims)
        column = chance.randrange(message.dims)
        rows[chance.randrange(message.steps) :, column] += chance.choice((-0.5, -0.1, 0.02, 0.1, 0.5, 2.0))
        message.actions = rows.ravel().tolist()


def _time(message: ChunkMessage, chance: random.Random) -> None:
    message.header.stamp.sec = max(-(2**31), message.header.stamp.sec + chance.choice((-3600, -1, 1, 3600, 2**30)))


def _grid(message: ChunkMessage, chance: random.Random) -> None:
    message.dt = duration_message(chance.choice((-1, 0, 1, 1_000_000, 99_999_999, 100_000_001, 2**61)))


def _sizes(message: ChunkMessage, chance: random.Random) -> None:
    message.steps, message.dims = chance.choice(((0, 0), (1, 10), (2**32 - 1, 2**32 - 1), (120, 1), (10, 12), (0, 10)))


def _length(message: ChunkMessage, chance: random.Random) -> None:
    message.actions = [0.1] * chance.choice((0, 1, 119, 121, 100_000))


def _words(message: ChunkMessage, chance: random.Random) -> None:
    message.source, message.robot = chance.choice(NAMES), chance.choice(("", *NAMES))
    message.header.frame_id = chance.choice((message.header.frame_id, *NAMES))


def _features(message: ChunkMessage, chance: random.Random) -> None:
    names = [*message.features, chance.choice(NAMES)]
    message.features = chance.sample(names, chance.randrange(len(names) + 1))


def _scale(message: ChunkMessage, chance: random.Random) -> None:
    message.scale = chance.choice(ODD)


CHANGES = (_values, _away, _time, _grid, _sizes, _length, _words, _features, _scale)


def test_nothing_odd_ends_a_node_or_breaks_a_limit(bench, record_property):
    fuzz = Fuzz(bench)
    end = time.monotonic() + FUZZ_S
    while time.monotonic() < end:
        fuzz.turn()
        ended = [name for name, process in bench.processes.items() if process.poll() is not None]
        assert not ended, f"seed {SEED}, after {fuzz.sent} messages"
    fuzz.reset()
    for process in bench.processes.values():
        os.set_blocking(process.stdout.fileno(), True)
    assert b"Traceback" not in b"".join(fuzz.printed)
    said = sorted(filter(None, fuzz.said))
    print("\n".join(said))
    print(f"{fuzz.sent} messages, {len(said)} reasons, fastest {fuzz.fastest:.3f} m/s, outside {fuzz.outside:.3f} m")
    record_property("messages", fuzz.sent)
    assert fuzz.moved > 10 and fuzz.fastest > 0.02, "the arm never moved, so this shows nothing"
    assert fuzz.fastest <= SLACK * fuzz.task.limits.max_speed
    assert fuzz.outside <= EDGE_M
    assert not [text for text in said if "\n" in text or len(text) > 400]
    assert bench.until(lambda: fuzz.safety.state == SafetyState.RUNNING, each=fuzz.reset), fuzz.safety.reason
