"""Rehearses episodes in lockstep: what is between decisions and a stage, and the loop of decisions."""

from collections import deque
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.joint_chunks import TaskChunks
from bid_ros.control.joint_servo import JointServo
from bid_ros.control.servo import ChunkServo
from bid_ros.control.servo_base import ServoOutput
from bid_ros.core.chunk import NANOSECONDS, ActionChunk
from bid_ros.core.errors import ArmError
from bid_ros.core.observation import History, ObservationBuffer
from bid_ros.core.rotation import DOWN_QUATERNION, Array, matrix_from_quaternion, matrix_to_6d
from bid_ros.core.settings import settings
from bid_ros.core.task import Task
from bid_ros.episodes.log import EpisodeResult, scene_of
from bid_ros.policy.decide import DecisionMaker
from bid_ros.safety.gate import Gate
from bid_ros.tasks.base import STEP_NS, Stage

BEGIN_NS: Final = NANOSECONDS
DOWN: Final = np.array(DOWN_QUATERNION)
DOWN_MATRIX: Final = matrix_from_quaternion(DOWN)
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


class Trial:
    """One episode: applies the latency of chunks, the servo and the lag of the arm. The clock is the stage's.

    Args:
        task: the task.
        config: delays.
        stage: laid out for the episode.
        start: ``(3,)`` position of the tool, m, base frame.
        history: observed steps that the policy wants. None: those of the task.
        arm: of a task that commands joints, else None. The joints begin as near to its rest as the start lets them.
        observed: task whose features are observed, where the policy was made for another. None: the task.

    Attributes:
        now_ns: time of the episode.
        buffer: what was observed.
        output: the newest step of the servo, None before the first.
        gripper: the newest width asked for, m; None before the first.
    """

    def __init__(
        self,
        task: Task,
        config: RehearsalConfig,
        stage: Stage,
        start: Array,
        history: History | None = None,
        arm: ArmModel | None = None,
        observed: Task | None = None,
    ) -> None:
        self._stage = stage
        self._servo, self._joints = _started(task, arm, config.lookahead_s, start)
        self._latency_ns = round(config.latency_s * NANOSECONDS)
        lag = round(config.arm_lag_s * NANOSECONDS) // STEP_NS
        self._setpoints = deque([(start, DOWN, self._joints)] * (lag + 1), maxlen=lag + 1)
        self._pending: deque[tuple[int, ActionChunk]] = deque()
        self.output: ServoOutput | None = None
        self.gripper: float | None = None
        self.now_ns = BEGIN_NS
        seen = observed or task
        self.buffer = ObservationBuffer(seen, history=history)
        self._joint_names = [item.name for item in seen.observation if item.kind == "joints"]

    @property
    def elapsed_s(self) -> float:
        """Time since the begin, s."""
        return (self.now_ns - BEGIN_NS) / NANOSECONDS

    @property
    def joints(self) -> Array | None:
        """Measured joints ``(joints,)`` in rad of a task that commands these; None of any other."""
        return self._joints

    def observe(self) -> None:
        """Take the state of tool, gripper and commanded joints into the buffer."""
        position, quaternion = self._stage.measured
        self.buffer.add("tool_position", self.now_ns, position)
        self.buffer.add("tool_rotation", self.now_ns, matrix_to_6d(matrix_from_quaternion(quaternion)))
        self.buffer.add("gripper_width", self.now_ns, np.array([self._stage.width]))
        if self._joints is not None:
            for name in self._joint_names:
                self.buffer.add(name, self.now_ns, self._joints)

    def look(self) -> None:
        """Take the images of now into the buffer."""
        for name, image in self._stage.images().items():
            self.buffer.add(name, self.now_ns, image)

    def send(self, chunk: ActionChunk) -> None:
        """Let a chunk take effect after the latency."""
        self._pending.append((self.now_ns + self._latency_ns, chunk))

    def advance(self) -> str:
        """Go one step on. Return the outcome, if there is one."""
        while self._pending and self._pending[0][0] <= self.now_ns:
            self._servo.accept(self._pending.popleft()[1])
        output = self._servo.step(self.now_ns)
        self.output, place = output, output.setpoint
        joints = None if output.joints is None else output.joints.positions
        self._setpoints.append((place.position, place.quaternion, joints))
        if output.gripper_width is not None:
            self.gripper = output.gripper_width
        self.now_ns += STEP_NS
        position, quaternion, self._joints = self._setpoints[0]
        return self._stage.step(position, quaternion, self.gripper)


def _started(
    task: Task, arm: ArmModel | None, lookahead_s: float, start: Array
) -> tuple[ChunkServo | JointServo, Array | None]:
    """Return the servo at rest with the tool at ``start`` ``(3,)`` m and pointing down, and the joints there."""
    if arm is None:
        servo = ChunkServo(task, lookahead_s)
        servo.start(start, DOWN, BEGIN_NS)
        return servo, None
    joints = arm.chain.inverse(start[None], DOWN_MATRIX[None], arm.rest, arm.rest)[0]
    follower = JointServo(task, arm, lookahead_s)
    follower.start(joints, BEGIN_NS)
    return follower, joints


def decision_due(step: int, dt_ns: int, decisions: int) -> bool:
    """Return whether a decision is made at a step of the stage: at the first one at or after its time.

    Args:
        step: of ``STEP_NS``, from 0.
        dt_ns: step of the task, ns.
        decisions: made in each of these. Three in 0.1 s are 0, 40 and 70 ms after its begin.
    """
    return step * STEP_NS * decisions // dt_ns != (step - 1) * STEP_NS * decisions // dt_ns


class RehearsedArm:
    """An arm of a rehearsal: between what is decided for it and its stage are the gate, the latency and the servo.

    Args:
        task: that it is commanded by.
        stage: simulated scene and arm, from :func:`bid_ros.tasks.registry.build_stage`. :meth:`close` closes it.
        config: delays.
        arm: of a task that commands joints, else None.
        chunks: as :class:`Rehearsal`.
        observed: task whose features are observed.
    """

    def __init__(
        self,
        task: Task,
        stage: Stage,
        config: RehearsalConfig,
        arm: ArmModel | None,
        chunks: TaskChunks | None,
        observed: Task,
    ) -> None:
        self.task, self.stage = task, stage
        self._config, self._arm, self._observed = config, arm, observed
        self._chunks, self._gate = chunks or TaskChunks(task, None), Gate(task, arm=arm)

    def begin(self, seed: int, speed: float, history: History) -> Trial:
        """Return the trial of a seed, with the same start and path of what moves as in the twin."""
        start = scene_of(self.task, seed)
        self.stage.begin(seed, start, speed)
        trial = Trial(self.task, self._config, self.stage, start, history, self._arm, self._observed)
        if trial.joints is not None:
            self._chunks.begin(trial.joints, trial.now_ns)
        self._gate.forget()
        return trial

    def pass_on(self, trial: Trial, chunk: ActionChunk) -> tuple[ActionChunk | None, str]:
        """Let a chunk of the policy take effect; return it as it was forwarded, and why it was refused, or nothing."""
        try:
            chunk = self._chunks.of(chunk)
        except ArmError as error:
            return None, str(error)
        place, turn = self.stage.measured
        found = self._gate.admit(chunk, trial.now_ns, place, trial.joints, matrix_from_quaternion(turn))
        self._gate.passed(found.chunk)
        trial.send(found.chunk)
        return found.chunk, "" if found.verdict.ok else found.verdict.reason


class Rehearsal:
    """Rehearses episodes of one task, one after the other. One thread only.

    Args:
        task: the task.
        maker: policy and decoder.
        stage: simulated scene and arm, from :func:`bid_ros.tasks.registry.build_stage`. :meth:`close` closes it.
        config: delays.
        arm: of a task that commands joints, else None.
        chunks: makes the policy's chunks into the task's, where the policy predicts poses and the task commands joints.
            Then ``policy_task`` is the policy's. None: they are the task's.
        policy_task: that the policy was made for. None: the task.
        decisions: made in a step of the task.
    """

    def __init__(
        self,
        task: Task,
        maker: DecisionMaker,
        stage: Stage,
        config: RehearsalConfig | None = None,
        arm: ArmModel | None = None,
        chunks: TaskChunks | None = None,
        policy_task: Task | None = None,
        decisions: int = 1,
    ) -> None:
        self._task, self._maker, self._stage, self._decisions = task, maker, stage, decisions
        self._arm = RehearsedArm(task, stage, config or RehearsalConfig(), arm, chunks, policy_task or task)

    def run(self, episode: int, seed: int, speed: float, label: str = "") -> EpisodeResult:
        """Rehearse the episode of a seed, with the same start and path of what moves as in the twin.

        The outcome is one of the stage, ``timeout``, or ``stopped: <reason>`` if the safety envelope refused a chunk.
        """
        trial = self._arm.begin(seed, speed, self._maker.history)
        self._maker.reset(seed)
        outcome = self._play(trial) or self._stage.give_up()
        return EpisodeResult(episode, seed, outcome == "success", outcome, trial.elapsed_s, label)

    def close(self) -> None:
        """Free the renderer."""
        self._stage.close()

    def _play(self, trial: Trial) -> str:
        """Return the outcome of an episode; an empty text if its time is over first."""
        for step in range(round(self._task.episode_timeout * NANOSECONDS) // STEP_NS):
            trial.observe()
            if decision_due(step, self._task.dt_ns, self._decisions):
                refusal = self._decide(trial)
                if refusal:
                    return f"stopped: {refusal}"
            outcome = trial.advance()
            if outcome:
                return outcome
        return ""

    def _decide(self, trial: Trial) -> str:
        """Observe, decide and pass the chunk on. Return why it was refused, or an empty text."""
        trial.look()
        record = self._maker.decide(trial.buffer.assemble(trial.now_ns))
        if record is None:
            return ""
        forwarded, refusal = self._arm.pass_on(trial, record.chunk)
        if forwarded is not None:
            self._maker.forwarded(forwarded)
        return refusal
