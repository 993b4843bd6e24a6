"""The parts of a network's row: their columns, and the way from there to an action feature of the task, and back."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import BundleError
from bid_ros.core.feature import Feature
from bid_ros.core.rotation import Array, matrix_from_6d, matrix_to_6d
from bid_ros.core.task import Task
from bid_ros.policy.spaces import forms
from bid_ros.policy.spaces.config import START, STEPWISE, Part
from bid_ros.policy.spaces.forms import chosen_form, rotation_form, value_form

Columns = NDArray[np.intp]
Anchor = Mapping[str, Array]
"""What is observed at the rows up to the current one, by feature: ``(c + 1, S)``, of a rotation ``(c + 1, 3, 3)``.
For an observation also ``(1, 3, 3)`` without a name, the rotation of a tool that points down."""
ROTATION = "rotation_6d"


def place_columns(parts: Sequence[Part], sizes: Sequence[int], where: str) -> list[Columns]:
    """Return the columns of each part: together each of the vector's columns once.

    Args:
        parts: of the vector.
        sizes: number of columns of each.
        where: begins the sentence of an error.

    Raises:
        BundleError: a part has another number of columns than its form, or they overlap or leave a gap.
    """
    placed, end = [], 0
    for part, size in zip(parts, sizes, strict=True):
        columns = np.array(part.at or range(end, end + size), dtype=np.intp)
        if columns.size != size:
            raise BundleError(
                f"{where}: '{part.feature or 'constant'}' is at {columns.size} columns, {list(part.at)}; "
                f"valid are {size}"
            )
        placed.append(columns)
        end = int(columns.max()) + 1
    every = np.concatenate(placed)
    if not np.array_equal(np.sort(every), np.arange(every.size)):
        found = ", ".join(map(str, every.tolist()))
        raise BundleError(f"{where}: the parts have the columns {found}; valid is each from 0 to {every.size - 1} once")
    return placed


class PartColumns(NamedTuple):
    """Where a part is.

    Attributes:
        part: its description.
        at: its columns in the network's rows.
        feature: of the task's action, or an observed one.
        own: columns of the feature in the task's rows of actions; empty for an observed one.
        where: begins the sentence of an error.
    """

    part: Part
    at: Columns
    feature: Feature
    own: slice
    where: str = "space.action"


class RotationPart:
    """A rotation.

    Args:
        place: where it is.
        task: what is observed.
        dt: time between two rows of the network, s.

    Attributes:
        place: see there.
        linear: whether each way undoes the other for any numbers, also where they are only nearly a rotation.
        stepwise: whether a row counts from the row before.
        needed: names of the observed features that it counts from.

    Raises:
        BundleError: form and feature do not fit, or the task does not observe what it counts from.
    """

    def __init__(self, place: PartColumns, task: Task, dt: float) -> None:
        part, self.place = place.part, place
        form = chosen_form(part, place.feature)
        self._form = rotation_form(form, part.order, part.degrees, part.positive)
        self._unit = dt if part.reference == "velocity" else 1.0
        self._tool, self._reference = part.axes == "tool", part.reference
        self.linear, self.stepwise = form == ROTATION and part.reference == "absolute", part.reference in STEPWISE
        self._origin = _origin(place, task)
        self.needed = (self._origin,) if self._origin else ()

    def to_task(self, columns: Array, anchor: Anchor, chunks: Array) -> Array:
        """Return the rotations ``(N, H, 6)`` of columns ``(N, H, S)``. What the chunks hold so far does not matter."""
        if self.linear:
            return columns
        turns = self._form.matrix(columns * self._unit)
        if self._reference == "observed":
            turns = forms.combined(turns, anchor[self._origin][-1], self._tool)
        elif self.stepwise:
            turns = forms.turned(turns, anchor[self._origin], self._tool)
        return matrix_to_6d(turns)

    def to_network(self, values: Array, anchor: Anchor, chunks: Array) -> Array:
        """Return the columns ``(N, H, S)`` of rotations ``(N, H, 6)``."""
        if self.linear:
            return values
        turns = matrix_from_6d(values)
        if self._reference in ("observed", START):
            turns = forms.between(turns, anchor[self._origin][-1], self._tool)
        elif self.stepwise:
            turns = forms.between(turns, forms.origins(turns, anchor[self._origin]), self._tool)
        return self._form.columns(turns) / self._unit


class ValuePart:
    """Numbers that are no rotation. Arguments, attributes and errors as of :class:`RotationPart`.

    Attributes:
        switched: whether it has two values only.
    """

    def __init__(self, place: PartColumns, task: Task, dt: float) -> None:
        part, self.place = place.part, place
        self._form = value_form(part, place.feature, task.limits)
        self._unit = dt if part.reference == "velocity" else 1.0
        self._reference, self.stepwise = part.reference, part.reference in STEPWISE
        self._origin = _origin(place, task)
        self._axes, self._commanded = _axes(place, task) if part.axes == "tool" else ("", None)
        self.switched = not self._form.linear
        self.linear = self._form.linear and not (self._axes and self.stepwise)
        self.needed = tuple(name for name in (self._origin, self._axes) if name)

    def to_task(self, columns: Array, anchor: Anchor, chunks: Array) -> Array:
        """Return the values ``(N, H, S)`` of columns ``(N, H, S)``; ``chunks`` ``(N, H, D)`` hold the rotations."""
        values = self._form.task(columns)
        if self._reference == "absolute":
            return values
        values = values * self._unit
        if self._axes:
            values = forms.along(self._turns(anchor, chunks), values)
        trail = anchor[self._origin]
        return forms.accumulated(values, trail) if self.stepwise else trail[-1] + values

    def to_network(self, values: Array, anchor: Anchor, chunks: Array) -> Array:
        """Return the columns ``(N, H, S)`` of values ``(N, H, S)``."""
        if self._reference == "absolute":
            return self._form.network(values)
        trail = anchor[self._origin]
        away = values - (forms.origins(values, trail) if self.stepwise else trail[-1])
        if self._axes:
            away = forms.against(self._turns(anchor, chunks), away)
        return self._form.network(away / self._unit)

    def _turns(self, anchor: Anchor, chunks: Array) -> Array:
        """Return the axes ``(..., 3, 3)`` that the values are along: those of the tool where they count from."""
        trail = anchor[self._axes]
        if not self.stepwise or self._commanded is None:
            newest: Array = trail[-1]
            return newest
        return forms.origins(matrix_from_6d(chunks[..., self._commanded]), trail)


def observed_feature(task: Task, feature: Feature, name: str, why: str) -> Feature:
    """Return the observed feature of a name, which is of the same kind and size as an action feature.

    Raises:
        BundleError: there is none.
    """
    valid = {item.name: item for item in task.vectors if (item.kind, item.size) == (feature.kind, feature.size)}
    if name not in valid:
        names = ", ".join(valid) or "none, for the task observes no such feature"
        raise BundleError(
            f"space.action: {why} of '{feature.name}' needs the observed {feature.kind} '{name}'; valid are {names}"
        )
    return valid[name]


def _origin(place: PartColumns, task: Task) -> str:
    """Return the name of what a part counts from; empty for nothing, or a tool that points down."""
    part, feature = place.part, place.feature
    if part.reference in ("absolute", START):
        return ""
    return observed_feature(task, feature, part.observed or feature.name, f"reference '{part.reference}'").name


def _axes(place: PartColumns, task: Task) -> tuple[str, slice | None]:
    """Return the observed rotation whose axes a position has, and its columns in the task's rows, if it is commanded.

    Raises:
        BundleError: the task observes no such rotation.
    """
    valid = [item.name for item in task.vectors if item.kind == ROTATION]
    name = place.part.rotation or next(iter(valid), "")
    if name not in valid:
        raise BundleError(
            f"{place.where}: axes 'tool' of '{place.feature.name}' need the observed rotation '{name}'; "
            f"valid are {', '.join(valid) or 'none, for the task observes no rotation'}"
        )
    return name, next((own for item, own in task.action_columns if item.name == name), None)
