"""A line of eleven states, its demonstrator that pauses half-way, learners that imitate it, and how far apart they are.

Liu et al., ICLR 2025, section 5.1: from s0 the demonstrator plans a step forward in every state until s10, except in
s5, where it pauses unless the last states visited were s5. A forward move succeeds with probability ``1 - noise``,
else the state stays. Learners see the state, not the past, and execute h planned actions before they look again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

PAUSE_STATE: Final = 5
GOAL: Final = 10


@dataclass(frozen=True, eq=False)
class Rollouts:
    """M episodes of T steps.

    Attributes:
        states: ``(M, T + 1)``, 0 to 10.
        forward: ``(M, T)``, whether the action taken in ``states[:, t]`` was to move; False is idle.
    """

    states: NDArray[np.int8]
    forward: NDArray[np.bool_]


def demonstrate(noise: float, pause: int, steps: int, episodes: int, rng: np.random.Generator) -> Rollouts:
    """Roll the demonstrator out: in s5 it is idle ``pause`` times and then moves until a move succeeds."""
    visits = np.zeros(episodes, dtype=np.int64)

    def act(step: int, state: NDArray[np.int8]) -> NDArray[np.bool_]:
        visits[:] += state == PAUSE_STATE
        moving: NDArray[np.bool_] = (state != PAUSE_STATE) | (visits > pause)
        return moving

    return _roll(act, noise, steps, episodes, rng)


class Imitator:
    """The best imitation without memory: chunks are drawn from those that followed the same state.

    After the last step of a demonstration it moves forward, so chunks can start at every step.
    """

    def __init__(self, demonstrations: Rollouts, horizon: int) -> None:
        episodes, steps = demonstrations.forward.shape
        padding = np.ones((episodes, horizon), dtype=np.bool_)
        padded = np.concatenate([demonstrations.forward, padding], axis=1)
        self._windows = np.lib.stride_tricks.sliding_window_view(padded, horizon, axis=1)
        visited = demonstrations.states[:, :-1].ravel()
        self._order = np.argsort(visited, kind="stable")
        self._count = np.bincount(visited, minlength=GOAL + 1)
        self._first = np.cumsum(self._count) - self._count
        self._horizon, self._steps = horizon, steps

    def chunks(self, states: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Draw one chunk ``(M, h)`` for each state ``(M,)``; forward only where the demonstrator never was."""
        count = self._count[states]
        drawn = self._first[states] + (rng.random(states.size) * count).astype(np.int64)
        episode, step = np.divmod(self._order[np.minimum(drawn, self._order.size - 1)], self._steps)
        chunks: NDArray[np.bool_] = self._windows[episode, step] | (count == 0)[:, None]
        return chunks

    def roll_out(self, noise: float, steps: int, episodes: int, rng: np.random.Generator) -> Rollouts:
        """Roll the learner out; it looks at the state at every h-th step."""
        chunk = np.zeros((episodes, self._horizon), dtype=np.bool_)

        def act(step: int, state: NDArray[np.int8]) -> NDArray[np.bool_]:
            if step % self._horizon == 0:
                chunk[:] = self.chunks(state, rng)
            return chunk[:, step % self._horizon]

        return _roll(act, noise, steps, episodes, rng)


Act = Callable[[int, NDArray[np.int8]], NDArray[np.bool_]]
"""(step, states (M,)) -> whether each moves forward (M,)."""


def _roll(act: Act, noise: float, steps: int, episodes: int, rng: np.random.Generator) -> Rollouts:
    states = np.zeros((episodes, steps + 1), dtype=np.int8)
    forward = np.empty((episodes, steps), dtype=np.bool_)
    for step in range(steps):
        state = states[:, step]
        forward[:, step] = act(step, state)
        moves = forward[:, step] & (rng.random(episodes) >= noise) & (state < GOAL)
        states[:, step + 1] = state + moves
    return Rollouts(states, forward)


Counts = NDArray[np.int64]
Shares = NDArray[np.float64]


def _counter(stays: bool, in_pause: bool) -> Callable[[Rollouts], Counts]:
    """Return what counts per rollout, ``(M,)``: idle actions, or steps after which the state is the same.

    Args:
        stays: count steps, whether the action was idle or failed.
        in_pause: only those that began in s5; else all before the goal.
    """

    def count(rollouts: Rollouts) -> Counts:
        before, after = rollouts.states[:, :-1], rollouts.states[:, 1:]
        idle = before == after if stays else ~rollouts.forward
        where = before == PAUSE_STATE if in_pause else before != GOAL
        counts: Counts = (idle & where).sum(axis=1, dtype=np.int64)
        return counts

    return count


def histogram(counts: Counts, size: int) -> Shares:
    """Share of the rollouts with 0, 1, ... ``size - 1`` of what was counted."""
    shares: Shares = np.bincount(counts, minlength=size) / counts.size
    return shares


def wasserstein(first: Shares, second: Shares) -> float:
    """1-Wasserstein distance of two distributions on 0, 1, ...: by how many actions they differ; any size."""
    return float(np.abs(np.cumsum(first - second)).sum())


def total_variation(first: Shares, second: Shares) -> float:
    """Half the summed difference, as usually defined; 0 to 1."""
    return summed_difference(first, second) / 2


def summed_difference(first: Shares, second: Shares) -> float:
    """Summed difference of the two distributions; 0 to 2."""
    return float(np.abs(first - second).sum())


COUNTS: Final[Mapping[str, Callable[[Rollouts], Counts]]] = {
    "idle": _counter(stays=False, in_pause=False),
    "idle-s5": _counter(stays=False, in_pause=True),
    "stay": _counter(stays=True, in_pause=False),
    "stay-s5": _counter(stays=True, in_pause=True),
}
DISTANCES: Final[Mapping[str, Callable[[Shares, Shares], float]]] = {
    "wasserstein": wasserstein,
    "total-variation": total_variation,
    "summed": summed_difference,
}
