"""The task as a network sees it: what a family of policies gets in place of the task."""

from bid_ros.core.task import Feature, Task
from bid_ros.policy.spaces.action import ActionConversion
from bid_ros.policy.spaces.config import Space
from bid_ros.policy.spaces.grid import grid_of
from bid_ros.policy.spaces.observation import ObservationConversion

ACTION = "action"


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
