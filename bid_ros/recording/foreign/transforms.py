"""Poses of one frame in another, along the tree of frames that a bag tells on ``/tf`` and ``/tf_static``."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation, Slerp

from bid_ros.core.bag_mapping import BagPlace
from bid_ros.core.errors import RecordingError
from bid_ros.core.feature import Feature
from bid_ros.core.rotation import matrix_to_6d
from bid_ros.core.stamps import stamp_ns
from bid_ros.recording.foreign.series import BRIDGE_NS, SampleSeries, Stamps, Values
from bid_ros.recording.reader import BagMessage, BagReader

STATIC: Final = "_static"  # behind the name of a topic of transforms: /tf_static
FIRST: Final = 500  # messages that tell which frames there are


class FrameWay(NamedTuple):
    """The way from one frame to another.

    Attributes:
        parent, child: the frame in which a pose is, and the one whose pose it is.
        legs: frames from the child, and from the parent, up to below the one that both hang on.
        above: what each frame of the bag hangs on.
    """

    parent: str
    child: str
    legs: tuple[list[str], list[str]]
    above: dict[str, str]


def is_tree(reader: BagReader, place: BagPlace) -> bool:
    """Whether a place is on a topic of transforms, of ROS 2 or ROS 1."""
    return reader.topics.get(reader.recorded_name(place.topic), "").lower().endswith("/tfmessage")


def frames_of(reader: BagReader, feature: Feature, place: BagPlace) -> FrameWay:
    """Return the frames that a place names, and the way between them.

    Raises:
        RecordingError: it does not name two frames, the feature is no part of a pose, or no transforms lead from one
            frame to the other.
    """
    if len(place.columns) != 2 or feature.kind not in ("position", "rotation_6d"):
        raise RecordingError(
            f"{place.text} holds transforms, for '{feature.name}' of kind {feature.kind}; valid are the position or "
            f"rotation of a frame in another, such as {place.topic}[base_link, tool0]"
        )
    return _way(reader, place, str(place.columns[0]), str(place.columns[1]))


def read_transforms(
    reader: BagReader,
    feature: Feature,
    place: BagPlace,
    frames: FrameWay,
    window: tuple[int | None, int | None],
    by_receipt: bool,
) -> SampleSeries:
    """Return positions in m, or rotations as six numbers, of a frame in another.

    There is a sample wherever the slowest transform on the way has one. The others are interpolated to it, linearly and
    along the shortest turn, as tf2 does it; but not between samples more than 250 ms apart.

    Args:
        reader: the bag.
        feature: position or rotation_6d.
        place: topic of the transforms.
        frames: as :func:`frames_of` returns them.
        window: times of receipt, as of :meth:`BagReader.messages`.
        by_receipt: times of receipt count, not the stamps.

    Raises:
        RecordingError: a frame changes what it hangs on, or a rotation is none.
    """
    legs, above = frames.legs, frames.above
    fixed: dict[str, list[float]] = {}
    told: dict[str, dict[int, list[float]]] = {}
    for item, child, each in _transforms(chain(_static(reader, place), reader.messages([place.topic], *window))):
        if child in chain(*legs) and (parent := each.header.frame_id.lstrip("/")) != above[child]:
            raise RecordingError(
                f"{place.text}: frame '{child}' hangs on '{above[child]}' and on '{parent}'; valid is one parent"
            )
        shift, turn = each.transform.translation, each.transform.rotation
        numbers = [shift.x, shift.y, shift.z, turn.x, turn.y, turn.z, turn.w]
        if item.topic != place.topic:
            fixed[child] = numbers
        elif child in chain(*legs):
            told.setdefault(child, {})[item.stamp_ns if by_receipt else stamp_ns(each) or item.stamp_ns] = numbers
    if not told or any(child not in told and child not in fixed for child in chain(*legs)):
        return SampleSeries.of([], [])
    times = {child: np.array(sorted(rows), dtype=np.int64) for child, rows in told.items()}
    stamps = min(times.values(), key=len)
    for own in times.values():
        stamps = stamps[_between_near(own, stamps)]
    poses = np.tile(np.eye(4), (2, len(stamps), 1, 1))
    try:
        for leg, pose in zip(legs, poses, strict=True):
            for child in leg:
                known = child in told
                rows = np.array([told[child][at] for at in times[child]] if known else [fixed[child]])
                pose[:] = _matrices(times[child] if known else stamps, rows, stamps) @ pose
    except ValueError as error:
        raise RecordingError(f"{place.text}: a transform has no rotation: {error}") from error
    found = np.linalg.inv(poses[1]) @ poses[0]
    values = found[:, :3, 3] if feature.kind == "position" else matrix_to_6d(found[:, :3, :3])
    return SampleSeries.of(stamps.tolist(), list(values))


def stamped_ns(reader: BagReader, topic: str) -> int | None:
    """Return the stamp of the first transform on a topic, ns; None if it has none."""
    first = next((each for _, _, each in _transforms(reader.messages([topic]))), None)
    return None if first is None else stamp_ns(first) or None


def _way(reader: BagReader, place: BagPlace, parent: str, child: str) -> FrameWay:
    """Return the way between two frames. Raises RecordingError as :func:`frames_of`."""
    above: dict[str, str] = {}
    for _, frame, each in _transforms(chain(_static(reader, place), islice(reader.messages([place.topic]), FIRST))):
        above[frame] = each.header.frame_id.lstrip("/")
    known = sorted({*above, *above.values()})
    ways = []
    for frame in (child, parent):
        if frame not in known:
            raise RecordingError(f"{place.text}: there is no frame '{frame}'; the bag has {', '.join(known)}")
        ways.append([frame])
        while (over := above.get(ways[-1][-1])) is not None and over not in ways[-1]:
            ways[-1].append(over)
    own, base = ways
    met = next((frame for frame in own if frame in base), None)
    if met is None:
        raise RecordingError(
            f"{place.text}: no transforms lead from '{parent}', in the tree of '{base[-1]}', to '{child}', in "
            f"that of '{own[-1]}'; valid are frames of one tree"
        )
    return FrameWay(parent, child, (own[: own.index(met)], base[: base.index(met)]), above)


def _static(reader: BagReader, place: BagPlace) -> Iterator[BagMessage]:
    return reader.messages([place.topic + STATIC])


def _transforms(items: Iterator[BagMessage]) -> Iterator[tuple[BagMessage, str, Any]]:
    """Yield message, child frame and transform; frames of ROS 1 may begin with a slash."""
    return ((item, each.child_frame_id.lstrip("/"), each) for item in items for each in item.message.transforms)


def _between_near(own: Stamps, stamps: Stamps) -> NDArray[np.bool_]:
    """Return at which times there are samples close before and after."""
    before = own[np.maximum(np.searchsorted(own, stamps, side="right") - 1, 0)]
    after = own[np.minimum(np.searchsorted(own, stamps), len(own) - 1)]
    return np.asarray((before <= stamps) & (stamps <= after) & (after - before <= BRIDGE_NS))


def _matrices(own: Stamps, rows: Values, stamps: Stamps) -> Values:
    """Return transforms ``(T, 4, 4)`` at some times; a single row holds always."""
    found = np.tile(np.eye(4), (len(stamps), 1, 1))
    turns = Rotation.from_quat(rows[:, 3:])
    if len(rows) == 1:
        found[:, :3, 3], found[:, :3, :3] = rows[0, :3], turns.as_matrix()[0]
        return found
    seconds, wanted = (own - own[0]) * 1e-9, (stamps - own[0]) * 1e-9
    found[:, :3, 3] = np.stack([np.interp(wanted, seconds, column) for column in rows[:, :3].T], axis=-1)
    found[:, :3, :3] = Slerp(seconds, turns)(wanted).as_matrix()
    return found
