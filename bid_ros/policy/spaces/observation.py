"""Turns the task's observations into the inputs of a network."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import BundleError
from bid_ros.core.observation import Observation
from bid_ros.core.rotation import DOWN_6D, Array, matrix_from_6d
from bid_ros.core.task import Feature, Task
from bid_ros.policy.spaces import forms
from bid_ros.policy.spaces.config import STEPWISE, ObservedFeature, Part, Space
from bid_ros.policy.spaces.forms import chosen_form, columns_of, rotation_form, value_form
from bid_ros.policy.spaces.part_conversion import ROTATION, place_columns

Source = Callable[[Observation], NDArray[Any]]
Steps = Callable[[Observation], Array]


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
    made = [_part(part, valid[part.feature], task, where) if part.feature else None for part in item.columns]
    width = sum(sizes)

    def source(observation: Observation) -> Array:
        steps = next(iter(observation.values.values())).shape[0]
        found = np.empty((steps, width))
        for part, columns, make in zip(item.columns, placed, made, strict=True):
            found[:, columns] = part.constant if make is None else make(observation)
        return found

    return source, (width,)


def _part(part: Part, feature: Feature, task: Task, where: str) -> Steps:
    """Return what makes the columns ``(steps, S)`` of a part."""
    if part.reference in STEPWISE or part.observed:
        said = f"observed '{part.observed}'" if part.observed else f"reference '{part.reference}'"
        raise BundleError(f"{where}: '{part.feature}' has {said}; valid are references absolute, observed and start")
    relative, tool = part.reference != "absolute", part.axes == "tool"
    if feature.kind == ROTATION:
        return _turns(part, feature)
    if part.reference == "start":
        raise BundleError(f"{where}: '{part.feature}' has reference 'start'; valid with it is a rotation")
    values = value_form(part, feature, task.limits)
    axes = _axes(part, task, where) if tool else ""

    def numbers(observation: Observation) -> Array:
        seen = observation.values[feature.name]
        if relative:
            seen = seen - seen[-1]
        if axes:
            seen = forms.against(matrix_from_6d(observation.values[axes][-1]), seen)
        return values.network(seen)

    return numbers


def _turns(part: Part, feature: Feature) -> Steps:
    """Return what makes the columns of a rotation."""
    kind, tool = chosen_form(part, feature), part.axes == "tool"
    form = rotation_form(kind, part.order, part.degrees, part.positive)
    if part.reference == "absolute" and kind == ROTATION:
        return lambda observation: observation.values[feature.name]
    start = matrix_from_6d(np.array(DOWN_6D))

    def turns(observation: Observation) -> Array:
        matrix = matrix_from_6d(observation.values[feature.name])
        if part.reference == "absolute":
            return form.columns(matrix)
        return form.columns(forms.between(matrix, matrix[-1] if part.reference == "observed" else start, tool))

    return turns


def _axes(part: Part, task: Task, where: str) -> str:
    """Return the name of the rotation whose axes a position has."""
    valid = [item.name for item in task.vectors if item.kind == ROTATION]
    name = part.rotation or next(iter(valid), "")
    if name not in valid:
        names = ", ".join(valid) or "none, for the task observes no rotation"
        raise BundleError(f"{where}: axes 'tool' of '{part.feature}' need the rotation '{name}'; valid are {names}")
    return name
