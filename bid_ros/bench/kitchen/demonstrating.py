"""Demonstrations of scripted operators in the kitchen: four goals, drawn, in an order that is drawn."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from bid_ros.bench.demonstrating import STREAM, performed
from bid_ros.bench.kitchen.arm import KitchenArm
from bid_ros.bench.kitchen.cabinets import hinge_cabinet, microwave, slide_cabinet
from bid_ros.bench.kitchen.catalogue import EPISODE_GOALS, GOALS
from bid_ros.bench.kitchen.env import KitchenEnv, observation_values
from bid_ros.bench.kitchen.kettle import kettle
from bid_ros.bench.kitchen.scripted_operator import KitchenOperator, Motion
from bid_ros.bench.kitchen.switches import bottom_burner, light_switch, top_burner
from bid_ros.core.task import Task
from bid_ros.recording.dataset import Dataset

HINGE: Final = "hinge cabinet"
BEHIND_DOOR: Final = ("slide cabinet", "top burner", "bottom burner")  # where it is in the way once it is open
SCRIPTS: Final[Mapping[str, Callable[[KitchenOperator], Motion]]] = {
    "bottom burner": bottom_burner,
    "top burner": top_burner,
    "light switch": light_switch,
    "slide cabinet": slide_cabinet,
    HINGE: hinge_cabinet,
    "microwave": microwave,
    "kettle": kettle,
}


def draw_goals(random: np.random.Generator) -> tuple[str, ...]:
    """Draw which four goals are done, and in which order.

    The open door of the cabinet with the hinge hangs before the handle of the one that slides, and over the knobs: of
    these, those that are drawn go first.
    """
    names = [str(name) for name in random.permutation(list(SCRIPTS))[:EPISODE_GOALS]]
    if HINGE in names:
        at = max(names.index(name) for name in names if name in (HINGE, *BEHIND_DOOR))
        names.remove(HINGE)
        names.insert(at, HINGE)
    return tuple(names)


def do_goals(operator: KitchenOperator, names: tuple[str, ...]) -> Motion:
    """Do goals one after the other, and each again until it is done."""
    for name in names:
        while not GOALS[name].done(operator.state.block):
            yield from SCRIPTS[name](operator)


def demonstrate(env: KitchenEnv, task: Task, seed: int) -> Dataset | None:
    """Return one demonstration. None: the operator did not succeed within the time of an episode.

    Args:
        env: the world.
        task: what its rows are of.
        seed: of the start and of the operator.
    """
    state = env.reset(seed)
    random = np.random.default_rng((seed, STREAM))
    names = draw_goals(random)
    operator = KitchenOperator(state, random, KitchenArm(env.physics))
    script = do_goals(operator, names)
    return performed(env, task, seed, operator, script, observation_values, lambda now: set(names) <= set(now.done))
