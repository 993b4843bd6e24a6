"""The forms in which networks hold numbers that are no rotation, and which forms fit which feature."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bid_ros.core.errors import BundleError
from bid_ros.core.limits import Limits
from bid_ros.core.rotation import Array
from bid_ros.core.task import Feature
from bid_ros.policy.spaces.config import OPENINGS, ROTATIONS, Form, Part


@dataclass(frozen=True)
class ValueForm:
    """A form of numbers.

    Attributes:
        task: from columns ``(..., S)`` to values ``(..., S)`` in task units.
        network: the way back.
        linear: whether both ways are linear, so that each undoes the other everywhere.
    """

    task: Callable[[Array], Array]
    network: Callable[[Array], Array]
    linear: bool = True


def chosen_form(part: Part, feature: Feature) -> Form:
    """Return the form of a part, by default that of its feature.

    Raises:
        BundleError: the form does not fit the kind of the feature.
    """
    kind = feature.kind
    if kind == "rotation_6d":
        valid: tuple[str, ...] = tuple(ROTATIONS)
    else:
        valid = ("values", *OPENINGS) if kind == "gripper" else ("values",)
    form = part.form or ("rotation_6d" if kind == "rotation_6d" else "values")
    if form not in valid:
        raise BundleError(f"'{feature.name}', a {kind}, has form '{form}'; valid are {', '.join(valid)}")
    if form in OPENINGS and part.reference != "absolute":
        raise BundleError(f"'{feature.name}' has form '{form}' and reference '{part.reference}'; valid is absolute")
    if part.reference == "velocity" and form not in ("values", "rotation_vector"):
        raise BundleError(
            f"'{feature.name}' has form '{form}' and reference 'velocity'; valid are values and rotation_vector"
        )
    if form not in ROTATIONS and part.axes == "tool" and kind != "position":
        raise BundleError(f"'{feature.name}', a {kind}, has axes 'tool'; valid are those of a position or rotation")
    return form


def columns_of(part: Part, feature: Feature) -> int:
    """Return how many columns a part takes."""
    return ROTATIONS.get(chosen_form(part, feature), feature.size)


def value_form(part: Part, feature: Feature, limits: Limits) -> ValueForm:
    """Return the form of a part that is no rotation.

    Raises:
        BundleError: scale or offset have another length than the feature.
    """
    form = chosen_form(part, feature)
    if form in OPENINGS:
        return _opening(form, part, limits)
    scale, offset = (_broad(name, getattr(part, name), feature) for name in ("scale", "offset"))
    return ValueForm(lambda columns: columns * scale + offset, lambda values: (values - offset) / scale)


def _opening(form: Form, part: Part, limits: Limits) -> ValueForm:
    low, high = limits.gripper_min, limits.gripper_max
    slope = (high - low) / (part.open - part.closed)

    def width(columns: Array) -> Array:
        return low + (columns - part.closed) * slope

    def column(values: Array) -> Array:
        return part.closed + (values - low) / slope

    if form == "fraction":
        return ValueForm(width, column)
    middle = (low + high) / 2

    def switched_width(columns: Array) -> Array:
        # NaN stays NaN: a comparison would make it a width.
        ends = np.where(width(columns) > middle, high, low)
        return np.where(np.isfinite(columns), ends, np.nan)

    return ValueForm(
        switched_width, lambda values: np.where(values > middle, part.open, part.closed).astype(np.float64), False
    )


def _broad(name: str, value: float | tuple[float, ...], feature: Feature) -> Array:
    numbers = np.atleast_1d(np.array(value, dtype=np.float64))
    if numbers.size not in (1, feature.size):
        raise BundleError(
            f"{name} of '{feature.name}' has {numbers.size} numbers; valid are 1 and {feature.size}, one for each value"
        )
    return numbers
