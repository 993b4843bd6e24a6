"""Two people, each with an arm of the same world: what they see of each other, and how their actions are joined."""

from collections.abc import Callable

import numpy as np

from bid_ros.bench.robomimic.catalogue import RobomimicTask
from bid_ros.bench.robomimic.env import RATE_HZ, ManipulationState
from bid_ros.bench.robomimic.scripted_operator import Motion, ScriptedOperator


class OperatorPair:
    """Two operators. Each has its own skill, and its own random numbers, so that none depends on how the other moves.

    Args:
        state: at the start of the episode.
        random: what differs from one pair to another is drawn from it.
        task: of two arms.
        practice: least level of skill of both.

    Attributes:
        first, second: who moves the arm of this number.
        random: as given.
    """

    def __init__(
        self, state: ManipulationState, random: np.random.Generator, task: RobomimicTask, practice: float = 0.0
    ) -> None:
        self._state, self.random = state, random
        self.first, self.second = (
            ScriptedOperator(state, np.random.default_rng(random.integers(2**62)), task, arm, practice)
            for arm in range(2)
        )

    @property
    def state(self) -> ManipulationState:
        """The newest; whoever takes the actions sets it after each step, for both."""
        return self._state

    @state.setter
    def state(self, state: ManipulationState) -> None:
        self._state = self.first.state = self.second.state = state

    def together(self, first: Motion, second: Motion) -> Motion:
        """Join what the two do into actions ``(20,)``. Who is done stays until the other is done, too."""
        while True:
            parts = [next(first, None), next(second, None)]
            if all(part is None for part in parts):
                return
            one, other = (
                next(operator.wait(1.0 / RATE_HZ)) if part is None else part
                for part, operator in zip(parts, (self.first, self.second), strict=True)
            )
            yield np.concatenate([one, other])


def until(operator: ScriptedOperator, reached: Callable[[], bool]) -> Motion:
    """Stay until something has come about."""
    while not reached():
        yield from operator.wait(1.0 / RATE_HZ)
