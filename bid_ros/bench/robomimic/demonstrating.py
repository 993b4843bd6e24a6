"""Demonstrations of robomimic's tasks by scripted operators."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from bid_ros.bench.demonstrating import STREAM, demonstration
from bid_ros.bench.robomimic.can import can
from bid_ros.bench.robomimic.catalogue import CAN, LIFT, SQUARE, TOOL_HANG
from bid_ros.bench.robomimic.env import RATE_HZ, RobomimicEnv
from bid_ros.bench.robomimic.lift import lift
from bid_ros.bench.robomimic.scripted_operator import Array, Motion, ScriptedOperator
from bid_ros.bench.robomimic.square import square
from bid_ros.bench.robomimic.tool_hang import tool_hang
from bid_ros.core.task import Task
from bid_ros.recording.dataset import Dataset

SCRIPTS: Final[Mapping[str, Callable[[ScriptedOperator], Motion]]] = {
    LIFT: lift,
    CAN: can,
    SQUARE: square,
    TOOL_HANG: tool_hang,
}


def demonstrate(env: RobomimicEnv, task: Task, seed: int) -> Dataset | None:
    """Return one demonstration. None: the operator did not succeed within the time of an episode.

    Row ``t`` holds what was seen at step ``t`` and the action that followed. Nothing is recorded after the script.

    Args:
        env: the world.
        task: what its rows are of.
        seed: of the scene and of the operator.
    """
    state = env.reset(seed)
    operator = ScriptedOperator(state, np.random.default_rng((seed, STREAM)), env.task)
    shown: list[Mapping[str, Array]] = []
    actions: list[Array] = []
    done = False
    for action in SCRIPTS[env.task.name](operator):
        if len(actions) >= task.episode_timeout * RATE_HZ:
            return None
        shown.append(state.shown)
        actions.append(action)
        operator.state = state = env.step(action)
        done = done or state.coverage >= 1.0
    return demonstration(task, seed, shown, actions) if done else None
