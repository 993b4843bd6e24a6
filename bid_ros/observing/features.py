"""Extracts the value of an observed feature from a message: the only place, live, in replay and in training.

Messages are read by their field names only, so rclpy's messages and those decoded from a bag both work.
"""

import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.cameras.depth import read_image
from bid_ros.core.errors import CameraError, ObservationError
from bid_ros.core.feature import Feature
from bid_ros.core.poses import pose_arrays
from bid_ros.core.rotation import matrix_from_quaternion, matrix_to_6d

# Drivers sort joints as they like, many by the alphabet. Those of other arms end with their number.
UR_JOINTS: Final = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
FINGER: Final = re.compile("finger|knuckle|gripper|robotiq")


def extract(feature: Feature, message: Any) -> NDArray[Any]:
    """Return the value of ``feature`` that a message of its topic (``topics.feature_topic``) carries.

    Args:
        feature: image from ``sensor_msgs/Image`` or ``sensor_msgs/CompressedImage``; position (m), rotation_6d, gripper
            width (m) and joints (rad) from ``bid_msgs/ArmStatus``; vector from the field that it names. In bags of an
            earlier version the pose comes from ``geometry_msgs/PoseStamped`` and joints come from
            ``sensor_msgs/JointState``.
        message: object with the fields of that type.

    Returns:
        Array of ``feature.shape`` and ``feature.dtype``.

    Raises:
        ObservationError: the image has another size or encoding, the pose has another frame, there is no such field,
            or the values are more, fewer, or no finite numbers.
    """
    if feature.kind == "image":
        return _image(feature, message)
    if feature.kind == "gripper":
        value = np.array([message.gripper_width], dtype=np.float64)
    elif feature.kind == "joints":
        value = _joints(feature, message)
    elif feature.kind == "vector":
        value = _vector(feature, message)
    else:
        value = _pose_part(feature, message)
    if value.shape != feature.shape or not np.isfinite(value).all():
        shown = value.tolist() if value.size <= 16 else f"{value.size} numbers"
        raise ObservationError(f"observation '{feature.name}' is {shown}; valid are {feature.size} finite numbers")
    return value


def _joints(feature: Feature, message: Any) -> NDArray[np.float64]:
    """Return the joints of the arm, rad, base to flange: of a JointState those that its names say, in any order."""
    if hasattr(message, "joint_positions"):
        return np.asarray(message.joint_positions, dtype=np.float64)
    said = f"observation '{feature.name}'"
    order = joint_order(feature.names, message, said)
    if order is None:
        found = ", ".join(message.name)
        raise ObservationError(
            f"{said} comes with joints {found}, whose order from base to flange is not known; valid are "
            "names of the feature in the task file, such as names: [shoulder, elbow]"
        )
    return np.asarray(message.position, dtype=np.float64)[order]


def joint_order(wanted: Sequence[str], message: Any, said: str) -> list[int] | None:
    """Return which joints of a ``sensor_msgs/JointState`` are those of the arm, base to flange.

    Args:
        wanted: their names; empty: those that are no fingers, ordered by what names of arms say.
        message: the JointState. Of one without names all joints are the arm's.
        said: begins the sentence of an error.

    Returns:
        Numbers of the joints. None: their names do not say an order.

    Raises:
        ObservationError: a joint that is wanted is missing, or names and positions are not equally many.
    """
    names, count = list(message.name), len(message.position)
    if names and len(names) != count:
        raise ObservationError(f"{said} comes with {count} positions of {len(names)} joints; valid is one of each")
    if missing := [name for name in wanted if name not in names]:
        found = ", ".join(names) or "no names"
        raise ObservationError(f"{said} lacks the joints {', '.join(missing)}; the message has {found}")
    if wanted:
        return [names.index(name) for name in wanted]
    if not names:
        return list(range(count))
    arm = [number for number, name in enumerate(names) if not FINGER.search(name)]
    places = {number: _place(names[number]) for number in arm}
    if None in places.values() or len(set(places.values())) < len(arm):
        return None
    return sorted(arm, key=lambda number: places[number] or 0)


def carries(feature: Feature, message: Any) -> bool:
    """Return whether a message may hold a feature: joints of a gripper come on the same topic as those of its arm."""
    names = list(getattr(message, "name", ())) if feature.kind == "joints" else []
    return not names or any(name in feature.names or not (feature.names or FINGER.search(name)) for name in names)


def _place(name: str) -> int | None:
    """Return the place of an arm's joint, from base to flange, among those of its names; None for an unknown name."""
    found = [place for place, part in enumerate(UR_JOINTS) if part in name] or re.findall(r"\d+", name)[-1:]
    return int(found[0]) if found else None


def _vector(feature: Feature, message: Any) -> NDArray[np.float64]:
    """Return the numbers ``(n,)`` of the field that a vector names."""
    try:
        values = all_numbers(attrgetter(feature.field)(message))
        return values[joint_order(feature.names, message, f"observation '{feature.name}'")] if feature.names else values
    except (AttributeError, TypeError, ValueError) as error:
        problem = f"observation '{feature.name}' with field '{feature.field}': {error}"
        raise ObservationError(f"{problem}; valid are numbers in {', '.join(_names(message))}") from error


def _names(value: Any) -> tuple[str, ...]:
    """Return the names of a message's fields, in the order of its definition; none of what is no message."""
    if hasattr(value, "get_fields_and_field_types"):
        return tuple(value.get_fields_and_field_types())
    # A message from a bag also names its type, in __msgtype__.
    return tuple(item.name for item in fields(value) if item.name[0] != "_") if is_dataclass(value) else ()


def all_numbers(value: Any) -> NDArray[np.float64]:
    """Return all numbers ``(n,)`` of a field, also those of messages in it. Raises TypeError for anything else."""
    parts = [getattr(value, name) for name in _names(value)]
    if parts or (isinstance(value, list) and value and _names(value[0])):
        return np.concatenate([all_numbers(part) for part in parts or value])
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"it holds {value!r:.40}")
    return array.astype(np.float64).ravel()


def _pose_part(feature: Feature, message: Any) -> NDArray[np.float64]:
    """Return position ``(3,)`` m or rotation ``(6,)`` of the tool's pose, given in the feature's frame."""
    frame = message.header.frame_id
    if frame != feature.frame:
        raise ObservationError(f"observation '{feature.name}' is in frame '{frame}'; valid is '{feature.frame}'")
    pose = message.tool if hasattr(message, "tool") else message.pose
    position, quaternion = pose_arrays(pose)
    if feature.kind == "position":
        return position
    norm = float(np.linalg.norm(quaternion))
    if not abs(norm - 1) < 0.01:
        raise ObservationError(f"observation '{feature.name}' has a quaternion of length {norm:.3g}; valid is 1")
    return matrix_to_6d(matrix_from_quaternion(quaternion))


def _image(feature: Feature, message: Any) -> NDArray[Any]:
    """Return the pixels of an image message that has the feature's size, as :func:`read_image`."""
    height, width = feature.shape[:2]
    try:
        picture = read_image(feature, message, feature.name)
    except CameraError as error:
        raise ObservationError(str(error)) from error
    if picture.shape[:2] != (height, width):
        raise ObservationError(
            f"image '{feature.name}' is {picture.shape[0]}x{picture.shape[1]}; the task says {height}x{width}"
        )
    return picture
