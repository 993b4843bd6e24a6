"""What ties a task to a bag of anybody's robot: for each feature its place, its unit, and what was found there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from bid_ros.cameras.depth import read_image
from bid_ros.cameras.image import resize_crop
from bid_ros.core.bag_mapping import NEXT, BagPlace, BagTopics, place_of
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import CameraError, RecordingError
from bid_ros.core.feature import Feature
from bid_ros.core.task import Task
from bid_ros.core.topics import ARM_STATUS, TOPICS
from bid_ros.core.units import conversion
from bid_ros.recording.foreign.messages import (
    Values,
    carries_joints,
    frame_of,
    is_twist,
    numbers,
    twist_numbers,
)
from bid_ros.recording.foreign.transforms import FrameWay, frames_of, is_tree, stamped_ns
from bid_ros.recording.reader import BagMessage, BagReader, RawMessage

FIRST: Final = 100  # messages of a topic among which one must hold a feature
AWRY_NS: Final = NANOSECONDS  # from a message's stamp to its receipt; more is another clock


@dataclass(frozen=True)
class FeatureLink:
    """Where a feature of a task is in a bag.

    Attributes:
        feature: of the task.
        place: None of an action that is ``next``.
        scale, offset: make rad or m of its numbers.
        twist: it is a velocity, of which no pose comes.
        frames: it is the pose of one frame in another, from a tree of transforms. None: of a message.
    """

    feature: Feature
    place: BagPlace | None
    scale: float = 1.0
    offset: float = 0.0
    twist: bool = False
    frames: FrameWay | None = None

    @property
    def follows(self) -> bool:
        """Whether the action is what is measured one row later."""
        return self.place is None or self.twist

    def numbers(self, message: Any) -> Values:
        """Return the feature in rad and m, or a velocity. Raises RecordingError if a message does not hold it."""
        assert self.place is not None, "an action that nobody commanded has no message"
        if self.twist:
            return twist_numbers(message, self.place)
        return numbers(self.feature, message, self.place)[0] * self.scale + self.offset


@dataclass(frozen=True)
class FeatureLinks:
    """Those of all features of a task in one bag.

    Attributes:
        observation, action: in the order of the task.
        by_receipt: stamps are of another clock than the bag's, so that times of receipt count.
        notes: one sentence for each thing that is read otherwise than it may seem.
    """

    observation: tuple[FeatureLink, ...]
    action: tuple[FeatureLink, ...]
    by_receipt: bool
    notes: tuple[str, ...]

    def stamp_ns(self, item: BagMessage) -> int:
        """Time of a message, ns: its stamp, or that of its receipt where it has none of the bag's clock."""
        header = getattr(getattr(item.message, "header", None), "stamp", None)
        stamp = 0 if header is None or self.by_receipt else int(header.sec) * NANOSECONDS + int(header.nanosec)
        return stamp or item.stamp_ns

    def raw_ns(self, item: RawMessage) -> int:
        """Time of a message that is not decoded, ns, likewise."""
        return (None if self.by_receipt else item.header_ns) or item.stamp_ns

    @property
    def commanded(self) -> tuple[str, ...]:
        """Topics of commands."""
        return tuple(dict.fromkeys(link.place.topic for link in self.action if link.place is not None))


def mapping_of(task: Task) -> BagTopics | None:
    """Return what a task file says of bags of others; None: it maps no features."""
    return task.data.topics if task.data is not None and task.data.topics.mapped else None


def is_foreign(reader: BagReader, task: Task) -> bool:
    """Whether a bag is read by the places of the task file: those that bid_ros recorded have its own names."""
    own = reader.topics.get(reader.recorded_name(ARM_STATUS)) == TOPICS[ARM_STATUS].type_name
    return mapping_of(task) is not None and not own


def links_of(reader: BagReader, task: Task) -> FeatureLinks:
    """Return where the features of a task are in a bag, tried on the first messages of each topic.

    Raises:
        RecordingError: a topic is missing or empty, its type is not understood, two features are on one value, or
            poses are in different frames.
    """
    mapping = mapping_of(task)
    assert mapping is not None, "a task file with places"
    observed = tuple(_link(item, mapping.observation.get(item.name), task) for item in task.observation)
    commanded = tuple(_link(item, mapping.action[item.name], task) for item in task.action)
    tried = _Trial(reader, task)
    observed = tuple(tried.link(link, "observation") for link in observed)
    commanded = tuple(tried.link(link, "action") for link in commanded)
    _check_followed(observed, commanded)
    found = _stamp_problem(reader, (*observed, *commanded))
    notes = (*tried.notes, *([found] if found else []), *_following(commanded, task))
    return FeatureLinks(observed, commanded, bool(found), notes)


def _link(feature: Feature, text: str | None, task: Task) -> FeatureLink:
    if text is None:  # a vector says itself where it is
        path = tuple(feature.field.split("."))
        return FeatureLink(feature, BagPlace(f"{feature.topic}:{feature.field}", feature.topic, path))
    units = {} if task.data is None else task.data.unit
    scale, offset = conversion(units[feature.name], feature.kind, feature.name, task.limits) if (
        feature.name in units
    ) else (1.0, 0.0)  # fmt: skip
    return FeatureLink(feature, None if text == NEXT else place_of(text), scale, offset)


class _Trial:
    """Tries links on a bag: what each finds in the first messages of its topic."""

    def __init__(self, reader: BagReader, task: Task) -> None:
        self._reader, self._task = reader, task
        self._taken: dict[tuple[str, str, tuple[str, ...], object], str] = {}
        self._frames: dict[str, str] = {}
        self.notes: list[str] = []

    def link(self, link: FeatureLink, group: str) -> FeatureLink:
        place, feature = link.place, link.feature
        if place is None:
            return link
        said = f"{group} '{feature.name}'"
        parts: tuple[object, ...] = ("image",)
        if feature.kind == "image":
            self._picture(link, first_message(self._reader, place, said))
        elif is_tree(self._reader, place):
            first_message(self._reader, place, said)
            frames = frames_of(self._reader, feature, place)
            link = replace(link, frames=frames)
            self._frame(frames.parent, place.text, feature)
            parts = ((feature.kind, frames.parent, frames.child),)
        else:
            item = first_message(self._reader, place, said, feature)
            link = replace(link, twist=group == "action" and is_twist(item.message, place))
            parts = self._parts(link, item, said)
        for part in parts:
            at = (group, place.topic, place.path, part)
            if (other := self._taken.setdefault(at, feature.name)) != feature.name:
                raise RecordingError(
                    f"data: topics: {group} '{other}' and '{feature.name}' are both {place.topic} "
                    f"{'.'.join(place.path)}[{part}]; valid is a value of its own for each"
                )
        return link

    def _parts(self, link: FeatureLink, item: BagMessage, said: str) -> tuple[object, ...]:
        place, feature = link.place, link.feature
        assert place is not None, "it was found"
        if link.twist:
            if feature.kind not in ("position", "rotation_6d"):
                raise RecordingError(f"{place.text} is a twist without {feature.kind}; name another topic for {said}")
            return (feature.kind,)
        try:
            parts = numbers(feature, item.message, place)[1]
        except RecordingError as error:
            kind = self._reader.topics[self._reader.recorded_name(place.topic)]
            raise RecordingError(f"bag {self._reader.path}: {said}: {error} (type {kind})") from error
        if feature.kind in ("position", "rotation_6d") and (frame := frame_of(item.message)):
            self._frame(frame, place.text, feature)
        return parts

    def _frame(self, frame: str, text: str, feature: Feature) -> None:
        """Note a frame of another name; refuse two of them, of which no one says how they lie."""
        known = next(iter(self._frames), frame)
        if frame != known:
            raise RecordingError(
                f"{self._frames[known]} is in frame '{known}', {text} in '{frame}'; valid is one frame for all poses"
            )
        if frame not in self._frames and frame != feature.frame:
            self.notes.append(f"poses in frame '{frame}' are taken as in '{feature.frame}'")
        self._frames[frame] = text

    def _picture(self, link: FeatureLink, item: BagMessage) -> None:
        """Note what becomes of the size and the rate of a camera."""
        assert link.place is not None, "it was found"
        feature, topic = link.feature, link.place.topic
        if not (hasattr(item.message, "encoding") or hasattr(item.message, "format")):
            kind = self._reader.topics[self._reader.recorded_name(topic)]
            raise RecordingError(f"'{topic}' is no image, as '{feature.name}' is: it has type {kind}")
        try:
            height, width = read_image(feature, item.message, topic).shape[:2]
        except CameraError as error:
            raise RecordingError(str(error)) from error
        if (height, width) != feature.shape[:2]:
            self.notes.append(
                f"'{feature.name}' is resized as a whole from {width}x{height} to {feature.shape[1]}x"
                f"{feature.shape[0]} px, as a camera without crop is live"
            )
        first, last = self._reader.span_ns
        rate = self._reader.counts[self._reader.recorded_name(topic)] * NANOSECONDS / max(last - first, 1)
        if rate < 0.8 * self._task.rate_hz:
            self.notes.append(
                f"'{feature.name}' has {rate:.1f} pictures a second, the task {self._task.rate_hz:g} rows: the nearest "
                "is taken, so pictures repeat or rows are missing"
            )


def first_message(reader: BagReader, place: BagPlace, said: str, feature: Feature | None = None) -> BagMessage:
    """Return the first message of a topic that may hold a feature.

    Raises:
        RecordingError: the bag lacks the topic, or it has no such message; or it cannot be read.
    """
    name = check_topic(reader, place.topic, said)
    if not reader.counts.get(name):
        raise RecordingError(f"bag {reader.path} has no message on {place.topic}, which is to hold {said}")
    first: BagMessage | None = None
    for item in islice(reader.messages([place.topic]), FIRST):
        first = first or item
        if feature is None or carries_joints(item.message, place, feature):
            return item
    if first is None:
        raise RecordingError(f"bag {reader.path} has no picture on {place.topic}, which is to hold {said}")
    return first


def check_topic(reader: BagReader, topic: str, said: str) -> str:
    """Return the recorded name of a topic. Raises RecordingError if the bag lacks it."""
    name = reader.recorded_name(topic)
    if name not in reader.topics:
        there = _alike(reader, topic)
        raise RecordingError(f"bag {reader.path} has no topic {topic}, which is to hold {said}; {there}")
    return name


def _alike(reader: BagReader, topic: str) -> str:
    words = set(topic.split("/"))
    names = sorted(reader.topics, key=lambda name: (-len(words & set(name.split("/")) - {""}), name))
    more = f" and {len(names) - 8} others" if len(names) > 8 else ""
    return f"it has {', '.join(names[:8])}{more}" if names else "it holds no topic"


def _check_followed(observed: Sequence[FeatureLink], commanded: Sequence[FeatureLink]) -> None:
    """Raise RecordingError unless what follows the measured pose is measured."""
    for link in commanded:
        if link.twist and measured(observed, link) is None:
            raise RecordingError(
                f"action '{link.feature.name}' is a twist, whose pose is the next one that is measured; valid is an "
                f"observation of kind {link.feature.kind} beside it"
            )


def measured(observed: Sequence[FeatureLink], link: FeatureLink) -> FeatureLink | None:
    """Return the observation that measures an action: that of its name, else the only one of its kind."""
    same = [item for item in observed if item.feature.kind == link.feature.kind]
    named = [item for item in same if item.feature.name == link.feature.name]
    return named[0] if named else same[0] if len(same) == 1 else None


def _stamp_problem(reader: BagReader, links: Sequence[FeatureLink]) -> str:
    """Return why times of receipt count, not the stamps of the messages; empty if the stamps do."""
    for topic, tree in {link.place.topic: bool(link.frames) for link in links if link.place is not None}.items():
        first = next(reader.raw([topic]), None)
        stamped = stamped_ns(reader, topic) if tree else first and first.header_ns
        if first is not None and stamped and abs(stamped - first.stamp_ns) > AWRY_NS:
            off = (stamped - first.stamp_ns) / NANOSECONDS
            return f"times are those of receipt: stamps on {topic} are {off:+.4g} s from the recorder's clock"
    return ""


def _following(commanded: Sequence[FeatureLink], task: Task) -> Iterator[str]:
    for link in commanded:
        if link.follows:
            way = f"commanded as a twist on {link.place.topic}" if link.place else "not commanded"
            yield (
                f"action '{link.feature.name}' is {way}: it is what is measured one row, {task.dt_ns / 1e6:g} ms, later"
            )


def fitted(link: FeatureLink, message: Any) -> Any:
    """Return the picture of a message in the size of its feature. Raises CameraError."""
    assert link.place is not None, "a picture has a place"
    return resize_crop(read_image(link.feature, message, link.place.topic), None, link.feature.shape)
