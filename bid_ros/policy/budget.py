"""Fits the number of samples to the time that a decision may take, and tells how long decisions take."""

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from statistics import median
from typing import Final

import numpy as np

from bid_ros.core.errors import BidError, RemoteError
from bid_ros.core.observation import Observation, blank_observation
from bid_ros.core.task import Task
from bid_ros.decoding import Decoder, DecodeRequest
from bid_ros.policy.base import Policy, policy_history
from bid_ros.policy.runtimes.registry import is_compiled

BUDGET_MS: Final = 45.0  # that a decision may take, unless it is said
RECENT: Final = 10  # decisions
FEWEST_OF_SEVERAL: Final = 4  # samples: fewer than these say nothing about modes, so next comes a single one
WINDOW: Final = 9  # decisions; their median is compared with the budget
FEW: Final = 5  # decisions; if LATE of the last ones took over twice the budget, the number falls at once
LATE: Final = 2
PATIENCE: Final = 50  # decisions before a step up: 5 s
FIRST_PATIENCE: Final = 10  # the same after calibration: other nodes were starting then, which passes
LONGEST_PATIENCE: Final = 1600
REPEATS: Final = 5  # measured decisions of each number of samples
RESERVE: Final = 0.8  # share of the budget that more samples may be expected to take
GIVEN_UP_NS: Final = 3_600_000_000_000  # cost of what a server does not answer in time: above every budget


class DelayMeter:
    """Tells the delay that the next decision must expect: the longest of the last ones, in whole steps.

    Source: Black, Galliker, Levine, "Real-Time Execution of Action Chunking Flow Policies", NeurIPS 2025, Algorithm 1.

    Args:
        step_ns: time between two rows of a chunk, ns.
    """

    def __init__(self, step_ns: int) -> None:
        self._step_ns = step_ns
        self._recent: deque[int] = deque(maxlen=RECENT)

    @property
    def steps(self) -> int | None:
        """Steps of a chunk that have begun when it arrives. None before the first decision."""
        return -(-max(self._recent) // self._step_ns) if self._recent else None

    def took(self, delay_ns: int) -> None:
        """Note the time in ns from the newest observation of a decision to the publication of its chunk."""
        self._recent.append(max(0, delay_ns))


def ladder(most: int) -> tuple[int, ...]:
    """Return the numbers of samples to choose from: ``most``, its halves down to 4, and 1."""
    steps = [most]
    while steps[-1] // 2 >= FEWEST_OF_SEVERAL:
        steps.append(steps[-1] // 2)
    return tuple(steps) if steps[-1] == 1 else (*steps, 1)


class SampleBudget:
    """Says how many samples the next decision draws. One thread only.

    A busy computer holds up single decisions, whatever they draw. So medians count: one above the budget takes a step
    down. A step up needs a number of decisions since the last step, and an estimate that the larger number fits. If it
    did not fit after all, the next try comes later.

    Args:
        most: N, the number wanted.
        budget_ns: time that a decision may take, ns.

    Attributes:
        samples: number for the next decision.

    Raises:
        BidError: a value is below 1.
    """

    def __init__(self, most: int, budget_ns: int) -> None:
        if most < 1 or budget_ns < 1:
            raise BidError(f"budget is {most} samples in {budget_ns} ns; valid are whole numbers of at least 1")
        self.steps, self.samples, self._budget_ns = ladder(most), most, budget_ns
        self._costs: dict[int, float] = {}
        self._durations: deque[int] = deque(maxlen=WINDOW)
        self._since, self._patience, self._rose = 0, FIRST_PATIENCE, False

    def calibrate(self, costs_ns: Mapping[int, int]) -> None:
        """Begin with the largest number that fits, by what decisions with each of :attr:`steps` take, in ns."""
        self._costs = {count: float(cost) for count, cost in costs_ns.items()}
        fitting = [count for count in self.steps if self._costs[count] <= RESERVE * self._budget_ns]
        self._take(fitting[0] if fitting else self.steps[-1])

    def took(self, duration_ns: int) -> bool:
        """Take the duration of a decision. Return whether the number changed."""
        index = self.steps.index(self.samples)
        self._durations.append(duration_ns)
        self._since += 1
        if self._late():
            if index + 1 == len(self.steps):
                return False
            self._patience = min(2 * self._patience, LONGEST_PATIENCE) if self._rose else PATIENCE
            self._rose = False
            self._take(self.steps[index + 1])
            return True
        if self._since < max(self._patience, WINDOW):
            return False
        if self._rose:  # and the number fitted
            self._rose, self._patience = False, PATIENCE
        if index == 0:
            return False
        more = self.steps[index - 1]
        if median(self._durations) * self._ratio(more) > RESERVE * self._budget_ns:
            self._since = 0
            return False
        self._rose = True
        self._take(more)
        return True

    def _late(self) -> bool:
        """Return whether decisions take longer than their budget."""
        recent = list(self._durations)
        if sum(duration > 2 * self._budget_ns for duration in recent[-FEW:]) >= LATE:
            return True
        return len(recent) == WINDOW and median(recent) > self._budget_ns

    @property
    def shortfall(self) -> str:
        """One sentence if even the fewest samples do not fit; else empty."""
        if self.samples != self.steps[-1] or not self._late():
            return ""
        return (
            f"decisions of {self.samples} sample take longer than their {self._budget_ns / 1e6:.0f} ms; "
            "use a faster computer, end other programs, or a bundle with fewer denoising steps (bid policy distill)"
        )

    def _ratio(self, more: int) -> float:
        """Return how much longer a decision takes with more samples: as calibrated, else in proportion."""
        if more in self._costs and self.samples in self._costs:
            return self._costs[more] / self._costs[self.samples]
        return more / self.samples

    def _take(self, samples: int) -> None:
        self.samples = samples
        self._durations.clear()
        self._since = 0


def fitted_budget(policy: Policy, decoder: Decoder, task: Task, budget_ms: float) -> SampleBudget | None:
    """Fit N to the budget by a second of trials. None: N is fixed, or the decoder draws a single sample.

    Args:
        policy: of the task, warmed up for N.
        decoder: says N.
        task: the task.
        budget_ms: time that a decision may take, ms; 0: N stays as it is.
    """
    wanted = decoder.propose(DecodeRequest(0, task.dt_ns, task.observation_steps, task.horizon, task.action_dim))
    if not budget_ms or wanted.strong <= 1 or is_compiled(policy.runtime):
        return None
    budget = SampleBudget(wanted.strong, round(budget_ms * 1e6))
    # N may fall to each number while the arm moves, and nothing may compile then. The trials compile what starts from
    # noise.
    if decoder.needs.starts:
        for count in budget.steps:
            policy.warm_up(count)
    weak = wanted.weak > 0 and policy.has_weak
    budget.calibrate(decision_costs(policy, task, budget.steps, weak))
    return budget


def decision_costs(policy: Policy, task: Task, steps: Sequence[int], weak: bool) -> dict[int, int]:
    """Return what encoding and sampling take for each number of samples in ns, the least of :data:`REPEATS`.

    The least, because what disturbs a start passes. A number that a server does not answer in time costs
    :data:`GIVEN_UP_NS`, unless it is the last one.

    Args:
        policy: of the task.
        task: the task.
        steps: numbers of samples. The first call of each is not counted: a runtime may compile then.
        weak: whether as many weak samples are drawn.

    Raises:
        RemoteError: a server does not answer in time, even with the last number.
    """
    seen, rng = changing_observations(policy, task), np.random.default_rng(0)

    def once(count: int) -> int:
        observation = next(seen)
        begin = time.monotonic_ns()
        encoded = policy.encode(observation, weak=weak)
        policy.sample(encoded, count, count if weak else 0, rng)
        return time.monotonic_ns() - begin

    def cost(count: int) -> int:
        try:
            return min([once(count) for _ in range(1 + REPEATS)][1:])
        except RemoteError:
            if count == steps[-1]:
                raise
            policy.warm_up(1)  # the server may still sample what was given up: wait for that
            return GIVEN_UP_NS

    return {count: cost(count) for count in steps}


def changing_observations(policy: Policy, task: Task) -> Iterator[Observation]:
    """Return observations without end, each with new frames: a policy may know those of the one before."""
    black = blank_observation(task, policy_history(policy, task))
    white = {item.name: np.full_like(black.values[item.name], 255) for item in task.cameras}
    return cycle([replace(black, values={**black.values, **white}), black])
