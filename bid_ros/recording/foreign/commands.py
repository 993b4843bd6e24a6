"""What was commanded, as the actions of rows."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bid_ros.core.feature import Feature
from bid_ros.core.task import Task
from bid_ros.recording.foreign.links import FeatureLink, FeatureLinks, measured
from bid_ros.recording.foreign.messages import body_of, carries_joints, is_trajectory, trajectory
from bid_ros.recording.foreign.series import Known, SampleSeries, Stamps, Values
from bid_ros.recording.foreign.transforms import read_transforms
from bid_ros.recording.reader import BagReader


class Samples:
    """Collects what the messages of a topic say of one feature."""

    def __init__(self, link: FeatureLink) -> None:
        self._link = link
        self._stamps: list[int] = []
        self._values: list[Values] = []
        self._linked: list[bool] = []

    def take(self, stamp_ns: int, message: Any) -> None:
        """Take a message. Raises RecordingError if it does not hold the feature."""
        place = self._link.place
        assert place is not None, "a feature without a place has no message"
        body = body_of(message, place)
        if body is None or not carries_joints(message, place, self._link.feature):
            return
        if is_trajectory(body):
            self._follow(stamp_ns, message)
            return
        self._add(stamp_ns, self._link.numbers(message), False)

    def series(self) -> SampleSeries:
        """Return the samples in the order of time."""
        return SampleSeries.of(self._stamps, self._values, self._linked)

    def _follow(self, stamp_ns: int, message: Any) -> None:
        """Take a trajectory. It replaces what was commanded for later, as a controller does."""
        assert self._link.place is not None, "a trajectory has a place"
        after, points = trajectory(self._link.feature, message, self._link.place)
        if not after:
            return
        begin = stamp_ns if after[0] > 0 else stamp_ns - 1
        now = self._at(begin)
        while self._stamps and self._stamps[-1] >= begin:
            del self._stamps[-1], self._values[-1], self._linked[-1]
        # The motion to the first point begins where the arm was told to be; the first motion of all is at its point.
        self._add(begin, *(now or (points[0] * self._link.scale + self._link.offset, False)))
        for at, point in zip(after, points, strict=True):
            self._add(stamp_ns + at, point * self._link.scale + self._link.offset, at > 0)

    def _at(self, stamp_ns: int) -> tuple[Values, bool] | None:
        """Return what is commanded at a time, and whether a motion leads there; None: nothing yet."""
        after = bisect_right(self._stamps, stamp_ns)
        if after == 0:
            return None
        if after == len(self._stamps) or not self._linked[after]:
            return self._values[after - 1], False
        share = (stamp_ns - self._stamps[after - 1]) / (self._stamps[after] - self._stamps[after - 1])
        return self._values[after - 1] + share * (self._values[after] - self._values[after - 1]), True

    def _add(self, stamp_ns: int, values: Values, linked: bool) -> None:
        self._stamps.append(stamp_ns)
        self._values.append(values)
        self._linked.append(linked)


def read_series(
    reader: BagReader,
    links: FeatureLinks,
    wanted: Sequence[FeatureLink],
    start_ns: int | None = None,
    stop_ns: int | None = None,
) -> dict[str, SampleSeries]:
    """Return what a bag says of some features, by name.

    Args:
        reader: the bag.
        links: of all features.
        wanted: those of some features with a place, no images.
        start_ns, stop_ns: times of receipt, as :meth:`BagReader.messages`.

    Raises:
        RecordingError: a message does not hold its feature, or the bag is damaged.
    """
    found: dict[str, SampleSeries] = {}
    taken: dict[str, Samples] = {}
    by_topic: dict[str, list[FeatureLink]] = {}
    for link in wanted:
        assert link.place is not None, "what is read has a place"
        if link.frames is not None:
            window = (start_ns, stop_ns)
            each = read_transforms(reader, link.feature, link.place, link.frames, window, links.by_receipt)
            found[link.feature.name] = replace(each, values=each.values * link.scale + link.offset)
        else:
            taken[link.feature.name] = Samples(link)
            by_topic.setdefault(link.place.topic, []).append(link)
    for item in reader.messages(by_topic, start_ns, stop_ns) if by_topic else ():
        for link in by_topic[item.topic]:
            taken[link.feature.name].take(links.stamp_ns(item), item.message)
    return found | {name: samples.series() for name, samples in taken.items()}


def read_commands(reader: BagReader, links: FeatureLinks) -> dict[str, SampleSeries]:
    """Return what a bag commands, by the name of the action; of twists the velocities. Raises as :func:`read_series`.

    They are those of the whole bag: what was commanded long before an episode may still hold in it.
    """
    return read_series(reader, links, [link for link in links.action if link.place is not None])


def actions_at(
    stamps: Stamps,
    task: Task,
    links: FeatureLinks,
    commands: Mapping[str, SampleSeries],
    states: Mapping[str, SampleSeries],
) -> tuple[Values, Known, list[str]]:
    """Return the actions ``(T, D)`` at some times, whether each is known, and what stands for something else.

    Args:
        stamps: ``(T,)`` ns.
        task: layout of the actions.
        links: of its features.
        commands: of the bag, see :func:`read_commands`.
        states: what was observed around these times, by the name of the observation.
    """
    parts: list[Values] = []
    known = np.ones(len(stamps), dtype=np.bool_)
    said: list[str] = []
    for link in links.action:
        values, there = _action(link, stamps, task, links, commands, states)
        if link.feature.kind == "gripper" and not link.follows and not there.all():
            values, there = _until_commanded(link.feature, values, there, stamps, links, states, said)
        parts.append(values)
        known &= there
    return np.concatenate(parts, axis=1), known, said


def _action(
    link: FeatureLink,
    stamps: Stamps,
    task: Task,
    links: FeatureLinks,
    commands: Mapping[str, SampleSeries],
    states: Mapping[str, SampleSeries],
) -> tuple[Values, Known]:
    if link.follows:
        seen = measured(links.observation, link)
        assert seen is not None, "checked when the bag was opened"
        return states[seen.feature.name].nearest(stamps + task.dt_ns)
    series = commands[link.feature.name]
    # An opening between two commands was never commanded: it jumps.
    return series.held(stamps) if link.feature.kind == "gripper" else series.between(stamps, link.feature.kind)


def _until_commanded(
    feature: Feature,
    values: Values,
    known: Known,
    stamps: Stamps,
    links: FeatureLinks,
    states: Mapping[str, SampleSeries],
    said: list[str],
) -> tuple[Values, Known]:
    """Let the measured opening stand for the commanded one before the first command."""
    seen = next((link.feature.name for link in links.observation if link.feature.kind == "gripper"), None)
    if seen is None:
        return values, known
    opening, near = states[seen].nearest(stamps)
    said.append(f"{int((~known).sum())} rows before the first command of '{feature.name}' have the measured opening")
    return np.where(known[:, None], values, opening), known | near
