"""Parts that LeRobot's types of policies share: normalisers, preparation of images, what a person should know."""

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import BidError
from bid_ros.importing.lerobot.folder import ACTION, CONFIG, STATE, PolicyFolder
from bid_ros.importing.networks.images import Preparation
from bid_ros.importing.policy import NetworkFeature
from bid_ros.importing.statistics import bounds, colour_scale, constant_columns, normaliser, spread
from bid_ros.policy.normalise import LinearNormaliser


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
        item.name: normaliser(
            folder.mode(item.name), folder.statistics.get(item.name), item.shape[0], folder.said(item.name)
        )
        for item in features
        if not item.is_image
    }


def action_statistics(folder: PolicyFolder) -> tuple[LinearNormaliser, NDArray[np.float64]]:
    """Return normaliser and spread of the actions. Raises BidError as :func:`bounds`."""
    mode, own = folder.mode(ACTION), folder.statistics.get(ACTION)
    low, high = bounds(mode, own, folder.action_dim, folder.said(ACTION))
    return LinearNormaliser(low, high), spread(mode, own, low, high)


def preparation(
    folder: PolicyFolder, camera: NetworkFeature, resize: tuple[int, int] | None, crop: tuple[int, int] | None
) -> Preparation:
    """Return how a camera's image becomes the network's input: statistics first, then resize, then crop.

    Raises:
        BidError: the statistics cannot be used, or the crop is larger than the image.
    """
    what = f"{folder.path / CONFIG}: '{camera.name}'"
    scale, offset = colour_scale(folder.mode(camera.name), folder.statistics.get(camera.name), folder.said(camera.name))
    try:
        return Preparation((camera.shape[0], camera.shape[1]), scale.tolist(), offset.tolist(), resize, crop)
    except BidError as error:
        raise BidError(f"{what}: {error}") from error


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
