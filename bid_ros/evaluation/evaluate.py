"""Goes through recorded episodes decision by decision, one episode in memory at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bid_ros.core.observation import Observation
from bid_ros.core.rotation import Array
from bid_ros.core.task import Task
from bid_ros.evaluation.measures import Scale, judged
from bid_ros.evaluation.sharing import SharedPolicy
from bid_ros.formats.base import Episode, Source
from bid_ros.policy.base import Bundle, Policy
from bid_ros.policy.decide import DecisionMaker, bundle_decoder, publishable
from bid_ros.safety.screen import Screen


@dataclass
class EpisodeMeasures:
    """What was measured in one episode.

    Attributes:
        label, seed, success: of the recorded episode.
        decisions: number of decisions.
        means: mean of each measure over the decisions, by decoder.
        errors: ``(K,)`` mean distance to the demonstration at each step of the horizon, by decoder.
    """

    label: str
    seed: int
    success: bool | None
    decisions: int
    means: dict[str, dict[str, float]] = field(default_factory=dict)
    errors: dict[str, list[float]] = field(default_factory=dict)


class Evaluation:
    """Lets several decoders decide at every row of recorded episodes, without executing anything.

    The recorded robot goes on as it did, whatever a decoder chooses. So this tells how a decoder decides on the
    observations of others, not how far it would have come.

    Args:
        task: the task.
        bundle: its policy.
        policy: draws the samples of all decoders.
        decoders: names of the registry.
        samples: N of the decoders that take several.
        seed: seed of the noise.

    Raises:
        DecodingError: a decoder does not exist, or the policy cannot serve it.
    """

    def __init__(
        self, task: Task, bundle: Bundle, policy: Policy, decoders: Sequence[str], samples: int = 16, seed: int = 0
    ) -> None:
        self._task, self._scale = task, Scale(np.maximum(np.asarray(bundle.action_spread, dtype=np.float64), 1e-6))
        self._policy = SharedPolicy(policy, seed)
        screen = Screen(task)
        self._makers = {
            name: DecisionMaker(
                self._policy, bundle_decoder(name, bundle, task, samples, 1), task, seed, screen=screen.passes
            )
            for name in decoders
        }

    def run(
        self, source: Source, progress: Callable[[int, int], None] = lambda episodes, rows: None
    ) -> Iterator[EpisodeMeasures]:
        """Yield what was measured in each episode of a data set of this task.

        Args:
            source: from :func:`bid_ros.formats.mapped`.
            progress: called with the numbers of episodes and rows done.
        """
        rows = 0
        for number, episode in enumerate(source.episodes()):
            yield self._episode(number, episode)
            rows += episode.rows
            progress(number + 1, rows)

    def _episode(self, number: int, episode: Episode) -> EpisodeMeasures:
        found: dict[str, list[dict[str, float]]] = {name: [] for name in self._makers}
        errors: dict[str, list[Array]] = {name: [] for name in self._makers}
        before: dict[str, Array | None] = dict.fromkeys(self._makers)
        for maker in self._makers.values():
            maker.reset(number)
        for row in range(episode.rows):
            self._policy.begin(number, row)
            observation = observed(episode, row, self._task)
            future = np.asarray(episode.actions[row:], dtype=np.float64)
            for name, maker in self._makers.items():
                measured, apart, chosen = self._decide(maker, observation, future, before[name])
                found[name].append(measured)
                errors[name].append(apart)
                before[name] = chosen[1:]
        done = EpisodeMeasures(episode.label, int(episode.seed), episode.success, episode.rows)
        done.means = {name: _means(measured) for name, measured in found.items()}
        done.errors = {name: _by_step(rows) for name, rows in errors.items()}
        return done

    def _decide(
        self, maker: DecisionMaker, observation: Observation, future: Array, before: Array | None
    ) -> tuple[dict[str, float], Array, Array]:
        record = maker.decide(observation)
        assert record is not None  # with an action horizon of 1 every request is a decision
        chosen = record.chunk.actions
        # As they would have been published: rotations orthonormal, widths inside the gripper's range.
        samples = np.stack([publishable(item, record.stamp_ns, self._task, 0).actions for item in record.strong])
        return *judged(chosen, samples, future, before, self._scale, record.choose_ns / 1e6), chosen


def observed(episode: Episode, row: int, task: Task) -> Observation:
    """Return the observation at a row: as live, a row before the first repeats the first."""
    steps = [max(0, row - back) for back in reversed(range(task.observation_steps))]
    values = {item.name: episode.observations[item.name][steps] for item in task.observation}
    return Observation(int(episode.stamps_ns[0]) + row * task.dt_ns, values)


def _means(measured: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each measure over the decisions that have it."""
    names = dict.fromkeys(name for item in measured for name in item)
    return {name: float(np.mean([item[name] for item in measured if name in item])) for name in names}


def _by_step(rows: Sequence[Array]) -> list[float]:
    """Return the mean over decisions at each step of the horizon, over those whose future reaches as far."""
    longest = max(len(row) for row in rows)
    return [float(np.mean([row[step] for row in rows if len(row) > step])) for step in range(longest)]
