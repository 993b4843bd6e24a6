"""What becomes of columns in a LeRobotDataset, and the way back to them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.formats.base import Column, Contents, Options, ReadBack
from bid_ros.formats.lerobot.layout import ACTION, OBSERVATION, STATE, plan_of


def fates(contents: Contents, options: Options) -> dict[str, str]:
    """Return how each column changes, by its name; the others are exact. Raises RecordingError as ``plan_of``."""
    plan, found = plan_of(contents, options), {}
    columns = {column.name: column for column in contents.columns}
    for name in plan.images if plan.video else ():
        found[name] = "H.264, with loss"
    for key, names in plan.vectors.items():
        for name in names:
            joined = f"values {name}.* of {key}" if key == STATE and name != "state" else ""
            said = [joined, *_reshaped(columns[name], plan.features[key]["dtype"])]
            found[name] = ", ".join(filter(None, said))
    found[ACTION] = ", ".join(_reshaped(contents.action, contents.action.dtype))
    return {name: said for name, said in found.items() if said}


def _reshaped(column: Column, dtype: str) -> list[str]:
    return [
        *([f"as {dtype}, exact"] if dtype != column.dtype else []),
        *([f"flat, {column.size} values"] if len(column.shape) != 1 else []),
    ]


def read_back(contents: Contents, options: Options) -> ReadBack:
    """Return what gives the columns of ``contents`` from those that are read of a data set of LeRobot."""
    plan = plan_of(contents, options)
    sizes = {column.name: column.size for column in contents.columns}

    def back(observations: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        found = {name: observations[name] for name in plan.images}
        for key, names in plan.vectors.items():
            values = observations[key.removeprefix(OBSERVATION)]
            ends = np.cumsum([sizes[name] for name in names])
            parts = np.split(values.reshape(len(values), -1), ends[:-1], axis=1)
            found |= dict(zip(names, parts, strict=True))
        return found

    return back
