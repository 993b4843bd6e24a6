"""Turns the task's observations into the inputs of a network."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import BundleError
from bid_ros.core.observation import Observation
from bid_ros.core.rotation import DOWN_6D, Array, matrix_from_6d
from bid_ros.core.task import Task
from bid_ros.policy.spaces.config import START, STEPWISE, ObservedFeature, Space
from bid_ros.policy.spaces.forms import columns_of
from bid_ros.policy.spaces.part_conversion import ROTATION, PartColumns, RotationPart, ValuePart, place_columns

Source = Callable[[Observation], NDArray[Any]]


class ObservationConversion:
    """The way from the task's observation to that of a network.

    Args:
        space: of the network.
        task: what is observed.

    Attributes:
        shapes: shape of each input of the network, by name, in its order: ``(height, width, 3)`` or ``(size,)``.

    Raises:
        BundleError: an input names no such feature, or a form that does not fit it.
    """

    def __init__(self, space: Space, task: Task) -> None:
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._sources: dict[str, Source] = {}
        if not space.observation:
            self.shapes = {item.name: item.shape for item in task.observation}
        for item in space.observation:
            build = _camera if item.camera else _vector
            self._sources[item.name], self.shapes[item.name] = build(item, task)

    def to_network(self, observation: Observation) -> Observation:
        """Return what the network sees of an observation of the task's features at the network's steps.

        Its values are ``(steps, *shape)``: images uint8, vectors float64 in the network's units.
        """
        if not self._sources:
            return observation
        values = {name: source(observation) for name, source in self._sources.items()}
        return Observation(observation.stamp_ns, values)


def _camera(item: ObservedFeature, task: Task) -> tuple[Source, tuple[int, ...]]:
    """Return what makes the images of an input, and their shape."""
    from bid_ros.cameras.image import resize_crop

    valid = {camera.name: camera for camera in task.cameras}
    if item.camera not in valid:
        names = ", ".join(valid) or "none"
        raise BundleError(f"space.observation: '{item.name}' has camera '{item.camera}'; the task's are {names}")
    if valid[item.camera].depth is not None:
        raise BundleError(
            f"space.observation: '{item.name}' has camera '{item.camera}' of distances; valid are colours"
        )
    shape = valid[item.camera].shape
    size = shape[:2] if item.size is None else item.size
    if tuple(size) == shape[:2]:
        return lambda observation: observation.values[item.camera], shape
    return (
        lambda observation: np.stack([resize_crop(image, None, size) for image in observation.values[item.camera]]),
        (*size, 3),
    )


def _vector(item: ObservedFeature, task: Task) -> tuple[Source, tuple[int, ...]]:
    """Return what makes the vectors of an input, and their shape."""
    valid = {feature.name: feature for feature in task.vectors}
    where = f"space.observation '{item.name}'"
    for part in item.columns:
        if part.ignored:
            raise BundleError(f"{where}: a part is ignored; valid are a feature or constant numbers")
        if part.feature and part.feature not in valid:
            names = ", ".join(valid)
            raise BundleError(f"{where} names '{part.feature}', which the task does not observe; valid are {names}")
    sizes = [columns_of(part, valid[part.feature]) if part.feature else len(part.constant) for part in item.columns]
    placed = place_columns(item.columns, sizes, where)
    made = [
        _part(PartColumns(part, columns, valid[part.feature], slice(0), where), task) if part.feature else None
        for part, columns in zip(item.columns, placed, strict=True)
    ]
    width, needed = sum(sizes), {name for way in made if way is not None for name in way.needed}
    down = {"": matrix_from_6d(DOWN_6D)[None]}

    def source(observation: Observation) -> Array:
        seen = observation.values
        found = np.empty((next(iter(seen.values())).shape[0], width))
        newest = {name: seen[name][-1:] for name in needed}
        anchor = down | {
            name: matrix_from_6d(rows) if valid[name].kind == ROTATION else rows for name, rows in newest.items()
        }
        for part, columns, way in zip(item.columns, placed, made, strict=True):
            found[:, columns] = part.constant if way is None else way.to_network(seen[part.feature], anchor, found)
        return found

    return source, (width,)


def _part(place: PartColumns, task: Task) -> RotationPart | ValuePart:
    """Return the way to the columns of a part."""
    part = place.part
    if part.reference in STEPWISE or part.observed:
        said = f"observed '{part.observed}'" if part.observed else f"reference '{part.reference}'"
        raise BundleError(
            f"{place.where}: '{part.feature}' has {said}; valid are references absolute, observed and start"
        )
    if place.feature.kind == ROTATION:
        return RotationPart(place, task, 1.0)
    if part.reference == START:
        raise BundleError(f"{place.where}: '{part.feature}' has reference '{START}'; valid with it is a rotation")
    return ValuePart(place, task, 1.0)
