"""What the bench asks of a simulated task. Push-T is one; tests bring a smaller one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class SceneState(Protocol):
    """Where everything is.

    Attributes:
        agent: ``(A,)`` what is moved by actions, px.
        block: ``(B,)`` what is to be brought to its target: x, y in px, then whatever else describes it.
        coverage: how well it lies there, 0 to 1.
    """

    @property
    def agent(self) -> Array:
        """Position of the agent."""

    @property
    def block(self) -> Array:
        """Pose of the block."""

    @property
    def coverage(self) -> float:
        """Share of the target that is covered."""


class Environment(Protocol):
    """One simulated world. The same seed and actions give the same states."""

    def reset(self, seed: int) -> Any:
        """Draw a start; return its state."""

    def set_state(self, agent: ArrayLike, block: ArrayLike) -> Any:
        """Put agent and block somewhere, at rest; return the state."""

    def step(self, action: ArrayLike) -> Any:
        """Apply an action ``(D,)`` for one control period; return the state."""


@dataclass(frozen=True)
class Scene:
    """A simulated task as functions that can be sent to another process.

    Attributes:
        name: of the task.
        make: from the block's drift in px a step to an environment.
        observe: from a state to the newest value of every observed feature.
        score: from an episode's largest coverage to its score, 0 to 1.
        render: from a state to a picture ``(size, size, 3)`` uint8.
    """

    name: str
    make: Callable[[float], Environment]
    observe: Callable[[Any], Mapping[str, Array]]
    score: Callable[[float], float]
    render: Callable[[Any], NDArray[np.uint8]]


def pusht_scene() -> Scene:
    """Return Push-T, whose simulator is only imported when asked for."""
    from bid_ros.bench.pusht.data import observation_values
    from bid_ros.bench.pusht.env import PushTEnv
    from bid_ros.bench.pusht.picture import render
    from bid_ros.bench.pusht.state import score

    return Scene("pusht", PushTEnv, observation_values, score, render)
