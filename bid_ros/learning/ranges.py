"""Ranges for the normalisation and the spread of the actions, from a data set."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.task import Feature, Task
from bid_ros.policy.normalise import LinearNormaliser
from bid_ros.recording.dataset import Dataset

# The narrowest range that is mapped to [-1, 1], in the feature's unit. Otherwise the sensor noise of a dimension that
# hardly moves in the data would be scaled to the full range.
NARROWEST: Final = {"position": 0.02, "rotation_6d": 0.1, "gripper": 0.01, "joints": 0.05}
NARROWEST_OTHER: Final = 1e-3
# The same for what is observed. A tool that no demonstration turns still turns a little on a robot: narrow ranges would
# show the policy a value that it never learned from. A rotation's entries are taken as they are, from -1 to 1.
NARROWEST_OBSERVED: Final = {**NARROWEST, "rotation_6d": 2.0, "joints": 0.5}


def observation_normalisers(dataset: Dataset, task: Task) -> dict[str, LinearNormaliser]:
    """Return the normaliser of each vector feature, in the task's order."""
    return {
        feature.name: normaliser(dataset.observations[feature.name], _narrowest((feature,), NARROWEST_OBSERVED))
        for feature in task.vectors
    }


def action_normaliser(windows: NDArray[np.float64], task: Task, each_row: bool) -> LinearNormaliser:
    """Return the normaliser of the D action values.

    Args:
        windows: ``(W, H, D)`` actions of the training windows, relative to the policy's reference.
        task: layout of the actions.
        each_row: whether each of the H rows has a range of its own.
    """
    narrowest = _narrowest(task.action)
    if not each_row:
        return normaliser(windows.reshape(-1, task.action_dim), narrowest)
    rows = [normaliser(windows[:, row], narrowest) for row in range(windows.shape[1])]
    return LinearNormaliser(np.stack([row.minimum for row in rows]), np.stack([row.maximum for row in rows]))


def action_spread(dataset: Dataset, task: Task) -> NDArray[np.float64]:
    """Return ``(D,)``: standard deviation of the actions, task units, at least a tenth of the narrowest range."""
    spread: NDArray[np.float64] = np.maximum(dataset.actions.std(axis=0), _narrowest(task.action) / 10)
    return spread


def normaliser(values: NDArray[np.float64], narrowest: NDArray[np.float64] | float) -> LinearNormaliser:
    """Return the normaliser of values ``(T, ...)``. No range is below ``narrowest``."""
    flat = values.reshape(len(values), -1)
    low, high = flat.min(axis=0), flat.max(axis=0)
    half = np.maximum(high - low, narrowest) / 2
    centre = (low + high) / 2
    return LinearNormaliser(centre - half, centre + half)


def per_rad(normaliser: LinearNormaliser, feature: Feature) -> NDArray[np.float32]:
    """Return by how much each normalised column ``(S,)`` changes with a rad. 0: the feature is no angle."""
    if feature.kind not in ("rotation_6d", "joints"):
        return np.zeros(feature.size, np.float32)
    return (2.0 / (normaliser.maximum - normaliser.minimum)).astype(np.float32)


def _narrowest(features: tuple[Feature, ...], ranges: Mapping[str, float] = NARROWEST) -> NDArray[np.float64]:
    return np.concatenate([np.full(item.size, ranges.get(item.kind, NARROWEST_OTHER)) for item in features])
