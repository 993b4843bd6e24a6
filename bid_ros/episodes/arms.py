"""Rehearses episodes of several arms in lockstep: one decision, one chunk for each arm, one clock for all stages."""

from collections.abc import Mapping

from bid_ros.core.arms import Arms, joint_outcome, scene_seed
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.episodes.log import EpisodeResult
from bid_ros.episodes.rehearsal import RehearsedArm, Trial
from bid_ros.policy.arms import part_of
from bid_ros.policy.decide import DecisionMaker
from bid_ros.tasks.base import STEP_NS


class ArmsRehearsal:
    """Rehearses episodes of a joint task, one after the other. One thread only.

    An episode is a success once every arm's is. It ends with the first arm whose is none, and with the first chunk that
    an arm's safety envelope refuses.

    Args:
        arms: of the joint task that the policy was made for.
        maker: policy and decoder.
        rehearsed: each arm, in the same order. :meth:`close` closes their stages.
    """

    def __init__(self, arms: Arms, maker: DecisionMaker, rehearsed: Mapping[str, RehearsedArm]) -> None:
        self._arms, self._maker, self._rehearsed = arms, maker, rehearsed

    def run(self, episode: int, seed: int, speed: float, label: str = "") -> EpisodeResult:
        """Rehearse an episode; each arm has the scene of :func:`bid_ros.core.arms.scene_seed`.

        The outcome is ``success``, or that of the arms which had none, such as ``right: timeout``; or
        ``stopped: left: <reason>`` if the safety envelope refused a chunk.
        """
        history = self._maker.history
        trials = {
            arm: item.begin(scene_seed(seed, number), speed, history)
            for number, (arm, item) in enumerate(self._rehearsed.items())
        }
        self._maker.reset(seed)
        outcome = self._play(trials)
        elapsed_s = max(trial.elapsed_s for trial in trials.values())
        return EpisodeResult(episode, seed, outcome == "success", outcome, elapsed_s, label)

    def close(self) -> None:
        """Free the renderers."""
        for item in self._rehearsed.values():
            item.stage.close()

    def _play(self, trials: Mapping[str, Trial]) -> str:
        outcomes: dict[str, str] = {}
        every = self._arms.task.dt_ns // STEP_NS
        for step in range(round(self._arms.task.episode_timeout * NANOSECONDS) // STEP_NS):
            for trial in trials.values():
                trial.observe()
            if step % every == 0 and (refusal := self._decide(trials)):
                return f"stopped: {refusal}"
            for arm, trial in trials.items():
                if (outcome := trial.advance()) and arm not in outcomes:
                    outcomes[arm] = outcome
            if len(outcomes) == len(trials) or joint_outcome(outcomes) != "success":
                return joint_outcome(outcomes)
        late = {arm: item.stage.give_up() for arm, item in self._rehearsed.items() if arm not in outcomes}
        return joint_outcome(outcomes | late)

    def _decide(self, trials: Mapping[str, Trial]) -> str:
        """Observe, decide once and pass each arm's part on. Return why one was refused, or an empty text."""
        seen = {}
        for arm, trial in trials.items():
            trial.look()
            seen[arm] = trial.buffer.assemble(trial.now_ns)
        record = self._maker.decide(self._arms.whole(seen))
        if record is None:
            return ""
        for arm, trial in trials.items():
            _, refusal = self._rehearsed[arm].pass_on(trial, part_of(record, arm, self._arms).chunk)
            if refusal:
                return f"{arm}: {refusal}"
        return ""
