"""The scripted teleoperator of each task, by the name of the task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.errors import BidError, TaskError
from bid_ros.teleop.picker import ScriptedPicker
from bid_ros.teleop.picking import PickingConfig
from bid_ros.teleop.planned import PlannedTeleoperator
from bid_ros.teleop.scripted import ScriptedTeleoperator

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Demonstrator:
    """How a task is demonstrated.

    Attributes:
        styles: of its demonstrations, and how many of each a data set has unless asked otherwise.
        bodies: names of what the teleoperator looks at before it plans.
        plan: from style (``clean`` or ``diverse``), seed, tool position ``(3,)`` m, positions of the bodies by name
            ``(3,)`` m, both base frame, and ROS time in ns to a teleoperator with a plan that begins then. Raises
            BidError for a style, seed or position that is not valid.
        preparation: from style, seed and positions of the bodies to where the tool, which points down, is brought after
            the scene was laid out, and before the demonstration begins: positions ``(3,)`` m and the gripper's widths
            m, one after the other. Mostly none.
    """

    styles: Mapping[str, int]
    bodies: tuple[str, ...]
    plan: Callable[[str, int, Array, Mapping[str, Array], int], PlannedTeleoperator]
    preparation: Callable[[str, int, Mapping[str, Array]], Sequence[tuple[Array, float]]]


def find_demonstrator(task: str) -> Demonstrator:
    """Return how a task is demonstrated.

    Raises:
        TaskError: if nobody knows how.
    """
    if task not in DEMONSTRATORS:
        raise TaskError(f"the task '{task}' has no scripted teleoperator; valid are {', '.join(DEMONSTRATORS)}")
    return DEMONSTRATORS[task]


def check_styles(task: str, styles: Iterable[str]) -> None:
    """Raise BidError if a task, which has demonstrations, has none in one of these styles."""
    valid = find_demonstrator(task).styles
    for style in styles:
        if style not in valid:
            raise BidError(f"demonstration style is '{style}'; valid for {task} are {', '.join(valid)}")


def _place(style: str, seed: int, tool: Array, bodies: Mapping[str, Array], now_ns: int) -> PlannedTeleoperator:
    placer = ScriptedTeleoperator(style, seed)
    placer.plan(tool, bodies["cup"], now_ns)
    return placer


def _pick(style: str, seed: int, tool: Array, bodies: Mapping[str, Array], now_ns: int) -> PlannedTeleoperator:
    picker = ScriptedPicker(style, seed)
    picker.plan(tool, bodies["cup"], bodies["saucer"], now_ns)
    return picker


def _no_preparation(style: str, seed: int, bodies: Mapping[str, Array]) -> Sequence[tuple[Array, float]]:
    return ()


def _prepare_picking(style: str, seed: int, bodies: Mapping[str, Array]) -> Sequence[tuple[Array, float]]:
    config = PickingConfig()
    recovery = ScriptedPicker(style, seed, config).recovery(bodies["cup"][:2], bodies["saucer"][:2])
    if recovery is None:
        return ()
    opened, closed = ((recovery.position, width) for width in (config.open_width, config.closed_width))
    return (opened, closed) if recovery.held else (closed,)


DEMONSTRATORS: Final[Mapping[str, Demonstrator]] = {
    "franka_place": Demonstrator({"clean": 50, "diverse": 100}, ("cup",), _place, _no_preparation),
    "ur5_pick": Demonstrator({"clean": 50, "diverse": 100, "recover": 60}, ("cup", "saucer"), _pick, _prepare_picking),
}
# The styles of all of them, each once.
STYLES: Final = tuple(dict.fromkeys(style for found in DEMONSTRATORS.values() for style in found.styles))
