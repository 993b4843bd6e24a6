"""Goes through a recorded episode decision by decision, and lets several decoders decide."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bid_ros.bench.smoothness import JERK_ROWS, rms_jerk
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import DecodingError
from bid_ros.core.observation import History, Observation, task_history
from bid_ros.core.rotation import Array
from bid_ros.core.task import Task
from bid_ros.decoding.written import read_decoder
from bid_ros.evaluation.measures import JudgedDecision, Scale
from bid_ros.evaluation.sharing import SharedPolicy
from bid_ros.evaluation.trace import Trace
from bid_ros.formats.base import DataEpisode
from bid_ros.policy.base import Bundle, Policy
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.decide import DecisionMaker, bundle_decoder
from bid_ros.policy.publishable import publishable_rows
from bid_ros.policy.registry import drawn_samples, load_policy
from bid_ros.safety.screen import Screen


@dataclass(frozen=True)
class EvaluationSetup:
    """What is evaluated. A worker process makes an :class:`Evaluation` of it.

    Attributes:
        task: the task.
        bundle: folder of its policy.
        decoders: names of the registry.
        samples: N of the decoders that take several.
        seed: seed of the noise.
        runtime: network runtime.
        limited: as :class:`Evaluation`.
    """

    task: Task
    bundle: Path
    decoders: tuple[str, ...]
    samples: int = 16
    seed: int = 0
    runtime: str = "auto"
    limited: bool = True

    def build(self) -> "Evaluation":
        """Load the policy, warmed up, with one thread of inference. Raises as :class:`Evaluation`, or BundleError."""
        bundle = load_bundle(self.bundle, self.task)
        policy = load_policy(bundle, self.task, self.runtime)
        settings = self.decoders, self.samples, self.seed, self.limited
        evaluation = Evaluation(self.task, bundle, policy, *settings)
        policy.warm_up(self.samples)
        return evaluation


@dataclass
class EpisodeMeasures:
    """What was measured in one episode.

    Attributes:
        label, seed, success: of the recorded episode.
        decisions: number of decisions.
        means: mean of each measure over the decisions, by decoder.
        errors: ``(K,)`` mean distance to the demonstration at each step of the horizon, by decoder.
        jerk: of what was demonstrated, as the measure of this name; None: the episode is too short for it.
        policy: mean over the decisions of what N samples of the policy show, whatever the decoder: see
            :meth:`JudgedDecision.of_samples`, and the ``jerk`` of one sample at every step.
    """

    label: str
    seed: int
    success: bool | None
    decisions: int
    means: dict[str, dict[str, float]] = field(default_factory=dict)
    errors: dict[str, list[float]] = field(default_factory=dict)
    jerk: float | None = None
    policy: dict[str, float] = field(default_factory=dict)


class Evaluation:
    """Lets several decoders decide at every row of a recorded episode, without executing anything.

    The recorded robot goes on as it did, whatever a decoder chooses. So this tells how a decoder decides on the
    observations of others, not how far it would have come. Episodes do not depend on each other: the noise is that of
    the episode's content.

    Args:
        task: the task.
        bundle: its policy.
        policy: draws the samples of all decoders.
        decoders: names of the registry.
        samples: N of the decoders that take several.
        seed: seed of the noise.
        limited: whether a safety node keeps the task's limits, so that samples which break them are not chosen. False:
            none are left out, and nothing is refused.

    Raises:
        DecodingError: a decoder does not exist, does not decide at every row, or the policy cannot serve it.
    """

    def __init__(
        self,
        task: Task,
        bundle: Bundle,
        policy: Policy,
        decoders: Sequence[str],
        samples: int = 16,
        seed: int = 0,
        limited: bool = True,
    ) -> None:
        for name in decoders:
            _check_horizon(name)
        self._task, self._history = task, bundle.history(task)
        self._scale = Scale(np.asarray(bundle.action_spread, dtype=np.float64))
        self._policy = SharedPolicy(policy, drawn_samples(bundle, samples), seed)
        self._screen, self._instruct = Screen(task) if limited else None, policy.capabilities.instruct
        passes = None if self._screen is None else self._screen.passes
        self._makers = {
            name: DecisionMaker(self._policy, bundle_decoder(name, bundle, task, samples, 1), task, seed, screen=passes)
            for name in decoders
        }

    def judge(self, episode: DataEpisode, trace: Trace | None = None) -> EpisodeMeasures:
        """Return what is measured of an episode of this task, as :func:`bid_ros.formats.mapped` gives it.

        A policy that takes a text is asked with that of the episode, and without one with its own.

        Args:
            episode: the episode.
            trace: takes every decision, to show them.
        """
        number = int(episode_key(episode)[:8], 16)
        measured: dict[str, list[dict[str, float]]] = {name: [] for name in self._makers}
        errors: dict[str, list[Array]] = {name: [] for name in self._makers}
        before: dict[str, Array | None] = dict.fromkeys(self._makers)
        firsts: dict[str, list[Array]] = {name: [] for name in self._makers}
        pools: list[dict[str, float]] = []
        single: list[Array] = []  # first action of one sample at every step
        for maker in self._makers.values():
            maker.reset(number)
        actions = np.asarray(episode.actions, dtype=np.float64)
        for row in range(episode.rows):
            self._policy.begin(number, row)
            if self._instruct is not None:
                self._instruct(text_at(episode, row))
            observation = observed(episode, row, self._task, self._history)
            strong, weak = self._pool(observation)
            moment = JudgedDecision(self._scale, actions[row:], strong, weak)
            pools.append(moment.of_samples(strong))
            single.append(strong[0, 0])
            for name, maker in self._makers.items():
                found, apart, chosen = self._decide(maker, observation, moment, before[name])
                measured[name].append(found)
                errors[name].append(apart)
                firsts[name].append(chosen[0])
                before[name] = chosen[1:]
                if trace is not None:
                    trace.add(row, name, chosen, found)
            if trace is not None:
                trace.add_samples(row, strong)
        done = EpisodeMeasures(episode.label, int(episode.seed), episode.success, episode.rows)
        done.means = {name: _means(items) | self._jerk(firsts[name]) for name, items in measured.items()}
        done.errors = {name: _by_step(rows) for name, rows in errors.items()}
        done.jerk, done.policy = self._jerk(actions).get("jerk"), _means(pools) | self._jerk(single)
        return done

    def _pool(self, observation: Observation) -> tuple[Array, Array | None]:
        """Return the executable rows of N strong and N weak samples, among which all decoders choose."""
        strong, weak = self._policy.pool(self._policy.encode(observation))
        return self._published(strong), None if weak is None else self._published(weak)

    def _published(self, samples: Array) -> Array:
        """Return samples ``(N, H, D)`` as they would be published: rotations orthonormal, widths inside the range."""
        return publishable_rows(samples[:, self._task.observation_steps - 1 :], self._task)

    def _decide(
        self, maker: DecisionMaker, observation: Observation, moment: JudgedDecision, before: Array | None
    ) -> tuple[dict[str, float], Array, Array]:
        record = maker.decide(observation)
        assert record is not None  # with an action horizon of 1, and no agreed rows, every request is a decision
        chosen, more = record.chunk.actions, {"choose_ms": record.choose_ns / 1e6}
        if self._policy.timed:
            more["decision_ms"] = self._policy.encode_ms + self._policy.sample_ms + more["choose_ms"]
        if self._screen is not None and self._task.columns("position") is not None:
            more["refused"] = float(not self._screen.passes(record.choice.actions[None])[0])
        return *moment.judged(chosen, self._published(record.strong), before, more), chosen

    def _jerk(self, actions: Sequence[Array] | Array) -> dict[str, float]:
        """Return the measure of this name; nothing for an episode that is too short to have one."""
        if len(actions) < JERK_ROWS:
            return {}
        return {"jerk": rms_jerk(self._scale.scaled(np.asarray(actions)), self._task.dt_ns / NANOSECONDS)}


def _check_horizon(decoder: str) -> None:
    """Raise DecodingError for a decoder that sets its action horizon: it makes no decision at some rows."""
    if "agreement" in read_decoder(decoder)[1]:
        raise DecodingError(
            f"decoder '{decoder}' lets its samples set the action horizon, and an evaluation decides at every row; "
            "valid is one without agreement"
        )


def episode_key(episode: DataEpisode) -> str:
    """Return a hash of an episode's content: whatever data set it is in, it is the same episode."""
    digest = hashlib.sha256(repr((episode.label, int(episode.seed), sorted(episode.observations))).encode())
    for _, values in sorted(episode.observations.items()):
        digest.update(np.ascontiguousarray(values).data)
    digest.update(np.ascontiguousarray(episode.actions).data)
    digest.update(np.ascontiguousarray(episode.stamps_ns).data)
    return digest.hexdigest()[:32]


def observed(episode: DataEpisode, row: int, task: Task, history: History | None = None) -> Observation:
    """Return the observation at a row: as live, a row before the first repeats the first.

    Args:
        episode: of the task, with a row for each of its periods.
        row: of the newest step.
        task: what is observed.
        history: steps of the observation. Each is the episode's row nearest to it. None: those of the task.
    """
    count, dt_ns = history or task_history(task)
    steps = [max(0, row - round(back * dt_ns / task.dt_ns)) for back in reversed(range(count))]
    values = {item.name: episode.observations[item.name][steps] for item in task.observation}
    return Observation(int(episode.stamps_ns[0]) + row * task.dt_ns, values)


def text_at(episode: DataEpisode, row: int) -> str:
    """Return the text of the task at a row of an episode; empty: none is known."""
    return next((text for first, text in reversed(episode.texts) if first <= row), episode.text)


def _means(measured: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each measure over the decisions that have it."""
    names = dict.fromkeys(name for item in measured for name in item)
    return {name: float(np.mean([item[name] for item in measured if name in item])) for name in names}


def _by_step(rows: Sequence[Array]) -> list[float]:
    """Return the mean over decisions at each step of the horizon, over those whose future reaches as far."""
    longest = max(len(row) for row in rows)
    return [float(np.mean([row[step] for row in rows if len(row) > step])) for step in range(longest)]
