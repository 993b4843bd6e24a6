"""The numbers of one episode, read as a stream (no image is kept), and the faults that checks find in them."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.poses import pose_numbers
from bid_ros.core.stamps import stamp_to_ns
from bid_ros.core.topics import ARM_STATUS, TOOL_POSE, TOPICS
from bid_ros.curation.catalog import BagEpisode, image_topics
from bid_ros.recording.reader import BagReader, RawMessage

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        check: name of the check.
        severity: ``error``: a data set must not hold it; ``warning``: a person should look at it.
        text: one sentence: what, where, and what is valid.
        at_s: s from the begin of the episode; None if it is not at one time.
    """

    check: str
    severity: Severity
    text: str
    at_s: float | None = None


def error(check: str, text: str, at_s: float | None = None) -> Fault:
    """Return a fault that a data set must not hold."""
    return Fault(check, "error", text, at_s)


def warning(check: str, text: str, at_s: float | None = None) -> Fault:
    """Return a fault that a person should look at."""
    return Fault(check, "warning", text, at_s)


Array = NDArray[np.float64]
Times = NDArray[np.int64]
Flags = NDArray[np.bool_]
NAN: Final = float("nan")
HEADER_BYTES: Final = 12  # mark of CDR and stamp, or number and stamp of ROS 1


@dataclass(frozen=True, eq=False)
class Series:
    """The times of the K messages of one topic.

    Attributes:
        type_name: type of the messages.
        log_ns: ``(K,)`` times of receipt.
        header_ns: ``(K,)`` times in their headers; None if the type has no header, or the stamps are zero.
        marks: ``(K,)`` hashes of what follows the stamp, of images; equal ones are equal images. Empty for others.
    """

    type_name: str
    log_ns: Times
    header_ns: Times | None
    marks: Times

    @property
    def times_ns(self) -> Times:
        """``(K,)`` times in the headers, or of receipt without headers."""
        return self.log_ns if self.header_ns is None else self.header_ns


@dataclass(frozen=True, eq=False)
class ArmTrack:
    """The K states of an arm, from ``arm/status``; what an older bag does not say is NaN.

    Attributes:
        stamps_ns: ``(K,)`` when each was read.
        instants_ns: ``(K,)`` for when its set-point was computed.
        reference: ``(K, 3)`` position of the set-point, m.
        reference_turn: ``(K, 4)`` rotation of the set-point, quaternion xyzw.
        twist: ``(K, 6)`` velocity of the set-point, m/s and rad/s.
        asked: ``(K,)`` opening of the gripper last asked for, m.
        width: ``(K,)`` measured opening of the gripper, m.
        busy: ``(K,)`` whether a command of the gripper runs.
        in_control: ``(K,)`` whether the arm is streamed to: it is not in a fault.
        takeover: ``(K,)`` whether another chunk is followed than in the state before.
        tool: ``(K, 3)`` measured position of the tool, m.
        stopped: ``(K,)`` whether the arm is stopping, stopped or in a fault.
    """

    stamps_ns: Times
    instants_ns: Times
    reference: Array
    reference_turn: Array
    twist: Array
    asked: Array
    width: Array
    busy: Flags
    in_control: Flags
    takeover: Flags
    tool: Array
    stopped: Flags


@dataclass(frozen=True, eq=False)
class EpisodeTrack:
    """The numbers of one episode.

    Attributes:
        recorded: the episode.
        series: times by recorded topic.
        arm: states of the arm; None without ``arm/status``.
        tool_ns: ``(K,)`` times of the measured tool.
        tool: ``(K, 3)`` measured positions of the tool, m; from ``arm/tool_pose`` in older and foreign bags.
        names: recorded names of the topics, by their names in bid_ros.
    """

    recorded: BagEpisode
    series: Mapping[str, Series]
    arm: ArmTrack | None
    tool_ns: Times
    tool: Array
    names: Mapping[str, str] = field(default_factory=dict)

    def seconds(self, stamp_ns: float) -> float:
        """s from the begin of the episode to a time."""
        return max(0.0, (float(stamp_ns) - self.recorded.begin_ns) / 1e9)

    def series_of(self, topic: str) -> Series | None:
        """Return the times of a topic by its name in bid_ros; None if the episode has no message of it."""
        return self.series.get(self.names.get(topic, topic))


def read_track(reader: BagReader, recorded: BagEpisode, topics: Mapping[str, Any] | None = None) -> EpisodeTrack:
    """Return the numbers of one episode.

    Args:
        reader: its bag.
        recorded: the episode.
        topics: names in bid_ros beside those of the arm, whose recorded names are wanted.

    Raises:
        RecordingError: a message is damaged.
    """
    names = {topic: reader.recorded_name(topic) for topic in (ARM_STATUS, TOOL_POSE, *(topics or ()))}
    images = set(image_topics(reader))
    logs: dict[str, tuple[str, array[int], array[int], array[int]]] = {}
    arm, pose_ns, places = _ArmRows(), array("q"), array("d")
    for item in reader.raw(None, recorded.begin_ns, recorded.end_ns + 1):
        _, times, headers, marks = logs.setdefault(item.topic, (item.type_name, array("q"), array("q"), array("q")))
        times.append(item.stamp_ns)
        headers.append(item.header_ns or 0)
        if item.topic in images:
            marks.append(_mark(item))
        elif _is(item, ARM_STATUS, names):
            arm.add(reader.decode(item))
        elif _is(item, TOOL_POSE, names):
            message = reader.decode(item)
            if hasattr(message, "pose"):
                pose_ns.append(item.header_ns or item.stamp_ns)
                places.extend(pose_numbers(message.pose)[:3])
    series = {topic: _series(*parts) for topic, parts in logs.items()}
    states = arm.track()
    if states is not None and np.isfinite(states.tool).any():
        tool_ns, tool = states.stamps_ns, states.tool
    else:
        tool_ns, tool = np.array(pose_ns, dtype=np.int64), np.array(places, dtype=np.float64).reshape(-1, 3)
    return EpisodeTrack(recorded, series, states, tool_ns, tool, names)


def _is(item: RawMessage, topic: str, names: Mapping[str, str]) -> bool:
    """Whether a message is one of a topic, and of its type: another type is for the check of topics to find."""
    return item.topic == names[topic] and item.type_name == TOPICS[topic].type_name


def _mark(item: RawMessage) -> int:
    return int.from_bytes(blake2b(memoryview(item.data)[HEADER_BYTES:], digest_size=8).digest(), "little", signed=True)


def _series(kind: str, times: "array[int]", headers: "array[int]", marks: "array[int]") -> Series:
    stamps = np.array(headers, dtype=np.int64)
    return Series(
        kind, np.array(times, dtype=np.int64), stamps if (stamps > 0).all() else None, np.array(marks, dtype=np.int64)
    )


class _ArmRows:
    """Collects the rows of an ArmTrack."""

    def __init__(self) -> None:
        self._stamps, self._instants, self._values = array("q"), array("q"), array("d")
        self._flags = array("b")
        self._chunk: tuple[str, int] | None = None

    def add(self, message: Any) -> None:
        stamp = stamp_to_ns(message.header.stamp)
        self._stamps.append(stamp)
        # Older bags lack the instant of the set-point; it is 0 before the first one.
        instant = stamp_to_ns(message.reference_stamp) if hasattr(message, "reference_stamp") else 0
        self._instants.append(instant or stamp)
        chunk = (str(message.source), int(message.sequence))
        changed = self._chunk is not None and chunk != self._chunk and bool(chunk[0] and self._chunk[0])
        self._chunk = chunk
        twist = list(message.reference_twist) if hasattr(message, "reference_twist") else [NAN] * 6
        tool = pose_numbers(message.tool)[:3] if hasattr(message, "tool") else [NAN] * 3
        self._values.extend([*pose_numbers(message.reference), *map(float, twist), *tool])
        self._values.extend([message.reference_gripper, message.gripper_width])
        self._flags.extend([message.gripper_busy, message.mode != message.FAULT, changed])
        self._flags.append(message.mode >= message.STOPPING)

    def track(self) -> ArmTrack | None:
        if not self._stamps:
            return None
        place, turn, twist, tool, gripper = np.split(
            np.array(self._values, dtype=np.float64).reshape(len(self._stamps), -1), (3, 7, 13, 16), axis=1
        )
        busy, in_control, takeover, stopped = np.array(self._flags, dtype=np.bool_).reshape(-1, 4).T
        stamps, instants = (np.array(times, dtype=np.int64) for times in (self._stamps, self._instants))
        asked, width = gripper.T
        return ArmTrack(stamps, instants, place, turn, twist, asked, width, busy, in_control, takeover, tool, stopped)
