"""Turns what a network predicts into chunks of the task's action, and back."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import BundleError
from bid_ros.core.rotation import Array, matrix_from_6d, matrix_to_6d
from bid_ros.core.task import Task
from bid_ros.policy.spaces.config import START, Part, Space
from bid_ros.policy.spaces.forms import columns_of
from bid_ros.policy.spaces.grid import Grid
from bid_ros.policy.spaces.part_conversion import (
    ROTATION,
    Anchor,
    PartColumns,
    RotationPart,
    ValuePart,
    observed_feature,
    place_columns,
)


class ActionConversion:
    """The way from a network's columns to the task's and back, row by row of the network. Vectorised over N samples.

    Args:
        space: of the network.
        task: whose action is wanted.
        grid: of the network.

    Attributes:
        size: number of columns of the network's rows.
        linear: whether the way back undoes the way there for any chunk, so that sampling may start from one.
        row_wise: whether it does so row by row, so that rows may be drawn towards a target.
        switched: columns of the task's action that have two values only.

    Raises:
        BundleError: a part is of no action feature, two are of one, one has a form that does not fit, or an action
            feature has no part.
    """

    def __init__(self, space: Space, task: Task, grid: Grid) -> None:
        self._width, self._past = task.action_dim, grid.past_rows
        described = space.action or tuple(Part(feature=item.name) for item in task.action)
        _check_complete(described, space, task)
        own = {item.name: (item, columns) for item, columns in task.action_columns}
        sizes = [columns_of(part, own[part.feature][0]) if part.feature else part.ignored for part in described]
        columns = place_columns(described, sizes, "space.action")
        self.size = sum(sizes)
        places = [
            PartColumns(part, at, *own[part.feature])
            for part, at in zip(described, columns, strict=True)
            if part.feature
        ]
        dt = grid.dt_ns / NANOSECONDS
        turning = [RotationPart(place, task, dt) for place in places if place.feature.kind == ROTATION]
        values = [ValuePart(place, task, dt) for place in places if place.feature.kind != ROTATION]
        # Rotations first: some values are along their axes.
        self._parts: list[RotationPart | ValuePart] = [*turning, *values]
        self._held = [(observed_feature(task, own[name][0], name, "held"), own[name][1]) for name in space.held]
        self._fixed = [(own[name][1], np.array(value)) for name, value in space.fixed.items()]
        # What is ignored has no way back.
        self.linear = len(places) == len(described) and all(item.linear for item in self._parts)
        self.row_wise = self.linear and not any(item.stepwise for item in self._parts)
        self.switched = [item.place.own for item in values if item.switched]
        rotations = {item.name for item in task.vectors if item.kind == ROTATION}
        names = {name for item in self._parts for name in item.needed} | {item.name for item, _ in self._held}
        self._needed = {name: name in rotations for name in sorted(names)}

    def anchor(self, observed: Mapping[str, NDArray[Any]]) -> Anchor:
        """Return what chunks count from, of observed values ``(steps, S)`` at the network's steps, task units."""
        found = {}
        for name, turns in self._needed.items():
            values = np.asarray(observed[name], dtype=np.float64)
            rows = values[np.maximum(np.arange(-self._past - 1, 0) + len(values), 0)]
            found[name] = matrix_from_6d(rows) if turns else rows
        return found

    def to_task(self, predicted: Array, anchor: Anchor) -> Array:
        """Return chunks ``(N, H, D)`` in task units of predicted ones ``(N, H, size)`` in the network's."""
        chunks = np.empty((*predicted.shape[:2], self._width))
        for feature, own in self._held:
            newest = anchor[feature.name][-1]
            chunks[..., own] = matrix_to_6d(newest) if feature.kind == ROTATION else newest
        for own, value in self._fixed:
            chunks[..., own] = value
        for item in self._parts:
            chunks[..., item.place.own] = item.to_task(predicted[..., item.place.at], anchor, chunks)
        return chunks

    def to_network(self, chunks: Array, anchor: Anchor) -> Array:
        """Return chunks ``(N, H, size)`` in the network's units of those in the task's, ``(N, H, D)``.

        Columns that are ignored are 0.
        """
        predicted = np.zeros((*chunks.shape[:2], self.size))
        for item in self._parts:
            predicted[..., item.place.at] = item.to_network(chunks[..., item.place.own], anchor, chunks)
        return predicted


def _check_complete(parts: Sequence[Part], space: Space, task: Task) -> None:
    """Raise BundleError unless the space says of each of the task's action features, once, where it comes from."""
    valid = [item.name for item in task.action]
    for part in parts:
        if part.constant:
            raise BundleError("space.action: a part is constant; valid are a feature or a number of ignored columns")
        if part.reference == START:
            raise BundleError(
                f"'{part.feature}' of the action has reference '{START}'; valid for an action are the others"
            )
    named = [part.feature for part in parts if part.feature] + [*space.held, *space.fixed]
    for name in named:
        if name not in valid:
            raise BundleError(
                f"space.action names '{name}', which task '{task.name}' does not command; valid are {', '.join(valid)}"
            )
        if named.count(name) > 1:
            raise BundleError(f"space.action names '{name}' {named.count(name)} times; valid is once")
    for name in valid:
        if name not in named:
            raise BundleError(
                f"space.action does not say where '{name}' comes from; valid is a part of the row, held or fixed"
            )
    sizes = {item.name: item.size for item in task.action}
    for name, value in space.fixed.items():
        if len(value) != sizes[name]:
            raise BundleError(f"space.fixed has {len(value)} numbers of '{name}'; valid are {sizes[name]}")
