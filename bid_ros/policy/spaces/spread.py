"""The spread of a network's actions in the task's terms, for who writes the bundle of a policy from elsewhere."""

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.core.errors import BundleError
from bid_ros.core.rotation import DOWN_6D, Array
from bid_ros.core.task import Task
from bid_ros.policy.spaces.action import ActionConversion
from bid_ros.policy.spaces.config import Space
from bid_ros.policy.spaces.grid import grid_of
from bid_ros.policy.spaces.part_conversion import ROTATION

DRAWN = 512  # chunks; the spread is then known to a few hundredths


def task_spread(space: Space, task: Task, mean: ArrayLike, deviation: ArrayLike, seed: int = 0) -> Array:
    """Return an estimate of ``action_spread`` ``(D,)``, task units, where only the network's statistics are known.

    Chunks are drawn from independent normal distributions, converted, and their deviation is taken. Relative ones count
    from nothing, and from a tool that points down: what the arm's own motion adds is not in it.

    Args:
        space: of the network.
        task: whose action is wanted.
        mean, deviation: ``(size,)`` of each column of the network's rows in the training data, the network's units.
        seed: of the draws.

    Raises:
        BundleError: the space does not fit the task, or there is not one finite number for each column.
    """
    grid = grid_of(space, task)
    conversion, rng = ActionConversion(space, task, grid), np.random.default_rng(seed)
    centre, width = (np.asarray(values, dtype=np.float64) for values in (mean, deviation))
    for name, values in (("mean", centre), ("deviation", width)):
        if values.shape != (conversion.size,) or not np.isfinite(values).all():
            raise BundleError(f"the {name} has shape {values.shape}; valid are {conversion.size} finite numbers")
    drawn = centre + width * rng.standard_normal((DRAWN, grid.horizon, conversion.size))
    still = {
        item.name: np.tile(DOWN_6D if item.kind == ROTATION else np.zeros(item.size), (grid.steps, 1))
        for item in task.vectors
    }
    chunks = conversion.to_task(drawn, conversion.anchor(still))
    spread: Array = chunks.reshape(-1, task.action_dim).std(axis=0)
    return spread
