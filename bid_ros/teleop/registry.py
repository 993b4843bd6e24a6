"""The scripted teleoperator of each task, by the name of the task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.errors import TaskError
from bid_ros.teleop.picker import ScriptedPicker
from bid_ros.teleop.planned import PlannedTeleoperator
from bid_ros.teleop.scripted import ScriptedTeleoperator

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Demonstrator:
    """How a task is demonstrated.

    Attributes:
        bodies: names of what the teleoperator looks at before it plans.
        plan: from style (``clean`` or ``diverse``), seed, tool position ``(3,)`` m, positions of the bodies by name
            ``(3,)`` m, both base frame, and ROS time in ns to a teleoperator with a plan that begins then. Raises
            BidError for a style, seed or position that is not valid.
    """

    bodies: tuple[str, ...]
    plan: Callable[[str, int, Array, Mapping[str, Array], int], PlannedTeleoperator]


def find_demonstrator(task: str) -> Demonstrator:
    """Return how a task is demonstrated.

    Raises:
        TaskError: if nobody knows how.
    """
    if task not in DEMONSTRATORS:
        raise TaskError(f"the task '{task}' has no scripted teleoperator; valid are {', '.join(DEMONSTRATORS)}")
    return DEMONSTRATORS[task]


def _place(style: str, seed: int, tool: Array, bodies: Mapping[str, Array], now_ns: int) -> PlannedTeleoperator:
    placer = ScriptedTeleoperator(style, seed)
    placer.plan(tool, bodies["cup"], now_ns)
    return placer


def _pick(style: str, seed: int, tool: Array, bodies: Mapping[str, Array], now_ns: int) -> PlannedTeleoperator:
    picker = ScriptedPicker(style, seed)
    picker.plan(tool, bodies["cup"], bodies["saucer"], now_ns)
    return picker


DEMONSTRATORS: Final[Mapping[str, Demonstrator]] = {
    "franka_place": Demonstrator(("cup",), _place),
    "ur5_pick": Demonstrator(("cup", "saucer"), _pick),
}
