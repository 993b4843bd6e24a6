"""Rehearsal: a policy and a decoder act in lockstep, without ROS or real time.

The code that decides is the code that runs live: cameras, observation history, policy, decoder, safety envelope and
servo. The arm is a pure delay. The task's stage (:class:`bid_ros.tasks.base.Stage`) simulates the contact. Twenty
episodes take a minute at most, with the same result on any computer. Use a rehearsal to choose a policy; measure it in
the twin.
"""

from bid_ros.control.arm_model import ArmModel
from bid_ros.control.task_chunks import TaskChunks
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import ArmError
from bid_ros.core.task import Task
from bid_ros.episodes.log import EpisodeResult, scene_of
from bid_ros.episodes.trial import RehearsalConfig, Trial
from bid_ros.policy.decide import DecisionMaker
from bid_ros.safety.envelope import Envelope
from bid_ros.tasks.base import STEP_NS, Stage


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
    ) -> None:
        self._task, self._maker, self._stage = task, maker, stage
        self._config = config or RehearsalConfig()
        self._arm, self._observed = arm, policy_task or task
        self._chunks = chunks or TaskChunks(task, None)
        self._envelope = Envelope(task, arm=arm)

    def run(self, episode: int, seed: int, speed: float, label: str = "") -> EpisodeResult:
        """Rehearse the episode of a seed, with the same start and path of the cup as in the twin.

        The outcome is one of the stage, ``timeout``, or ``stopped: <reason>`` if the safety envelope refused a chunk.
        """
        start = scene_of(self._task, seed)
        self._stage.begin(seed, start, speed)
        trial = Trial(self._task, self._config, self._stage, start, self._maker.history, self._arm, self._observed)
        if trial.joints is not None:
            self._chunks.begin(trial.joints, trial.now_ns)
        self._maker.reset(seed)
        outcome = self._play(trial) or self._stage.give_up()
        return EpisodeResult(episode, seed, outcome == "success", outcome, trial.elapsed_s, label)

    def close(self) -> None:
        """Free the renderer."""
        self._stage.close()

    def _play(self, trial: Trial) -> str:
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

    def _decide(self, trial: Trial) -> str:
        """Observe, decide and pass the chunk on. Return why it was refused, or an empty text."""
        trial.look()
        record = self._maker.decide(trial.buffer.assemble(trial.now_ns))
        if record is None:
            return ""
        try:
            chunk = self._chunks.of(record.chunk)
        except ArmError as error:
            return str(error)
        verdict = self._envelope.check(chunk, trial.now_ns, self._stage.measured[0], trial.joints)
        trial.send(chunk)
        return "" if verdict.ok else verdict.reason
