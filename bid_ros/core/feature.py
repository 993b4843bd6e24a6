"""A feature of a task: one observed or commanded quantity, its kind, shape, frame and source."""

import math
import re
from typing import Annotated, Final, Literal, get_args

from pydantic import Field

from bid_ros.core.errors import TaskError
from bid_ros.core.settings import AS_WRITTEN, list_of, settings

FeatureKind = Literal["image", "position", "rotation_6d", "gripper", "joints", "points", "vector"]
KINDS: Final = get_args(FeatureKind)
KIND_SIZES: Final = {"position": 3, "rotation_6d": 6, "gripper": 1, "joints": 7}
FARTHEST: Final = 65.535  # m; 16 bits of mm
ROS_NAME: Final = r"[A-Za-z_]\w*(/[A-Za-z_]\w*)*"
# Fields of a vector alone: the pattern of each, and what is valid in words. With a namespace ROS allows 245 characters.
SOURCE: Final = {
    "topic": (f"(?=.{{1,144}}$)/?{ROS_NAME}", "a ROS name of up to 144 letters, digits, _ and /, like sensor/wrench"),
    "type": (r"[A-Za-z]\w*/msg/[A-Za-z]\w*", "a message type like geometry_msgs/msg/WrenchStamped"),
    "field": (r"[A-Za-z]\w*(\.[A-Za-z]\w*)*", "a path of field names, like wrench.force"),
}


@settings(error=TaskError)
class Feature:
    """One observed or commanded quantity.

    Attributes:
        name: name of the feature in data sets, and of its columns in chunks.
        kind: ``image`` (rgb8), ``position`` (m), ``rotation_6d``, ``gripper`` (opening width, m), ``joints`` (rad),
            ``points`` (x and y of points in a plane, px; for benches without a robot) or ``vector`` (numbers of any
            topic, only observed).
        shape: ``(height, width, 3)`` of an image, ``(height, width, 1)`` of one of distances, otherwise ``(size,)``. A
            position, a rotation, a gripper and the joints of an arm with seven need none.
        frame: frame of a position or rotation.
        rate_hz: expected rate of the sensor, of an observation.
        topic: topic of a vector. A name without a leading slash is relative to the namespace of the system.
        type: message type of a vector's topic, ``package/msg/Name``.
        field: field of the message that holds the vector, such as ``wrench.force``. A field that is a message or an
            array gives all its numbers, in the order of the definition.
        depth: nearest and farthest distance that a policy tells apart, m. The image holds distances, whole mm in 16
            bits, 0: not measured. Others count as the nearer end, those not measured as the farthest. None: of colours.
        names: of joints, base to flange, as a ``sensor_msgs/JointState`` of a recorder names them; or those of a vector
            that is a field of one. Empty: joints are ordered by what the names of known arms say.
    """

    name: str
    kind: FeatureKind
    shape: tuple[Annotated[int, Field(ge=1)], ...] = ()
    frame: str = "base"
    rate_hz: Annotated[float, Field(ge=0.1, le=1000), AS_WRITTEN] = 10.0
    topic: str = ""
    type: str = ""
    field: str = ""
    depth: Annotated[tuple[float, float], list_of(2)] | None = None
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        size = KIND_SIZES.get(self.kind)
        if not self.shape and size is not None:
            object.__setattr__(self, "shape", (size,))
        if self.kind == "image":
            colours = 1 if self.depth else 3
            good, valid = len(self.shape) == 3 and self.shape[2] == colours, f"(height, width, {colours})"
        elif self.kind == "points":
            good, valid = len(self.shape) == 1 and self.shape[0] % 2 == 0, "(2 n,), an even number"
        elif self.kind in ("joints", "vector"):
            good, valid = len(self.shape) == 1, "(n,), the number of values"
        else:
            good, valid = self.shape == (size,), f"({size},)"
        if not good:
            raise TaskError(f"feature '{self.name}' of kind '{self.kind}' has shape {self.shape}; valid is {valid}")
        if self.depth is not None and not (self.kind == "image" and 0 <= self.depth[0] < self.depth[1] <= FARTHEST):
            what = f"feature '{self.name}' of kind '{self.kind}' has depth {list(self.depth)}"
            valid = f"valid is, of an image, a distance of 0 or more and a larger one up to {FARTHEST:g} m"
            raise TaskError(f"{what}; {valid}")
        _check_source(self)
        fitting = self.kind in ("joints", "vector") and len(set(self.names)) == len(self.names) == self.size
        if self.names and not fitting:
            raise TaskError(
                f"feature '{self.name}' of kind '{self.kind}' has names {list(self.names)}; valid are {self.size} "
                "different ones, of joints or a vector"
            )

    @property
    def dtype(self) -> str:
        """numpy's name of the type of its values: ``uint8`` of colours, ``uint16`` of distances in mm, ``float64``."""
        return "float64" if self.kind != "image" else "uint16" if self.depth else "uint8"

    @property
    def size(self) -> int:
        """Number of values of a vector feature (product of the shape)."""
        return math.prod(self.shape)


def _check_source(feature: Feature) -> None:
    """Raise TaskError unless a vector, and nothing else, says which field of which topic it is."""
    for name, (pattern, valid) in SOURCE.items():
        value = getattr(feature, name)
        if feature.kind != "vector":
            pattern, valid = "", f"none: only kind 'vector' has a {name}"
        if not re.fullmatch(pattern, value, re.ASCII):
            found = f"{name} {value!r}" if value else f"no {name}"
            raise TaskError(f"feature '{feature.name}' of kind '{feature.kind}' has {found}; valid is {valid}")
