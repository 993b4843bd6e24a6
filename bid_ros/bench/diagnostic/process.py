"""A line of eleven states, the demonstrator that pauses half-way, and learners that imitate it chunk by chunk.

Liu et al., ICLR 2025, section 5.1: from s0 the demonstrator plans a step forward in every state until s10, except in
s5, where it pauses unless the last states visited were s5. A forward move succeeds with probability ``1 - noise``,
else the state stays. Learners see the state, not the past, and execute h planned actions before they look again.
"""

from collections.abc import Callable
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
