"""Compares two policies of one bundle, decision by decision: their chunks, the decoder's choices, their times."""

import copy
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.observation import Observation
from bid_ros.core.task import Task
from bid_ros.policy.base import Bundle, Policy
from bid_ros.policy.decide import DecisionMaker, bundle_decoder
from bid_ros.policy.ranges import task_ranges
from bid_ros.policy.registry import most_samples

DECODER, ALONE = "bid", "vanilla"


@dataclass(frozen=True)
class PolicyAgreement:
    """How far two policies agree.

    Attributes:
        decisions: number of compared decisions.
        difference: largest absolute difference of their chunks, strong and weak, normalised units.
        agree: share of decisions in which the decoder chooses the same sample.
    """

    decisions: int
    difference: float
    agree: float


def compare_policies(
    bundle: Bundle, task: Task, reference: Policy, other: Policy, observations: Iterable[Observation], samples: int
) -> PolicyAgreement:
    """Let both decide on the same observations, with the same noise.

    The memory of the decisions is the reference's for both. So one different choice is one difference, not the first of
    many.
    """
    decoder = bundle_decoder(_decoder(bundle), bundle, task, samples, 1)
    maker = DecisionMaker(reference, decoder, task)
    differences, same = [], []
    for observation in observations:
        draft = maker.begin(observation)
        if draft is None:
            continue
        rng, beside = copy.deepcopy(draft.rng), copy.deepcopy(decoder)
        wanted = draft.sample(reference)
        found = replace(draft, encoded=other.encode(observation, weak=draft.weak > 0), rng=rng).sample(other)
        for one, two in zip(wanted, found, strict=True):
            if one is not None and two is not None:
                apart = np.abs(_normalised(bundle, one) - _normalised(bundle, two))
                differences.append(float(apart.max()))
        choice = beside.choose(draft.request, *found)
        same.append(maker.finish(draft, *wanted).choice.index == choice.index)
    return PolicyAgreement(len(same), max(differences), float(np.mean(same)))


def decision_times(
    bundle: Bundle,
    task: Task,
    policies: Sequence[tuple[Policy, int]],
    observations: Sequence[Observation],
    rounds: int,
    warm_up: int = 5,
) -> list[NDArray[np.float64]]:
    """Return the durations of whole decisions, ms, of each policy with its N. All alternate, in changing order."""
    name = _decoder(bundle)
    makers = [DecisionMaker(policy, bundle_decoder(name, bundle, task, n, 1), task) for policy, n in policies]
    times: list[list[float]] = [[] for _ in makers]
    rng = np.random.default_rng(0)
    for turn in range(warm_up + rounds):
        seen = observations[turn % len(observations)]
        for place in rng.permutation(len(makers)):  # whoever is first finds cold caches
            observation = Observation((turn + 1) * task.dt_ns, _anew(seen.values, turn * len(makers) + place))
            begin = time.perf_counter_ns()
            makers[place].decide(observation)
            times[place].append((time.perf_counter_ns() - begin) / 1e6)
    return [np.array(row[warm_up:]) for row in times]


def _anew(values: Mapping[str, NDArray[Any]], number: int) -> dict[str, NDArray[Any]]:
    """Return values whose images differ from those before: a policy does not encode a frame twice."""
    mask = number % 256
    return {
        name: value ^ value.dtype.type(mask) if value.dtype.kind == "u" else value for name, value in values.items()
    }


def _decoder(bundle: Bundle) -> str:
    """Return the decoder that both policies decide with: one that chooses, where there is something to choose."""
    return ALONE if most_samples(bundle) == 1 else DECODER


def random_observations(bundle: Bundle, task: Task, count: int) -> list[Observation]:
    """Return observations of noise, one period apart: images of random pixels, vectors within the training's range.

    Where the ranges of a bundle are those of a network's columns, vectors lie within what the task's limits allow.
    """
    ranges = bundle.observation if bundle.space is None else task_ranges(task)[0]
    rng, found = np.random.default_rng(0), []
    for index in range(count):
        values: dict[str, NDArray[Any]] = {}
        for item in task.observation:
            shape = (bundle.history(task).steps, *item.shape)
            if item.kind == "image":
                low, high = (round(1e3 * metres) for metres in item.depth or (0.0, 0.255))
                values[item.name] = rng.integers(low, high + 1, shape, dtype=np.dtype(item.dtype))
            else:
                values[item.name] = ranges[item.name].denormalise(rng.uniform(-1, 1, shape))
        found.append(Observation((index + 1) * task.dt_ns, values))
    return found


def _normalised(bundle: Bundle, chunks: NDArray[np.float64]) -> NDArray[Any]:
    """Return chunks in units of the training's range, or of its spread if the range is that of a network's columns."""
    if bundle.space is None:
        return bundle.action.normalise(chunks)
    return chunks / np.where(bundle.action_spread > 0, bundle.action_spread, 1.0)
