"""Rehearsal: a policy and a decoder act in lockstep, without ROS or real time.

The code that decides is the code that runs live: cameras, observation history, policy, decoder, safety envelope and
servo. The arm is a pure delay. The task's stage (:class:`bid_ros.tasks.base.Stage`) simulates the contact. Twenty
episodes take a minute at most, with the same result on any computer. Use a rehearsal to choose a policy; measure it in
the twin.
"""

from __future__ import annotations

from collections import deque
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from bid_ros.control.servo import ChunkServo, ServoConfig
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.observation import ObservationBuffer
from bid_ros.core.rotation import DOWN_QUATERNION, Array, matrix_from_quaternion, matrix_to_6d
from bid_ros.core.settings import settings
from bid_ros.core.task import Task
from bid_ros.episodes.log import EpisodeResult, scene_of
from bid_ros.policy.decide import DecisionMaker
from bid_ros.safety.envelope import Envelope
from bid_ros.tasks.base import STEP_NS, Stage

BEGIN_NS: Final = NANOSECONDS
DOWN: Final = np.array(DOWN_QUATERNION)
Seconds = Annotated[float, Field(ge=0, le=0.5)]


@settings
class RehearsalConfig:
    """Delays of the imitated system, in s. The defaults were measured in the twin.

    Attributes:
        latency_s: from the stamp of the frames until the chunk takes effect.
        arm_lag_s: lag of the measured pose behind the set-point.
        lookahead_s: lookahead of the servo.
    """

    latency_s: Seconds = 0.045
    arm_lag_s: Seconds = 0.03
    lookahead_s: Seconds = 0.04


class Rehearsal:
    """Rehearses episodes of one task, one after the other. One thread only.

    Args:
        task: the task.
        maker: policy and decoder.
        stage: simulated scene and arm, from :func:`bid_ros.tasks.registry.build_stage`. :meth:`close` closes it.
        config: delays.
    """

    def __init__(self, task: Task, maker: DecisionMaker, stage: Stage, config: RehearsalConfig | None = None) -> None:
        self._task, self._maker = task, maker
        self._config = config or RehearsalConfig()
        self._stage = stage
        self._envelope = Envelope(task)

    def run(self, episode: int, seed: int, cup_speed: float, label: str = "") -> EpisodeResult:
        """Rehearse the episode of a seed, with the same start and path of the cup as in the twin.

        The outcome is one of the stage, ``timeout``, or ``stopped: <reason>`` if the safety envelope refused a chunk.
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
        """Return the outcome of an episode; an empty text if its time is over first."""
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
        """Observe, decide and pass the chunk on. Return why it was refused, or an empty text."""
        for name, image in self._stage.images().items():
            trial.buffer.add(name, trial.now_ns, image)
        record = self._maker.decide(trial.buffer.assemble(trial.now_ns))
        if record is None:
            return ""
        verdict = self._envelope.check(record.chunk, trial.now_ns, self._stage.measured[0])
        trial.pending.append((trial.now_ns + round(self._config.latency_s * NANOSECONDS), record.chunk))
        return "" if verdict.ok else verdict.reason


class _Trial:
    """One episode: applies the latency of chunks, the servo and the lag of the arm between decisions and stage."""

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
        """Go one step on. Return the outcome, if there is one."""
        while self.pending and self.pending[0][0] <= self.now_ns:
            self._servo.accept(self.pending.popleft()[1])
        output = self._servo.step(self.now_ns)
        self._setpoints.append((output.setpoint.position, output.setpoint.quaternion))
        if output.gripper_width is not None:
            self._gripper = output.gripper_width
        self.now_ns += STEP_NS
        return self._stage.step(*self._setpoints[0], self._gripper)
