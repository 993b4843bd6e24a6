"""Episode runner: prepares, starts, times, scores and repeats episodes, then writes ``run.json``."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.interpolate  # noqa: F401  # a third of a second, in which the first motion would hold the node up
from geometry_msgs.msg import PoseStamped
from numpy.typing import NDArray
from rclpy.duration import Duration

from bid_msgs.msg import ActionChunk as ChunkMessage
from bid_msgs.msg import ArmStatus, EpisodeEvent, SafetyState
from bid_msgs.msg import Decision as DecisionMessage
from bid_ros.evaluation.episode import EpisodeStopped, RunLog, scene_of
from bid_ros.evaluation.summary import EpisodeResult, format_summary, write_run
from bid_ros.evaluation.trial import build_trial
from bid_ros.nodes.base import BidNode, Parameter, run_node
from bid_ros.nodes.convert import chunk_to_message, pose_arrays
from bid_ros.nodes.operator import RobotOperator, TwinOperator
from bid_ros.nodes.qos import COMMAND, DECISION, EVENT, STATE
from bid_ros.progress import PROGRESS
from bid_ros.rotation import matrix_from_quaternion, matrix_to_6d
from bid_ros.task import load_task
from bid_ros.teleop import DEMONSTRATORS, HomingPlan, homing_within

PARAMETERS = (
    Parameter("task", "", "path of the task file"),
    Parameter("bundle", "", "folder of the policy bundle, for the record; empty in teleoperation"),
    Parameter("episodes", 3, "number of episodes", 1, 100000),
    Parameter("seed", 0, "seed of the first episode; episode i uses seed + i", 0, 2**31 - 1),
    Parameter("labels", [""], "label of each episode, repeated in turn: the decoder, or clean and diverse"),
    Parameter("moving", 0.03, "speed of the cup in m/s, 0 = static", 0.0, 0.2),
    Parameter("twin", True, "the system runs in its twin; otherwise an operator prepares and judges"),
    Parameter("out", "", "folder for run.json"),
    Parameter("decoder", "", "decoder, for the record"),
    Parameter("samples", 0, "N, for the record", 0, 256),
    Parameter("action_horizon", 1, "actions executed a decision, for the record", 1, 64),
    Parameter("ready_timeout_s", 30.0, "time in s for every node to be ready", 1.0, 600.0),
    Parameter(
        "record_rest", 0.0, "s to stay in the episode after success (demonstrations: the operator retreats)", 0.0, 10.0
    ),
)
CHUNK_STEPS = 10
CHUNK_DT_NS = 50_000_000
ACKNOWLEDGED_S = 0.5  # within which everybody who listens has the end of an episode


class EpisodeNode(BidNode):
    """Runs its sequence in one thread; callbacks only store what arrives."""

    def __init__(self) -> None:
        super().__init__("episode", PARAMETERS)
        self._task = load_task(self.value("task"))
        self._homing = homing_within(self._task.limits)
        self._status: ArmStatus | None = None
        self._tool: Any = None
        self._safety: SafetyState | None = None
        self._running: RunLog | None = None
        self._log = RunLog()
        self._sequence = 0
        self._exit_status = 1
        self._arrived = threading.Condition()
        self._chunks = self.create_publisher(ChunkMessage, "/episode/chunk", COMMAND)
        self._events = self.create_publisher(EpisodeEvent, "/episode/event", EVENT)
        self.create_subscription(ArmStatus, "/arm/status", self._on_status, STATE)
        self.create_subscription(PoseStamped, "/arm/tool_pose", self._on_tool, STATE)
        self.create_subscription(SafetyState, "/safety/state", self._on_safety, STATE)
        self.create_subscription(DecisionMessage, "/policy/decision", self._on_decision, DECISION)
        trial = build_trial(self._task.name)
        demonstrator = DEMONSTRATORS.get(self._task.name)
        self._operator = TwinOperator(self, trial, demonstrator) if self.value("twin") else RobotOperator(self, trial)
        self._thread = threading.Thread(target=self._run, name="episodes", daemon=True)
        self._closing = threading.Event()
        self._finished = threading.Event()
        self._thread.start()
        self.create_timer(0.1, self._end_when_finished)

    def diagnose(self) -> tuple[bool, str, Mapping[str, object]]:
        """Episodes so far."""
        return True, "running episodes", {"episodes": len(self._log.results), "successes": self._log.successes}

    def close(self) -> None:
        """End the sequence; an unfinished episode counts as aborted and the run is written all the same."""
        self._closing.set()
        with self._arrived:
            self._arrived.notify_all()
        self._thread.join(timeout=3.0)

    def status(self) -> ArmStatus:
        """Newest arm status; only called once the arm is ready."""
        assert self._status is not None
        return self._status

    def tool_position(self) -> NDArray[np.float64]:
        """Newest tool position ``(3,)`` in m, base frame; only called once the arm is ready."""
        position: NDArray[np.float64] = self._tool[0]
        return position

    def wait(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Block the sequence until a condition holds.

        Raises:
            EpisodeStopped: safety or the arm stopped, the node is closing, or the time is over.
        """
        deadline = time.monotonic() + timeout_s
        with self._arrived:
            while not condition():
                self.check()
                if not self._arrived.wait(timeout=0.05) and time.monotonic() > deadline:
                    raise EpisodeStopped(f"aborted: {what} did not happen within {timeout_s:g} s", safety=False)

    def check(self) -> None:
        """Raise EpisodeStopped if safety or the arm stopped or the node is closing."""
        if self._closing.is_set() or not self.context.ok():
            raise EpisodeStopped("aborted: shut down", safety=False)
        if self._safety is not None and self._safety.state == SafetyState.STOPPED:
            raise EpisodeStopped(f"stopped: {self._safety.reason}", safety=True)
        if self._status is not None and self._status.mode in (ArmStatus.STOPPED, ArmStatus.FAULT):
            raise EpisodeStopped(f"stopped: {self._status.reason}", safety=True)

    def move_to(self, position: Any, rotation_6d: Any, gripper: float, settle_s: float = 0.3) -> None:
        """Move the tool there through the safety node and hold it for ``settle_s``; blocks."""
        tool, quaternion = self._tool
        start = matrix_to_6d(matrix_from_quaternion(quaternion))
        plan = HomingPlan(tool, start, position, rotation_6d, gripper, self.now_ns(), self._homing)
        self._follow(plan, plan.duration + settle_s)

    def hold(
        self, position: Any, rotation_6d: Any, gripper: float, until: Callable[[], bool], timeout_s: float, what: str
    ) -> None:
        """Hold the tool at a pose until a condition holds; raises EpisodeStopped as :meth:`wait`."""
        plan = HomingPlan(position, rotation_6d, position, rotation_6d, gripper, self.now_ns())
        self._follow(plan, timeout_s, until)
        if not until():
            raise EpisodeStopped(f"aborted: {what} did not happen within {timeout_s:g} s", safety=False)

    def _follow(self, plan: HomingPlan, duration_s: float, until: Callable[[], bool] | None = None) -> None:
        end = time.monotonic() + duration_s
        while time.monotonic() < end and not (until is not None and until()):
            self.check()
            chunk = plan.chunk_at(self.now_ns(), CHUNK_STEPS, CHUNK_DT_NS)
            self._chunks.publish(chunk_to_message(chunk, self._task))
            self._closing.wait(0.05)

    def _on_status(self, message: ArmStatus) -> None:
        with self._arrived:
            self._status = message
            if self._running is not None and message.mode == ArmStatus.TRACKING and message.source == "policy":
                self._running.command_age_ms.append(message.command_age * 1e3)
            self._arrived.notify_all()

    def _on_tool(self, message: PoseStamped) -> None:
        self._tool = pose_arrays(message.pose)

    def _on_safety(self, message: SafetyState) -> None:
        with self._arrived:
            self._safety = message
            self._arrived.notify_all()

    def _on_decision(self, message: DecisionMessage) -> None:
        if self._running is not None:
            self._running.add_decision(message.decision_ms, message.missed)

    def _run(self) -> None:
        status = 1
        try:
            self._say("waiting for the nodes")
            ready_s = self.value("ready_timeout_s")
            self.wait(lambda: self._status is not None and self._tool is not None, ready_s, "a sign of life of the arm")
            try:
                self.wait(self._safety_ready, ready_s, "a sign of life of every required node")
            except EpisodeStopped as stop:
                waiting = self._safety.reason if self._safety is not None else "the safety node says nothing"
                raise EpisodeStopped(f"{stop}: {waiting}", stop.safety) from None
            for episode in range(self.value("episodes")):
                self._episode(episode)
            status = 0
        except EpisodeStopped as stop:
            status = 3 if stop.safety else 1
            print(f"{stop}", file=sys.stderr, flush=True)
        finally:
            try:
                self._finish()
                self._exit_status = status
            finally:
                self._finished.set()

    def _safety_ready(self) -> bool:
        return self._safety is not None and self._safety.state == SafetyState.RUNNING

    def _episode(self, episode: int) -> None:
        seed = self.value("seed") + episode
        labels = self.value("labels")
        event = EpisodeEvent(episode=episode, seed=seed, label=labels[episode % len(labels)])
        self._publish(event, EpisodeEvent.PREPARE)
        self._say(f"episode {episode + 1}/{self.value('episodes')}  preparing")
        self._operator.prepare(scene_of(self._task, seed), seed, self.value("moving"), event.label)
        self._publish(event, EpisodeEvent.START)
        started = time.monotonic()
        self._running = self._log
        self._log.start_episode()
        try:
            outcome = self._operator.judge(episode, started, self._task.episode_timeout)
            if outcome == "success":
                self._closing.wait(self.value("record_rest"))
        except EpisodeStopped as stop:
            self._end(event, str(stop), time.monotonic() - started)
            raise
        self._end(event, outcome, time.monotonic() - started)

    def _end(self, event: EpisodeEvent, outcome: str, duration_s: float) -> None:
        self._running = None
        event.success, event.outcome, event.duration = outcome == "success", outcome, duration_s
        self._log.results.append(
            EpisodeResult(int(event.episode), int(event.seed), event.success, outcome, duration_s, event.label)
        )
        if self.context.ok():  # else this process was asked to end, and the publishers went first
            self._publish(event, EpisodeEvent.END)
            # This process may end next, and nobody sends again for it what the recorder missed.
            self._events.wait_for_all_acked(Duration(seconds=ACKNOWLEDGED_S))
        print(f"episode {event.episode + 1}: {outcome} after {duration_s:.1f} s", flush=True)

    def progress(self, episode: int, elapsed_s: float, extra: str) -> None:
        """Print the live progress line of an episode."""
        log = self._log
        self._say(
            f"episode {episode + 1}/{self.value('episodes')}  {elapsed_s:4.1f} s  {extra}  decisions {log.decisions}  "
            f"missed {log.missed}  decision p50 {log.recent_ms(50):.0f} p99 {log.recent_ms(99):.0f} ms  "
            f"successes {log.successes}/{len(log.results)}"
        )

    def _publish(self, event: EpisodeEvent, kind: int) -> None:
        event.kind = kind
        event.header.stamp = self.get_clock().now().to_msg()
        self._events.publish(event)

    def _say(self, text: str) -> None:
        print(f"{PROGRESS}{text}", flush=True)

    def _finish(self) -> None:
        out = self.value("out")
        summary = self._log.summary(
            task=self._task.name,
            decoder=self.value("decoder"),
            samples=self.value("samples"),
            action_horizon=self.value("action_horizon"),
            bundle=Path(self.value("bundle")) if self.value("bundle") else None,
            moving=self.value("moving"),
            seed=self.value("seed"),
            hardware="twin" if self.value("twin") else "robot",
            safety_stop=self._stop_reason(),
        )
        if out:
            write_run(Path(out) / "run.json", summary)
        print(format_summary(summary), flush=True)

    def _stop_reason(self) -> str:
        if self._safety is None or self._safety.state != SafetyState.STOPPED:
            return ""
        return str(self._safety.reason)

    def _end_when_finished(self) -> None:
        if self._finished.is_set():
            raise SystemExit(self._exit_status)


def main() -> None:
    """Run the episode node."""
    sys.exit(run_node(EpisodeNode))


if __name__ == "__main__":
    main()
