"""Demonstrations of robomimic's tasks by scripted operators."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from bid_ros.bench.demonstrating import STREAM, Performer, performed
from bid_ros.bench.robomimic.can import can
from bid_ros.bench.robomimic.catalogue import CAN, LIFT, SQUARE, TOOL_HANG, RobomimicTask
from bid_ros.bench.robomimic.env import ManipulationState, RobomimicEnv, observation_values
from bid_ros.bench.robomimic.lift import lift
from bid_ros.bench.robomimic.scripted_operator import Motion, ScriptedOperator
from bid_ros.bench.robomimic.square import square
from bid_ros.bench.robomimic.tool_hang import tool_hang
from bid_ros.bench.robomimic.transport import PRACTICE, transport
from bid_ros.bench.robomimic.two_arms import OperatorPair
from bid_ros.core.task import Task
from bid_ros.recording.dataset import Dataset

ONE_ARM: Final[Mapping[str, Callable[[ScriptedOperator], Motion]]] = {
    LIFT: lift,
    CAN: can,
    SQUARE: square,
    TOOL_HANG: tool_hang,
}


def demonstrate(env: RobomimicEnv, task: Task, seed: int) -> Dataset | None:
    """Return one demonstration. None: the operator did not succeed within the time of an episode.

    Args:
        env: the world.
        task: what its rows are of.
        seed: of the scene and of the operator.
    """
    operator, script = _begin(env.reset(seed), np.random.default_rng((seed, STREAM)), env.task)
    return performed(env, task, seed, operator, script, observation_values, lambda now: now.coverage >= 1.0)


def _begin(state: ManipulationState, random: np.random.Generator, task: RobomimicTask) -> tuple[Performer, Motion]:
    """Return who acts, and what."""
    if task.arms == 2:
        pair = OperatorPair(state, random, task, PRACTICE)
        return pair, transport(pair)
    operator = ScriptedOperator(state, random, task)
    return operator, ONE_ARM[task.name](operator)
