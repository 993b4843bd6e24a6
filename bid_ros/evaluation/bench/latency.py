"""How long one decision takes as a robot would make it: one environment, one thread, nothing shared."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import numpy as np

from bid_ros.decoding import DecodeRequest, build_decoder
from bid_ros.evaluation.bench.cell import Cell
from bid_ros.evaluation.bench.episode import START_NS
from bid_ros.evaluation.bench.scene import Scene
from bid_ros.observation import Observation
from bid_ros.policy.policy import Policy
from bid_ros.task import Task

_REPEATS: Final = 12


def decision_ms(
    cell: Cell, policy: Policy, task: Task, scene: Scene, clock: Callable[[], int] = time.monotonic_ns
) -> float:
    """Return the median time of a decision from observation to choice, ms.

    The first decisions compile the networks and have no previous one; they are not counted.
    """
    values = scene.observe(scene.make(0.0).reset(1))
    history = {name: np.stack([np.asarray(value)] * task.observation_steps) for name, value in values.items()}
    decoder = build_decoder(cell.decoder, cell.config())
    rng = np.random.default_rng(0)
    times = []
    for index in range(_REPEATS + 2):
        stamp = START_NS + index * cell.horizon * task.dt_ns
        request = DecodeRequest(stamp, task.dt_ns, task.observation_steps, task.horizon, task.action_dim)
        begin = clock()
        proposal = decoder.propose(request)
        weak = proposal.weak if policy.has_weak else 0
        encoded = policy.encode(Observation(stamp, history), weak=weak > 0)
        strong, others = policy.sample(encoded, proposal.strong, weak, rng, proposal.start, proposal.start_mode)
        decoder.choose(request, strong, others)
        times.append(clock() - begin)
    return float(np.median(times[2:])) / 1e6
