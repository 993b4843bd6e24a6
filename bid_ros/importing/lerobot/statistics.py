"""Statistics of training data as LeRobot normalises by them, and the policy that they complete."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import BidError
from bid_ros.importing.lerobot.checkpoint import ACTION, CONFIG, STATE, PolicyFolder
from bid_ros.importing.networks.observation import Preparation
from bid_ros.importing.policy import ImportedPolicy, NetworkFeature
from bid_ros.policy.normalise import LinearNormaliser

Array = NDArray[np.float64]
Statistics = Mapping[str, Array]
EPSILON: Final = 1e-8  # what LeRobot puts in place of a range of zero, and adds to a standard deviation
ENDS: Final = {"MIN_MAX": ("min", "max"), "QUANTILES": ("q01", "q99"), "QUANTILE10": ("q10", "q90")}
MODES: Final = ("IDENTITY", "MEAN_STD", *ENDS)


def bounds(mode: str, statistics: Statistics | None, size: int, what: str) -> tuple[Array, Array]:
    """Return what LeRobot maps to -1 and to 1, ``(S,)`` each.

    ``MIN_MAX`` maps x to 2 (x - min) / (max - min) - 1, with 1e-8 for a range of zero; quantiles likewise. ``MEAN_STD``
    maps x to (x - mean) / (std + 1e-8).

    Args:
        mode: ``IDENTITY``, ``MEAN_STD``, ``MIN_MAX``, ``QUANTILES`` or ``QUANTILE10``.
        statistics: of the feature, by name. None: the file has none.
        size: S.
        what: names file and feature, for errors.

    Raises:
        BidError: the mode is unknown; a statistic is missing, has another size, is not finite, or is out of order.
    """
    if mode not in MODES:
        raise BidError(f"{what} is normalised by '{mode}'; valid are {', '.join(MODES)}")
    if mode == "IDENTITY":
        return -np.ones(size), np.ones(size)
    if mode == "MEAN_STD":
        mean, std = (_statistic(statistics, name, size, what) for name in ("mean", "std"))
        if (std < 0).any():
            raise BidError(f"{what}: its statistic 'std' is {std.min()}; valid is 0 or more")
        return mean - (std + EPSILON), mean + (std + EPSILON)
    low, high = (_statistic(statistics, name, size, what) for name in ENDS[mode])
    if (low > high).any():
        column = int(np.argmax(low > high))
        raise BidError(f"{what}: '{ENDS[mode][0]}' of column {column} is {low[column]}; valid is up to {high[column]}")
    return low, np.where(low == high, low + EPSILON, high)


def colour_scale(mode: str, statistics: Statistics | None, what: str) -> tuple[Array, Array]:
    """Return scale and offset ``(3,)`` of the colours of an image with values 0 to 1. Arguments as :func:`bounds`."""
    low, high = bounds(mode, statistics, 3, what)
    if (high - low < 1e-6).any():
        raise BidError(f"{what}: a colour is the same in all of the training data; valid are images that differ")
    return 2 / (high - low), -(high + low) / (high - low)


def constant_columns(mode: str, statistics: Statistics | None) -> list[int]:
    """Return the columns that do not change in the training data."""
    if statistics is None or mode == "IDENTITY":
        return []
    spread = statistics["std"] if mode == "MEAN_STD" else np.subtract(*(statistics[end] for end in ENDS[mode][::-1]))
    return [int(column) for column in np.flatnonzero(np.ravel(spread) == 0)]


def spread(mode: str, statistics: Statistics | None, low: Array, high: Array) -> Array:
    """Return the standard deviation of the actions: the file's own, or that of an even distribution over the range.

    Args:
        mode: of the normalisation.
        statistics: of the actions.
        low, high: ``(D,)`` :func:`bounds` of the actions.
    """
    own = None if statistics is None else statistics.get("std")
    if own is not None and np.size(own) == low.size and np.isfinite(own).all():
        return np.ravel(own)
    return np.asarray((high - low) / (2.0 if mode == "MEAN_STD" else np.sqrt(12.0)))


def _statistic(statistics: Statistics | None, name: str, size: int, what: str) -> Array:
    found = None if statistics is None else statistics.get(name)
    if found is None:
        raise BidError(f"{what} lacks its statistic '{name}'; valid are {size} numbers")
    values = np.ravel(np.asarray(found, dtype=np.float64))
    if values.size != size:
        raise BidError(f"{what}: its statistic '{name}' has {values.size} numbers; valid are {size}")
    if not np.isfinite(values).all():
        raise BidError(f"{what}: its statistic '{name}' is {values.tolist()}; valid are finite numbers")
    return values


def needed_state(folder: PolicyFolder) -> NetworkFeature:
    """Return the feature of the robot's state. Raises BidError if the policy has none."""
    state = folder.vector(STATE)
    if state is None:
        names = ", ".join(item.name for item in folder.inputs)
        raise BidError(f"{folder.path}: input_features are {names}; valid is '{STATE}' among them")
    return state


def normalisers(folder: PolicyFolder, features: tuple[NetworkFeature, ...]) -> dict[str, LinearNormaliser]:
    """Return the normaliser of each vector feature. Raises BidError as :func:`bounds`."""
    return {
        item.name: LinearNormaliser(
            *bounds(
                folder.mode(item.name),
                folder.statistics.get(item.name),
                item.shape[0],
                folder.statistics_place(item.name),
            )
        )
        for item in features
        if not item.is_image
    }


def imported(
    folder: PolicyFolder, features: tuple[NetworkFeature, ...], more_notes: tuple[str, ...] = (), **others: Any
) -> ImportedPolicy:
    """Return the policy with the folder's statistics.

    Args:
        folder: of the policy.
        features: that it observes.
        more_notes: what a person should know besides.
        others: the fields of :class:`ImportedPolicy` that its type decides.

    Raises:
        BidError: as :func:`bounds`.
    """
    mode, own = folder.mode(ACTION), folder.statistics.get(ACTION)
    low, high = bounds(mode, own, folder.action_dim, folder.statistics_place(ACTION))
    return ImportedPolicy(
        source=str(folder.path),
        features=features,
        action_dim=folder.action_dim,
        observation=normalisers(folder, features),
        action=LinearNormaliser(low, high),
        action_spread=spread(mode, own, low, high),
        notes=(*notes(folder, features), *more_notes),
        **others,
    )


def preparation(
    folder: PolicyFolder, camera: NetworkFeature, resize: tuple[int, int] | None, crop: tuple[int, int] | None
) -> Preparation:
    """Return how a camera's image becomes the network's input: statistics first, then resize, then crop.

    Raises:
        BidError: the statistics cannot be used, or the crop is larger than the image.
    """
    where = f"{folder.path / CONFIG}: '{camera.name}': "
    scale, offset = colour_scale(
        folder.mode(camera.name), folder.statistics.get(camera.name), folder.statistics_place(camera.name)
    )
    height, width, _ = camera.shape
    return Preparation((height, width), scale.tolist(), offset.tolist(), resize, crop, where=where)


def notes(folder: PolicyFolder, features: tuple[NetworkFeature, ...]) -> tuple[str, ...]:
    """Return sentences about constant columns, which normalisation blows up."""
    found = []
    for name in [item.name for item in features if not item.is_image] + [ACTION]:
        columns = constant_columns(folder.mode(name), folder.statistics.get(name))
        if columns and name != ACTION:
            found.append(
                f"{name}: columns {columns} do not change in the training data; a deviation of 1e-8 from it moves the "
                "network's input by about 1"
            )
        elif columns:
            found.append(f"{name}: columns {columns} do not change in the training data, nor in what is predicted")
    return tuple(found)
