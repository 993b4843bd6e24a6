"""The section ``space`` of ``bundle.yaml``: the columns of what a network sees and predicts.

A vector of the network is described by its parts. A part says which feature of the task it holds, in which form, and
where it counts from. ``docs/reference/bundles.md`` has examples.
"""

import re
from dataclasses import field
from typing import Annotated, Final, Literal

from pydantic import Field

from bid_ros.core.errors import BundleError
from bid_ros.core.settings import Count, settings
from bid_ros.decoding.config import Steps

Form = Literal[
    "values",
    "rotation_6d",
    "rotation_6d_rows",
    "matrix",
    "quaternion_xyzw",
    "quaternion_wxyz",
    "rotation_vector",
    "euler",
    "fraction",
    "open_close",
]
Reference = Literal["absolute", "observed", "previous", "velocity", "start"]
Axes = Literal["base", "tool"]

ROTATIONS: Final = {
    "rotation_6d": 6,
    "rotation_6d_rows": 6,
    "matrix": 9,
    "quaternion_xyzw": 4,
    "quaternion_wxyz": 4,
    "rotation_vector": 3,
    "euler": 3,
}
"""Number of columns of each form of a rotation."""
OPENINGS: Final = ("fraction", "open_close")
STEPWISE: Final = ("previous", "velocity")
START: Final = "start"
ORDER: Final = "three different letters of xyz (about fixed axes) or of XYZ (about turning axes)"
Numbers = Annotated[tuple[float, ...], Field(min_length=1)]


@settings(error=BundleError)
class Part:
    """Some columns of a vector of the network.

    Attributes:
        feature: of the task, which the columns hold. A part has either this, ``constant`` or ``ignored``.
        form: how the columns hold it. ``values`` (the default of all but rotations): the feature's own values.
            ``rotation_6d`` (the default of rotations): first two columns of the rotation matrix, as the task has it.
            ``rotation_6d_rows``: its first two rows. ``matrix``: row by row. ``quaternion_xyzw``, ``quaternion_wxyz``:
            scalar last or first. ``rotation_vector``: axis times angle. ``euler``: three angles. ``fraction``: of a
            gripper, between ``closed`` and ``open``. ``open_close``: the same, but only its two ends are commanded.
        at: the columns, counted from 0. Empty: those behind the part before.
        scale, offset: of ``values``: the task's value is ``scale * column + offset``. One number, or one for each.
        order: of ``euler``: the axes in the order in which they are turned about. Small letters: about fixed axes.
        unit: of ``values``: the columns are in deg, mm or another unit of ``bid_ros.core.units``, instead of a scale.
        degrees: of ``euler`` and ``rotation_vector``: angles are in degrees.
        positive: of an observed quaternion: the component that is not negative. The two signs are the same rotation;
            take one that is far from 0, as it was in training. That of a tool which points down is x or y, not w.
        closed, open: of ``fraction`` and ``open_close``: what the network says for the smallest and the largest width
            in the task's limits.
        reference: where an action counts from. ``absolute``: from nothing. ``observed``: from the newest observed
            value. ``previous``: from the row before; rows up to the current one count from what is observed at them.
            ``velocity``: the same, per second. An observed part may be ``observed``: then all its rows count from the
            newest one. An observed rotation may be ``start``: then they count from that of the tool where an episode
            begins, which points straight down.
        axes: of the relative position or rotation: those of the ``base`` frame, or those of the ``tool`` at the value
            it counts from.
        observed: name of the observed feature that it counts from. Empty: that of the same name.
        rotation: name of the task's rotation whose tool axes a relative position has. Empty: the first one.
        constant: of an observed part: the network gets these numbers, whatever is observed.
        ignored: of an action: so many columns that nothing is done with.
    """

    feature: str = ""
    form: Form | None = None
    at: tuple[Steps, ...] = ()
    scale: float | Numbers = 1.0
    offset: float | Numbers = 0.0
    unit: str = ""
    order: str = ""
    degrees: bool = False
    positive: Literal["x", "y", "z", "w"] = "w"
    closed: float = 0.0
    open: float = 1.0
    reference: Reference = "absolute"
    axes: Axes = "base"
    observed: str = ""
    rotation: str = ""
    constant: tuple[float, ...] = ()
    ignored: Annotated[int, Field(ge=0)] = 0

    def __post_init__(self) -> None:
        if sum((bool(self.feature), bool(self.constant), bool(self.ignored))) != 1:
            raise BundleError(
                f"a part has feature {self.feature!r}, constant {list(self.constant)} and ignored {self.ignored}; "
                "valid is exactly one of the three"
            )
        if self.form == "euler" and not _is_order(self.order):
            raise BundleError(f"order of '{self.feature}' is {self.order!r}; valid for euler are {ORDER}")
        if self.open == self.closed:
            raise BundleError(f"open and closed of '{self.feature}' are both {self.open}; valid are different numbers")
        if 0.0 in _numbers(self.scale):
            raise BundleError(f"scale of '{self.feature}' is {self.scale}; valid are numbers other than 0")
        self._check_used()

    def _check_used(self) -> None:
        """Raise BundleError for a field that is given, but means nothing for the form or the reference."""
        relative, euler = self.reference != "absolute", self.form == "euler"
        used = {
            "order": euler,
            "degrees": euler or self.form == "rotation_vector",
            "positive": (self.form or "").startswith("quaternion"),
            "open": self.form in OPENINGS,
            "closed": self.form in OPENINGS,
            "scale": self.form in (None, "values"),
            "offset": self.form in (None, "values") and not relative,
            "unit": self.form in (None, "values") and self.scale == 1.0,
            "axes": relative,
            "observed": relative,
            "rotation": relative and self.axes == "tool",
        }
        for name, means in used.items():
            if not means and getattr(self, name) != getattr(type(self), name):
                raise BundleError(
                    f"'{self.feature}' has {name} {getattr(self, name)!r}, which form {self.form or 'values'!r} with "
                    f"reference '{self.reference}' does not use; leave it out"
                )


@settings(error=BundleError)
class ObservedFeature:
    """An input of the network.

    Attributes:
        name: of the input.
        camera: image feature of the task. An input has either this or ``columns``.
        size: height and width of the images in px. None: as the task has them.
        columns: parts of a vector, in order.
    """

    name: Annotated[str, Field(min_length=1)]
    camera: str = ""
    size: tuple[int, ...] | None = None
    columns: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.camera) == bool(self.columns):
            raise BundleError(f"input '{self.name}' has {_both(self)}; valid is either a camera or columns")
        if self.size is not None and not (len(self.size) == 2 and min(self.size) >= 1):
            raise BundleError(
                f"input '{self.name}' has size {list(self.size)}; valid are a height and a width of at least 1 px"
            )
        if self.size is not None and not self.camera:
            raise BundleError(f"input '{self.name}' has a size but no camera; valid is a size of images")


@settings(error=BundleError)
class Space:
    """What a network sees and predicts. What is left out is as in the task.

    Attributes:
        observation: inputs of the network, in its order. Empty: the task's features.
        action: parts of a predicted row, in order. Empty: the task's action.
        held: action features of the task that the network does not predict: they keep their newest observed value.
        fixed: action features of the task that the network does not predict, with the values they always have.
        observation_steps: steps that the network sees, one ``1 / rate_hz`` apart. None: as in the task.
        horizon: rows that it predicts. None: as in the task.
        past_rows: how many of them lie before the newest observation. None: ``observation_steps - 1``.
        rate_hz: rows a second, observed and predicted. None: as in the task.
    """

    observation: tuple[ObservedFeature, ...] = ()
    action: tuple[Part, ...] = ()
    held: tuple[str, ...] = ()
    fixed: dict[str, Numbers] = field(default_factory=dict)
    observation_steps: Count | None = None
    horizon: Count | None = None
    past_rows: Steps | None = None
    rate_hz: Annotated[float, Field(ge=0.1, le=1000)] | None = None

    def __post_init__(self) -> None:
        names = [item.name for item in self.observation]
        if len(set(names)) != len(names):
            raise BundleError(f"observation names {', '.join(names)}; valid are different names")
        if (self.held or self.fixed) and not self.action:
            raise BundleError(
                "held and fixed say what the network does not predict, but action does not say what it "
                "predicts; valid is an action with its parts"
            )


def _is_order(text: str) -> bool:
    return re.fullmatch("[xyz]{3}|[XYZ]{3}", text) is not None and len(set(text)) == 3


def _numbers(value: float | tuple[float, ...]) -> tuple[float, ...]:
    return value if isinstance(value, tuple) else (value,)


def _both(item: ObservedFeature) -> str:
    return f"camera '{item.camera}' and columns" if item.camera else "neither camera nor columns"
