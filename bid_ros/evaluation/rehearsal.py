"""Rehearsal: a policy and a decoder act in lockstep, without ROS or real time.

Everything that decides is the real thing: cameras, observation history, policy, decoder, safety envelope and servo.
Only the arm is a pure delay, and contact is what the task's stage makes of it (:mod:`bid_ros.evaluation.stage`). So
twenty episodes take a minute at most, the same on any computer, and what they say about a policy is worth looking at
before the twin is started; what counts is measured there.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np

from bid_ros.arms.servo import ChunkServo, ServoConfig
from bid_ros.checks import check_range
from bid_ros.chunk import NANOSECONDS, ActionChunk
from bid_ros.errors import BidError
from bid_ros.evaluation.episode import scene_of
from bid_ros.evaluation.stage import STEP_NS, Array, Stage, build_stage
from bid_ros.evaluation.summary import EpisodeResult
from bid_ros.observation import ObservationBuffer
from bid_ros.policy.decide import DecisionMaker
from bid_ros.rotation import DOWN_QUATERNION, matrix_from_quaternion, matrix_to_6d
from bid_ros.safety.envelope import Envelope
from bid_ros.task import Task

BEGIN_NS: Final = NANOSECONDS
DOWN: Final = np.array(DOWN_QUATERNION)


@dataclass(frozen=True)
class RehearsalConfig:
    """Delays of the system that is imitated, in s; the defaults are what the twin was measured to have.

    Attributes:
        latency_s: from the stamp of the frames until the chunk is in force.
        arm_lag_s: of the measured pose behind the set-point.
        lookahead_s: of the servo.
    """

    latency_s: float = 0.045
    arm_lag_s: float = 0.03
    lookahead_s: float = 0.04

    def __post_init__(self) -> None:
        for name in ("latency_s", "arm_lag_s", "lookahead_s"):
            check_range("rehearsal", name, getattr(self, name), 0, 0.5, BidError, "s")


class Rehearsal:
    """Rehearses episodes of one task, one after the other. One thread only.

    Args:
        task: one that has a stage, with the twin's cameras.
        maker: policy and decoder.
        config: delays.

    Raises:
        TaskError: if the task cannot be rehearsed.
        CameraError: if no offscreen rendering works here.
    """

    def __init__(self, task: Task, maker: DecisionMaker, config: RehearsalConfig | None = None) -> None:
        self._task, self._maker = task, maker
        self._config = config or RehearsalConfig()
        self._stage = build_stage(task)
        self._envelope = Envelope(task)

    def run(self, episode: int, seed: int, cup_speed: float, label: str = "") -> EpisodeResult:
        """Rehearse the episode of a seed, with the start and the cup's path it has in the twin.

        The outcome is one of the stage's, ``timeout``, or ``stopped: <reason>`` (the safety envelope refused a chunk).
        """
        start = scene_of(self._task, seed)
        self._stage.begin(seed, start, cup_speed)
        trial = _Trial(self._task, self._config, self._stage, start)
        self._maker.reset(seed)
        outcome = self._play(trial) or self._stage.give_up()
        return EpisodeResult(episode, seed, outcome == "success", outcome, trial.elapsed_s, label)

    def close(self) -> None:
        """Free the renderer."""
        self._stage.close()

    def _play(self, trial: _Trial) -> str:
        """Return the outcome of an episode, nothing if its time is over before there is one."""
        every = self._task.dt_ns // STEP_NS
        for step in range(round(self._task.episode_timeout * NANOSECONDS) // STEP_NS):
            trial.observe()
            if step % every == 0:
                refusal = self._decide(trial)
                if refusal:
                    return f"stopped: {refusal}"
            outcome = trial.advance()
            if outcome:
                return outcome
        return ""

    def _decide(self, trial: _Trial) -> str:
        """Look, decide and hand the chunk over; return why it was refused, or nothing."""
        for name, image in self._stage.images().items():
            trial.buffer.add(name, trial.now_ns, image)
        record = self._maker.decide(trial.buffer.assemble(trial.now_ns))
        if record is None:
            return ""
        verdict = self._envelope.check(record.chunk, trial.now_ns, self._stage.measured[0])
        trial.pending.append((trial.now_ns + round(self._config.latency_s * NANOSECONDS), record.chunk))
        return "" if verdict.ok else verdict.reason


class _Trial:
    """One episode between the decisions and the stage: the latency of chunks, the servo, and the lag of the arm."""

    def __init__(self, task: Task, config: RehearsalConfig, stage: Stage, start: Array) -> None:
        self._stage = stage
        self._servo = ChunkServo(task, ServoConfig(lookahead_s=config.lookahead_s))
        self._servo.start(start, DOWN, BEGIN_NS)
        lag = round(config.arm_lag_s * NANOSECONDS) // STEP_NS
        self._setpoints = deque([(start, DOWN)] * (lag + 1), maxlen=lag + 1)
        self._gripper: float | None = None
        self.now_ns = BEGIN_NS
        self.buffer = ObservationBuffer(task)
        self.pending: deque[tuple[int, ActionChunk]] = deque()

    @property
    def elapsed_s(self) -> float:
        return (self.now_ns - BEGIN_NS) / NANOSECONDS

    def observe(self) -> None:
        position, quaternion = self._stage.measured
        self.buffer.add("tool_position", self.now_ns, position)
        self.buffer.add("tool_rotation", self.now_ns, matrix_to_6d(matrix_from_quaternion(quaternion)))
        self.buffer.add("gripper_width", self.now_ns, np.array([self._stage.width]))

    def advance(self) -> str:
        """Go on by one step; return the outcome if there is one."""
        while self.pending and self.pending[0][0] <= self.now_ns:
            self._servo.accept(self.pending.popleft()[1])
        output = self._servo.step(self.now_ns)
        self._setpoints.append((output.setpoint.position, output.setpoint.quaternion))
        if output.gripper_width is not None:
            self._gripper = output.gripper_width
        self.now_ns += STEP_NS
        return self._stage.step(*self._setpoints[0], self._gripper)
