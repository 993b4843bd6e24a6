"""The time of one decision as on a robot: one environment, one thread, nothing shared."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import numpy as np

from bid_ros.bench.cell import Cell
from bid_ros.bench.episode import START_NS
from bid_ros.bench.scene import Scene
from bid_ros.core.observation import Observation
from bid_ros.core.task import Task
from bid_ros.decoding import build_decoder
from bid_ros.policy.base import Policy
from bid_ros.policy.decide import DecisionMaker

_REPEATS: Final = 12


def decision_ms(
    cell: Cell, policy: Policy, task: Task, scene: Scene, clock: Callable[[], int] = time.monotonic_ns
) -> float:
    """Return the median time of a decision from observation to choice, ms.

    The first decisions are not counted: they compile the networks and have no previous decision.
    """
    values = scene.observe(scene.make(0.0).reset(1))
    history = {name: np.stack([np.asarray(value)] * task.observation_steps) for name, value in values.items()}
    maker = DecisionMaker(policy, build_decoder(cell.decoder, cell.config()), task)
    times = []
    for index in range(_REPEATS + 2):
        observation = Observation(START_NS + index * cell.horizon * task.dt_ns, history)
        begin = clock()
        maker.decide(observation)
        times.append(clock() - begin)
    return float(np.median(times[2:])) / 1e6
