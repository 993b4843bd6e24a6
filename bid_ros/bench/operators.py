"""Which simulated tasks have scripted operators."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from bid_ros.bench.demonstrating import Attempt
from bid_ros.bench.kitchen.catalogue import KITCHEN
from bid_ros.bench.robomimic.catalogue import TASKS
from bid_ros.core.task import Task


def _robomimic(name: str, task: Task) -> Attempt:
    from bid_ros.bench.robomimic.demonstrating import demonstrate
    from bid_ros.bench.robomimic.env import RobomimicEnv

    return partial(demonstrate, RobomimicEnv(name), task)


def _kitchen(task: Task) -> Attempt:
    from bid_ros.bench.kitchen.demonstrating import demonstrate
    from bid_ros.bench.kitchen.env import KitchenEnv

    return partial(demonstrate, KitchenEnv(), task)


OPERATORS: Final[Mapping[str, Callable[[Task], Attempt]]] = {
    **{name: partial(_robomimic, name) for name in TASKS},
    KITCHEN: _kitchen,
}
"""Tasks that have scripted operators; each raises BidError where its simulator is missing."""
