"""A task in the terms of a network, and the spread of a network's actions in the terms of the task."""

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.core.errors import BundleError
from bid_ros.core.feature import Feature
from bid_ros.core.rotation import DOWN_6D, Array
from bid_ros.core.task import Task
from bid_ros.policy.spaces.action import ActionConversion
from bid_ros.policy.spaces.config import Space
from bid_ros.policy.spaces.grid import grid_of
from bid_ros.policy.spaces.observation import ObservationConversion
from bid_ros.policy.spaces.part_conversion import ROTATION

ACTION = "action"
DRAWN = 512  # chunks; the spread is then known to a few hundredths


class SpaceFeature(Feature):
    """An input or the output of a network: images, or a vector of numbers of any meaning, which have no topic."""

    def __post_init__(self) -> None:
        """Check nothing: the space was checked."""


class NetworkTask(Task):
    """The task in a network's terms: its inputs, its one vector of actions, its steps, rows and rate.

    It has the name, robot, frames and limits of the task, but no signature that anything else shares. No task file
    can say it, so nothing but a family of policies gets one.
    """

    def __post_init__(self) -> None:
        """Check nothing: the space was checked. A network may see more steps than it predicts rows."""


def network_task(space: Space, task: Task) -> Task:
    """Return the task in a network's terms.

    Raises:
        BundleError: the space does not fit the task.
    """
    grid = grid_of(space, task)
    shapes = ObservationConversion(space, task).shapes
    observation = tuple(
        SpaceFeature(name=name, kind="image" if len(shape) == 3 else "vector", shape=shape)
        for name, shape in shapes.items()
    )
    size = ActionConversion(space, task, grid).size
    return NetworkTask(
        name=task.name,
        robot=task.robot,
        rate_hz=task.rate_hz if space.rate_hz is None else space.rate_hz,
        observation_steps=grid.steps,
        horizon=grid.horizon,
        observation=observation,
        action=(SpaceFeature(name=ACTION, kind="vector", shape=(size,)),),
        limits=task.limits,
        base_frame=task.base_frame,
        tool_frame=task.tool_frame,
        kind=task.kind,
    )


def task_spread(space: Space, task: Task, mean: ArrayLike, deviation: ArrayLike) -> Array:
    """Return an estimate of ``action_spread`` ``(D,)``, task units, where only the network's statistics are known.

    Chunks are drawn from independent normal distributions, converted, and their deviation is taken. Relative ones count
    from nothing, and from a tool that points down: what the arm's own motion adds is not in it.

    Args:
        space: of the network.
        task: whose action is wanted.
        mean, deviation: ``(size,)`` of each column of the network's rows in the training data, the network's units.

    Raises:
        BundleError: the space does not fit the task, or there is not one finite number for each column.
    """
    grid = grid_of(space, task)
    conversion, rng = ActionConversion(space, task, grid), np.random.default_rng(0)
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
