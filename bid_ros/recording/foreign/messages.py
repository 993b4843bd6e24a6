"""Numbers of a feature from the messages of anybody's robot. They are told by their fields, not by their package."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.bag_mapping import BagPlace
from bid_ros.core.errors import ObservationError, RecordingError
from bid_ros.core.feature import Feature
from bid_ros.core.poses import pose_arrays
from bid_ros.core.rotation import matrix_from_quaternion, matrix_to_6d
from bid_ros.core.stamps import stamp_to_ns
from bid_ros.observing.features import FINGER, all_numbers, joint_order

Values = NDArray[np.float64]
Part = int | str
WRAPPERS: Final = ("pose", "transform", "twist", "point", "vector", "goal", "command")  # fields that hold all there is
UNDERSTOOD: Final = (
    "a pose, a transform, a twist (commanded), JointState, JointTrajectory, GripperCommand, an array of numbers or a "
    "number, or such a field of another type as /TOPIC:field"
)


def body_of(message: Any, place: BagPlace) -> Any:
    """Return what a place names of a message, without what only wraps it. None: a list on the way there is empty.

    Raises:
        RecordingError: there is no such field.
    """
    found = message
    for name in place.path:
        found = _first(found)
        if found is None:
            return None
        if not hasattr(found, name):
            valid = ", ".join(fields_of(found)) or "none: it is no message"
            raise RecordingError(f"{place.text}: there is no field '{name}'; valid are {valid}")
        found = getattr(found, name)
    while wrapped := next((name for name in WRAPPERS if hasattr(found, name)), ""):
        found = getattr(found, wrapped)
    return found


def _first(value: Any) -> Any:
    """Return the first entry of a list of messages, as the request in the events of a service; None: it is empty."""
    return value if not isinstance(value, list) else value[0] if value else None


def fields_of(message: Any) -> tuple[str, ...]:
    """Return the names of a message's fields."""
    return tuple(name for name in getattr(message, "__dataclass_fields__", {}) if name[0] != "_")


def is_twist(message: Any, place: BagPlace) -> bool:
    """Whether a place holds a velocity, linear and angular."""
    body = body_of(message, place)
    return hasattr(body, "linear") and hasattr(body, "angular")


def frame_of(message: Any) -> str:
    """Return the frame of a message with a header, without a leading slash; empty: it says none."""
    return str(getattr(getattr(message, "header", None), "frame_id", "")).lstrip("/")


def carries_joints(message: Any, place: BagPlace, feature: Feature) -> bool:
    """Whether a message may hold a feature: several publishers share a topic of joints, each with its own."""
    names = list(getattr(body_of(message, place), "name", ()))
    wanted = [part for part in place.columns if isinstance(part, str)] or list(feature.names)
    return not names or not wanted or any(name in names for name in wanted)


def numbers(feature: Feature, message: Any, place: BagPlace) -> tuple[Values, tuple[Part, ...]]:
    """Return the numbers of a feature in a message, and which of its parts they are.

    A gripper of several values is their sum: each finger says its own way.

    Args:
        feature: of the task; no image.
        message: object with the fields of its type.
        place: where it is.

    Returns:
        ``(feature.size,)`` in the units of the message; rotations as six numbers.

    Raises:
        RecordingError: the message does not hold it, or is of a kind that is not understood.
    """
    values, parts = _taken(feature, body_of(message, place), place)
    if feature.kind == "gripper":
        values = values.sum(keepdims=True)
    if feature.kind == "rotation_6d" and values.shape == (4,):
        values = _turn(values, place)
    if values.shape != (feature.size,):
        raise RecordingError(
            f"{place.text} has {len(values)} values for '{feature.name}'; valid for {feature.kind} are {feature.size}"
            f"{' or 4 (a quaternion xyzw)' if feature.kind == 'rotation_6d' else ''}, such as {place.topic}[0, 1, 2]"
        )
    if not np.isfinite(values).all():
        raise RecordingError(f"{place.text} is {values.tolist()}; valid are finite numbers")
    return values, parts


def twist_numbers(message: Any, place: BagPlace) -> Values:
    """Return linear (m/s) and angular (rad/s) velocity ``(6,)``."""
    body = body_of(message, place)
    return np.array([getattr(part, axis) for part in (body.linear, body.angular) for axis in "xyz"], dtype=np.float64)


def trajectory(feature: Feature, message: Any, place: BagPlace) -> tuple[list[int], list[Values]]:
    """Return the times of the points of a joint trajectory after its begin, ns, and their joints."""
    body = body_of(message, place)
    points = [SimpleNamespace(name=list(body.joint_names), position=point.positions) for point in body.points]
    values = [numbers(feature, point, BagPlace(place.text, place.topic, (), place.columns))[0] for point in points]
    return [stamp_to_ns(point.time_from_start) for point in body.points], values


def is_trajectory(body: Any) -> bool:
    """Whether what a place names is a joint trajectory."""
    return hasattr(body, "joint_names") and hasattr(body, "points")


def _taken(feature: Feature, body: Any, place: BagPlace) -> tuple[Values, tuple[Part, ...]]:
    if hasattr(body, "translation") and hasattr(body, "rotation"):
        body = SimpleNamespace(position=body.translation, orientation=body.rotation)
    if hasattr(body, "orientation") and hasattr(body, "position"):
        position, quaternion = pose_arrays(body)
        if feature.kind in ("position", "rotation_6d") and not place.columns:
            is_place = feature.kind == "position"
            return (position, ("position",)) if is_place else (_turn(quaternion, place), ("orientation",))
    elif hasattr(body, "name") and hasattr(body, "position"):
        return _joints(feature, body, place)
    elif is_trajectory(body) and body.points:
        return _joints(feature, SimpleNamespace(name=list(body.joint_names), position=body.points[0].positions), place)
    elif hasattr(body, "max_effort"):  # control_msgs/GripperCommand
        return _flat(feature, body.position, place)
    elif set(fields_of(body)) == {"x", "y", "z"} and feature.kind == "position":
        return np.array([body.x, body.y, body.z], dtype=np.float64), ("position",)
    else:
        return _flat(feature, getattr(body, "data", body), place)
    raise RecordingError(f"{place.text} is a pose; '{feature.name}' of kind {feature.kind} is none of its parts")


def _turn(quaternion: Values, place: BagPlace) -> Values:
    norm = float(np.linalg.norm(quaternion))
    if not abs(norm - 1) < 0.01:
        raise RecordingError(f"{place.text} has a quaternion of length {norm:.3g}; valid is 1")
    return matrix_to_6d(matrix_from_quaternion(quaternion))


def _joints(feature: Feature, body: Any, place: BagPlace) -> tuple[Values, tuple[Part, ...]]:
    names, values = list(body.name), np.asarray(body.position, dtype=np.float64)
    wanted: Sequence[Part] = place.columns or feature.names
    if not wanted and feature.kind == "gripper":
        wanted = [name for name in names if FINGER.search(name)] if len(names) > 1 else names
    try:
        if all(isinstance(part, str) for part in wanted) and (wanted or feature.kind == "joints"):
            order = joint_order([str(part) for part in wanted], body, f"{place.text} for '{feature.name}'")
            if order is not None:
                return values[order], tuple(names[at] if names else at for at in order)
    except ObservationError as error:
        raise RecordingError(str(error)) from error
    if place.columns:
        return _flat(feature, values, place, names)
    raise RecordingError(
        f"{place.text} has joints {', '.join(names)}, of which nothing says which are '{feature.name}'; valid are "
        f"names in the task file, such as {place.topic}[{', '.join(names[:2]) or '0, 1'}]"
    )


def _flat(feature: Feature, value: Any, place: BagPlace, names: Sequence[str] = ()) -> tuple[Values, tuple[Part, ...]]:
    """Return the values of an array, or the number, that a place names."""
    try:
        array = all_numbers(value) if feature.kind == "vector" else np.asarray(value)
    except (TypeError, ValueError):
        array = np.asarray("no numbers")
    if array.dtype.kind not in "iuf" or array.ndim > 1:
        raise RecordingError(f"{place.text} is not understood for '{feature.name}'; valid is {UNDERSTOOD}")
    flat = array.astype(np.float64).reshape(-1)
    wanted = place.columns or tuple(range(len(flat)))
    for part in wanted:
        if isinstance(part, str):
            raise RecordingError(f"{place.text} names '{part}' of values without names; valid are 0 to {len(flat) - 1}")
        if part >= len(flat):
            raise RecordingError(f"{place.text} names value {part}; valid are 0 to {len(flat) - 1}")
    return flat[[int(part) for part in wanted]], tuple(names[int(part)] if names else int(part) for part in wanted)
