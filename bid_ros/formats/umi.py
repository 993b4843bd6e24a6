"""The replay buffer of UMI (Chi et al., RSS 2024): no action is stored, for it is where the hand is a moment later.

The published loader joins position, rotation vector and opening of each hand, row by row, and takes that as the action.
A chunk of actions begins with the row of its observation there, as here.
"""

import re
from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.formats.base import Column

PARTS: Final = ("eef_pos", "eef_rot_axis_angle", "gripper_width")


def hand_keys(names: Collection[str]) -> tuple[str, ...]:
    """Return the columns that make the action, in order; none: it is no replay buffer of UMI."""
    hands = sorted(int(found[1]) for name in names if (found := re.fullmatch(r"robot(\d+)_eef_pos", name)))
    wanted = tuple(f"robot{hand}_{part}" for hand in hands for part in PARTS)
    return tuple(name for name in wanted if name in names)


def derived_action(columns: Sequence[Column]) -> Column:
    """Return the column of the action that joins others, with a name for each value."""
    names = [
        column.name if column.size == 1 else f"{column.name}.{number}"
        for column in columns
        for number in range(column.size)
    ]
    dtype = np.result_type(*(np.dtype(column.dtype) for column in columns)).name
    return Column("action", (len(names),), dtype, names=tuple(names))


def joined(parts: Sequence[NDArray[Any]], rows: int) -> NDArray[Any]:
    """Return the actions ``(rows, D)`` that columns make, side by side; ``(rows, 0)`` of none."""
    empty = [] if parts else [np.zeros((rows, 0), np.float32)]
    return np.concatenate([*empty, *(values.reshape(rows, -1) for values in parts)], axis=1)
