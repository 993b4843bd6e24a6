"""Units of data sets of others, and numbers that are hardly in the unit of their kind of feature."""

import math
import re
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import TaskError
from bid_ros.core.limits import Limits

ANGLES: Final = {"rad": 1.0, "deg": math.pi / 180}
LENGTHS: Final = {"m": 1.0, "cm": 0.01, "mm": 0.001}
PERCENT: Final = "percent"  # of the gripper's way: 100 is open; of a joint, half its range to either side of the middle
FRACTION: Final = "fraction"  # of the gripper's way: 1 is open
NUMBER: Final = r"([-+]?\d+(?:\.\d*)?)"
ENDS: Final = re.compile(rf"{NUMBER} to {NUMBER}", re.ASCII)  # numbers of an open gripper and of a closed one
UNITS: Final[dict[str, dict[str, float]]] = {
    "joints": ANGLES | {PERCENT: 0.01},
    "position": LENGTHS,
    "gripper": LENGTHS | {PERCENT: 0.01, FRACTION: 1.0},
    "vector": ANGLES | LENGTHS,
}
"""By kind of a feature: what a number in each unit is times, to be rad or m.

Percent of a joint are no angle: they become -1 to 1, which only a task of no robot may have.
"""

FULL_TURN: Final = 2 * math.pi * (1 + 1e-3)
FARTHEST_M: Final = 10.0
WIDEST: Final = 2.0  # times the task's largest opening
MOST: Final = {"joints": FULL_TURN, "position": FARTHEST_M, "gripper": FARTHEST_M}
"""By kind of a feature: rad or m that no arm has."""


def conversion(unit: str, kind: str, name: str, limits: Limits) -> tuple[float, float]:
    """Return scale and offset that make rad or m of a number in a unit.

    Args:
        unit: one of :data:`UNITS` for the kind; of a gripper also its numbers when it is open and when it is closed,
            such as ``0 to 0.8`` rad of a joint of a Robotiq 2F-85.
        kind, name: of the feature.
        limits: of the task, whose openings percent are of.

    Raises:
        TaskError: the unit is unknown, or not one of this kind.
    """
    valid = UNITS.get(kind, {})
    if kind == "gripper" and (ends := ENDS.fullmatch(unit)) and float(ends[1]) != float(ends[2]):
        opened, closed = map(float, ends.groups())
        scale = (limits.gripper_max - limits.gripper_min) / (opened - closed)
        return scale, limits.gripper_min - scale * closed
    if unit not in valid:
        known = ", ".join(valid) or f"none: a feature of kind '{kind}' has no unit"
        known += ", and what it is open and closed, such as 0 to 0.8" if kind == "gripper" else ""
        raise TaskError(f"unit of '{name}' is '{unit}'; valid for {kind} are {known}")
    if kind == "gripper" and unit in (PERCENT, FRACTION):
        return valid[unit] * (limits.gripper_max - limits.gripper_min), limits.gripper_min
    return valid[unit], 0.0


def doubt(kind: str, name: str, values: NDArray[np.float64], limits: Limits) -> str:
    """Return why numbers are hardly in rad or m; empty if they may be.

    Args:
        kind, name: of the feature.
        values: its numbers, any shape.
        limits: of the task.
    """
    most = _most(values)
    valid = {
        "joints": (FULL_TURN, "joints are in rad, at most 2 pi", "deg"),
        "position": (FARTHEST_M, f"positions are in m, at most {FARTHEST_M:g}", "mm"),
        "gripper": (
            WIDEST * limits.gripper_max,
            f"an opening is in m, of this task at most {limits.gripper_max:g}",
            PERCENT if most > 1 else FRACTION,
        ),
    }
    highest, said, other = valid.get(kind, (math.inf, "", ""))
    if most <= highest:
        return ""
    return (
        f"'{name}' reaches {most:.4g}; {said}: name its unit in the section data of the task file, such as "
        f"unit: {{{name}: {other}}}"
        f"{', or {' + name + ': 0 to 0.8}, what it is open and closed' if kind == 'gripper' else ''}"
    )


def impossible(kind: str, values: NDArray[np.float64]) -> bool:
    """Whether numbers are in another unit for certain: joints beyond a turn, positions and openings of 10 m."""
    return _most(values) > MOST.get(kind, math.inf)


def _most(values: NDArray[np.float64]) -> float:
    return float(np.abs(values).max(initial=0.0, where=np.isfinite(values)))
