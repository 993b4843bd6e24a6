"""Plays policy and safety node for an arm node as a real process, on a twin that is a process of its own."""

from __future__ import annotations

import subprocess
import time

import numpy as np
from geometry_msgs.msg import PoseStamped
from qos import COMMAND, EVERY_STATE, STATE
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from ur_twin import free_address

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import ArmStatus, Heartbeat, SafetyState
from bid_ros.control.joint_chunks import TaskChunks
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.poses import pose_arrays
from bid_ros.core.rotation import matrix_from_quaternion, matrix_to_6d
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.task import load_task
from bid_ros.core.topics import STATE_QOS
from bid_ros.nodes.ros_messages import chunk_to_message
from bid_ros.nodes.topics import profile
from bid_ros.system.folder import find_system

START_S = 60.0  # twin and arm node start beside whatever else this computer does
STATE_PERIOD_S = 0.02
# How late a state can be told: one period of the status, and one of a computer that runs other tests.
MARGIN_S = 0.1
SPEED = 0.03  # m/s of the chunks that are streamed
LENGTH = 0.2  # m, after which they rest: the arm reaches no further
# What the arm node says if the computer holds up this process, the arm node or its driver process.
HOLD_UPS = ("no sign of life", "no set-point", "nobody renewed", "silent")
HELD_UP_S = 0.2  # between two heartbeats: the arm may rightly have stopped, this process was not run in time


def arm_parameters(address: str, name: str = "franka_place", **changes):
    system = find_system(name)
    return {
        "task": str(system.file("task.yaml")),
        "arm": system.task.robot,
        "arm_config": str(system.file("robot.yaml")),
        "robot_ip": address,
        "twin": True,
        "connect_wait_s": START_S,
        **changes,
    }


class Harness:
    """Plays policy and safety: heartbeats, chunks, and what the arm node says to them."""

    def __init__(self, bench, name: str = "franka_place", late: bool = False, **changes):
        """``late``: the twin is started by the test, after the arm node."""
        self.bench, self.name = bench, name
        system = find_system(name)
        task = str(system.file("task.yaml"))
        self.task = load_task(task)
        self.of_task = TaskChunks(self.task, system.arm())  # chunks below are of the tool
        self.alive = {"policy", "safety"}
        self.foreign: set[str] = set()
        self.statuses: list[ArmStatus] = []
        self.tool = None
        self.joints: list[JointState] = []
        self.start = None
        self.started_ns = 0
        self.first_x, self.direction = 0.0, 1.0
        self.sent: list[ActionChunk] = []
        self.streaming = False
        self.steps = 5
        self.beaten = 1000
        self._beaten_s, self._longest_gap_s = time.monotonic(), 0.0
        node = bench.node
        self._be_safety()
        self._beats = node.create_publisher(Heartbeat, "/heartbeat", STATE)
        node.create_subscription(ArmStatus, "/arm/status", self.statuses.append, profile(STATE_QOS, 1000))
        node.create_subscription(PoseStamped, "/arm/tool_pose", self._on_pose, EVERY_STATE)
        node.create_timer(0.05, self._beat)
        node.create_timer(0.1, self._stream)
        self._reset = node.create_client(Trigger, "/arm/reset")
        self._reset_safety = node.create_client(Trigger, "/safety/reset")
        bench.grant("policy")
        self.address = free_address()
        if not late:
            bench.start("twin", {"task": task, "address": self.address})
        bench.start("arm", arm_parameters(self.address, name, **changes))

    def _on_pose(self, message):
        self.tool = pose_arrays(message.pose)

    def _beat(self):
        self.beaten += 1
        now = time.monotonic()
        self._longest_gap_s = max(self._longest_gap_s, now - self._beaten_s)
        self._beaten_s = now
        for name in self.alive:
            robot = "other" if name in self.foreign else ""
            self._beats.publish(Heartbeat(node=name, robot=robot, sequence=self.beaten))

    def _stream(self):
        if self.streaming:
            self.send()

    def send(self, steps: int | None = None):
        """Send the next chunk of a straight line in x that began at the first one, and keeps within reach."""
        now = time.time_ns()
        if self.start is None:
            self.start, self.started_ns = self.tool, now
            x = float(self.tool[0][0])
            self.first_x = self.first_x or x
            self.direction = 1.0 if x < self.first_x + 0.02 else -1.0
            self.of_task.begin(self.statuses[-1].joint_positions, now)
        position, quaternion = self.start
        steps = steps or self.steps
        times = now + self.task.dt_ns * np.arange(steps)
        rows = np.tile([*position, *matrix_to_6d(matrix_from_quaternion(quaternion)), 0.08], (steps, 1))
        rows[:, 0] += self.direction * np.minimum(SPEED * (times - self.started_ns) / NANOSECONDS, LENGTH)
        chunk = ActionChunk(now, self.task.dt_ns, rows, source="policy", sequence=len(self.sent))
        self.sent.append(chunk)
        made = self.of_task.of(chunk)
        self._chunks.publish(chunk_to_message(made, self.task, "other" if "chunks" in self.foreign else ""))

    def mode(self) -> int:
        return self.statuses[-1].mode if self.statuses else -1

    def until_mode(self, *modes: int, timeout_s: float = 20.0) -> bool:
        return self.bench.until(lambda: self.mode() in modes, timeout_s)

    def track(self, steps: int = 5):
        """Stream until the arm moves; once more if this process itself was held up, and the arm stopped for that."""
        self.steps, self.streaming = steps, True
        assert self.bench.until(lambda: self._moving() or self._held_up(), 20.0), self.statuses[-1]
        if self._held_up():
            self._free_everybody()
        assert self.bench.until(self._moving, 20.0), f"the arm does not follow: {self.statuses[-1]}"

    def cease(self) -> ActionChunk:
        """Send no more chunks; return the last one once the arm holds. Again if a hold-up stopped the arm before."""
        for _ in range(3):
            chunk, self.streaming = self.sent[-1], False
            assert self.until_mode(ArmStatus.HOLDING, ArmStatus.STOPPED), self.statuses[-1]
            if self.mode() == ArmStatus.HOLDING:
                return chunk
            assert any(words in self.statuses[-1].reason for words in HOLD_UPS), self.statuses[-1]
            self._free_everybody()
            assert self.bench.until(lambda: self._moving() and self.moved() > 0.02, 20.0), self.statuses[-1]
        raise AssertionError(f"held up three times: {self.statuses[-1]}")

    def _held_up(self) -> bool:
        return self.mode() == ArmStatus.STOPPED and self._longest_gap_s > HELD_UP_S

    def _free_everybody(self) -> None:
        """Reset safety, if it is a node of its own, and the arm; the next line begins where the tool is."""
        self.streaming = False
        if "safety" in self.bench.processes:
            future = self._reset_safety.call_async(Trigger.Request())
            assert self.bench.until(future.done, 20.0)
        assert self.bench.until(self._free, 20.0), self.statuses[-1]
        self.start, self.streaming, self._longest_gap_s = None, True, 0.0

    def _moving(self) -> bool:
        """Whether the arm moves now: after a hold-up of this process, old states come first."""
        if self.mode() != ArmStatus.TRACKING or age_s(self.statuses[-1], 0) < time.time() - HELD_UP_S:
            return False
        return self.direction * self.statuses[-1].reference_twist[0] > 0.8 * SPEED

    def moved(self) -> float:
        """Return how far the tool went from where its line began, in m."""
        return self.direction * float(self.tool[0][0] - self.start[0][0])

    def first(self, since_ns: int, condition):
        """First status after an instant that meets a condition."""
        return next(s for s in self.statuses if stamp_ns(s) > since_ns and condition(s))

    def _be_safety(self) -> None:
        self._chunks = self.bench.node.create_publisher(ChunkMessage, "/safety/chunk", COMMAND)
        self.states = self.bench.node.create_publisher(SafetyState, "/safety/state", STATE)

    def hand_over_to_safety(self) -> subprocess.Popen[str]:
        """Start a real safety node in place of this one, and wait until the arm has heard it.

        Another listener may hear it earlier, so only the arm can say: from its first chunk on it refuses a reset
        while safety is silent.
        """
        self.alive.remove("safety")
        assert self.bench.until(lambda: not self.reset().success, START_S, each=self.send)
        self.start = None
        for publisher in (self._chunks, self.states):  # the arm obeys one safety node
            self.bench.node.destroy_publisher(publisher)
        self._chunks = self.bench.node.create_publisher(ChunkMessage, "/policy/chunk", COMMAND)
        task = str(find_system("franka_place").file("task.yaml"))
        process = self.bench.start("safety", {"task": task, "twin": True, "required": ["policy"]})
        assert self.bench.until(lambda: self.reset().success, START_S)
        return process

    def rest(self) -> None:
        """Be as at the beginning: nodes alive, granted, no chunks, the arm free and at rest."""
        self.alive, self.foreign, self.streaming, self.start = {"policy", "safety"}, set(), False, None
        self.bench.grant("policy")
        if "safety" in self.bench.processes:
            self.bench.processes["safety"].terminate()
            self.bench.finish("safety")
            self.bench.node.destroy_publisher(self._chunks)
            self._be_safety()
        assert self.bench.until(self._free, START_S), self.statuses[-1]
        self.statuses.clear()
        self.sent.clear()
        self._longest_gap_s = 0.0
        assert self.until_mode(ArmStatus.HOLDING)

    def _free(self) -> bool:
        """Whether the arm holds; ask for a reset while it does not."""
        if self.mode() in (ArmStatus.STOPPED, ArmStatus.FAULT):
            self.reset()
        return self.mode() == ArmStatus.HOLDING

    def reset(self) -> Trigger.Response:
        future = self.ask_reset()
        assert self.bench.until(future.done, 20.0)
        return future.result()

    def ask_reset(self) -> Future:
        return self._reset.call_async(Trigger.Request())


def up(bench, name: str, **changes) -> Harness:
    harness = Harness(bench, name, **changes)
    assert bench.until(lambda: harness.statuses and harness.tool is not None, START_S), "the arm node did not come up"
    return harness


def speed(status: ArmStatus) -> float:
    return float(np.linalg.norm(status.reference_twist[:3]))


def stopping(status: ArmStatus) -> bool:
    return status.mode != ArmStatus.TRACKING


def age_s(status: ArmStatus, since_ns: int) -> float:
    return (stamp_ns(status) - since_ns) / NANOSECONDS
