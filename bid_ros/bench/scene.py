"""What the bench asks of a simulated task: Push-T, door, kitchen, robomimic's tasks; tests bring a smaller one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.bench.kitchen.catalogue import KITCHEN
from bid_ros.bench.robomimic.catalogue import TASKS
from bid_ros.core.task import Task
from bid_ros.recording.provenance import installed_version

Array = NDArray[np.float64]

PUSHT: Final = "pusht"
ROBOTICS: Final = ("gymnasium-robotics", "mujoco")


class Environment(Protocol):
    """One simulated world. The same seed and actions give the same states.

    A state has the attributes ``agent``, ``(A,)`` of what is moved by actions, in their units; ``block``, ``(B,)`` of
    what is to be brought to its target; ``coverage``, 0 to 1: how well it lies there. Only a block whose first values
    are x and y in px can drift or jump.
    """

    def reset(self, seed: int) -> Any:
        """Draw a start; return its state."""

    def set_state(self, agent: ArrayLike, block: ArrayLike) -> Any:
        """Put agent and block somewhere, at rest; return the state."""

    def step(self, action: ArrayLike) -> Any:
        """Apply an action ``(D,)`` for one control period; return the state."""


@dataclass(frozen=True)
class BenchScene:
    """A simulated task as functions that can be sent to another process.

    Attributes:
        name: of the task.
        make: from the block's drift in px a step to an environment.
        observe: from a state to the newest value of every observed feature.
        score: from an episode's largest coverage to its score, 0 to 1.
        render: from a state to a picture ``(size, size, 3)`` uint8.
        scored: what the score is, in words.
        packages: that simulate it. Numbers of two versions of them are not compared.
    """

    name: str
    make: Callable[[float], Environment]
    observe: Callable[[Any], Mapping[str, Array]]
    score: Callable[[float], float]
    render: Callable[[Any], NDArray[np.uint8]]
    scored: str
    packages: tuple[str, ...] = ()

    @property
    def simulator(self) -> str:
        """The packages with their installed versions, in words."""
        return ", ".join(f"{name} {installed_version(name) or 'unknown'}" for name in self.packages)


@dataclass(frozen=True)
class BenchSetup:
    """What a process needs beside its units.

    Attributes:
        bundle: folder of the policy.
        task: task it was made for.
        scene: the simulated task.
        runtime: name of the inference runtime.
        correction: folder of the policy's correction head, see :mod:`bid_ros.policy.correction`; None: no correction.
    """

    bundle: Path
    task: Task
    scene: BenchScene
    runtime: str = "auto"
    correction: Path | None = None


def pusht_scene() -> BenchScene:
    """Return Push-T, whose simulator is only imported when asked for."""
    from bid_ros.bench.pusht.data import observation_values
    from bid_ros.bench.pusht.env import PushTEnv, render, score

    scored = "largest coverage divided by 0.95, at most 1"
    return BenchScene(PUSHT, PushTEnv, observation_values, score, render, scored, ("gym-pusht", "pymunk"))


def door_scene() -> BenchScene:
    """Return Adroit's door, whose simulator is only imported when asked for."""
    from bid_ros.bench.door.env import DoorEnv, observation_values, render, score

    scored = "largest angle of the door divided by 1.35 rad, at most 1"
    return BenchScene("door", DoorEnv, observation_values, score, render, scored, ROBOTICS)


def kitchen_scene() -> BenchScene:
    """Return Franka Kitchen, whose simulator is only imported when asked for."""
    from bid_ros.bench.kitchen.env import KitchenEnv, observation_values, render, score

    scored = "goals done as a share of four"
    return BenchScene(KITCHEN, KitchenEnv, observation_values, score, render, scored, ROBOTICS)


def robomimic_scene(name: str) -> BenchScene:
    """Return a task of robomimic, whose simulator is only imported when asked for."""
    from bid_ros.bench.robomimic.env import RobomimicEnv, observation_values, render, score

    scored = "1 if the task was done in any state, otherwise 0"
    make, draw = partial(RobomimicEnv, name), partial(render, name)
    return BenchScene(name, make, observation_values, score, draw, scored, ("robosuite", "mujoco"))


SCENES: Final[Mapping[str, Callable[[], BenchScene]]] = {
    PUSHT: pusht_scene,
    "door": door_scene,
    KITCHEN: kitchen_scene,
    **{name: partial(robomimic_scene, name) for name in TASKS},
}
"""The benches by name."""
