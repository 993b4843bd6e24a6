"""Rows on the task's grid from a bag of anybody's robot."""

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import CameraError, RecordingError
from bid_ros.core.observation import Observation
from bid_ros.core.task import Task
from bid_ros.core.units import doubt
from bid_ros.recording.dataset import Dataset
from bid_ros.recording.episodes import RecordedEpisode, unwanted
from bid_ros.recording.foreign.commands import actions_at, read_commands, read_series
from bid_ros.recording.foreign.episodes import read_foreign_episodes
from bid_ros.recording.foreign.links import FeatureLink, FeatureLinks, fitted, links_of, mapping_of
from bid_ros.recording.foreign.series import NEAR_NS, SampleSeries, Stamps
from bid_ros.recording.outcomes import SUCCESS
from bid_ros.recording.reader import BagReader
from bid_ros.recording.rows import LAG_NS, segments_of


def read_foreign(
    reader: BagReader, task: Task, wanted: str = SUCCESS, first: int = 0
) -> Iterator[tuple[RecordedEpisode, list[Dataset], list[str]]]:
    """Yield the episodes of a bag of others with their rows; those of one are in memory.

    Rows are a period of the task apart, from the first picture of the first camera in the episode on, or from its
    start. What is observed is the sample nearest to the row, as live. An action is the command at the row: between two
    commands less than 250 ms apart, or along a trajectory, on the way from one to the other; else the last one. The
    opening of a gripper is always the last one asked for. Latency is not corrected. Still rows at the start and gaps
    are treated as in :func:`bid_ros.recording.rows.read_episodes`.

    Args:
        reader, wanted, first: as there.
        task: its file names the places of all features.

    Raises:
        RecordingError: the bag is damaged, or does not hold what the task file says.
    """
    links, mapping = links_of(reader, task), mapping_of(task)
    assert mapping is not None, "a task file with places"
    episodes = read_foreign_episodes(reader, mapping, links)
    commands = read_commands(reader, links)
    doubted: set[str] = set()
    for episode in episodes[first:]:
        if why := unwanted(episode, wanted):
            yield episode, [], [f"episode {episode.index}: left out: {why}"]
            continue
        segments, reasons = _read_episode(reader, episode, task, links, commands, doubted)
        yield episode, segments, [f"episode {episode.index}: {reason}" for reason in reasons]


def _read_episode(
    reader: BagReader,
    episode: RecordedEpisode,
    task: Task,
    links: FeatureLinks,
    commands: Mapping[str, SampleSeries],
    doubted: set[str],
) -> tuple[list[Dataset], list[str]]:
    assert episode.end_ns is not None, "wanted episodes have an end"
    begin, end = episode.start_ns, episode.end_ns
    # A row may need what comes after it: a sample that is nearest, or the pose one row later.
    around = (begin - LAG_NS, end + task.dt_ns + LAG_NS)
    seen = [link for link in links.observation if link.feature.kind != "image"]
    states = read_series(reader, links, seen, *around)
    stamps = np.arange(_begin(reader, links, begin, around), end + 1, task.dt_ns, dtype=np.int64)
    values = _pictures(reader, links, stamps, around)
    values |= {name: each.nearest(stamps) for name, each in states.items()}
    for name, why in _doubts(links, commands, states, task):
        if name not in doubted:  # of each feature once, as of other data sets
            logging.getLogger(__name__).warning("%s: episode %d: %s", reader.path, episode.index, why)
            doubted.add(name)
    reasons: list[str] = []
    good = np.ones(len(stamps), dtype=np.bool_)
    for name, (_, near) in values.items():
        if not near.all():
            reasons.append(f"{int((~near).sum())} rows left out: '{name}' has no sample within {NEAR_NS / 1e6:.0f} ms")
        good &= near
    actions, known, said = actions_at(stamps, task, links, commands, states)
    if not known.all():
        reasons.append(f"{int((~known).sum())} rows left out: an action has not been commanded, or what follows them "
                       "is not measured")  # fmt: skip
    good &= known
    numbers = np.flatnonzero(good)
    rows = [
        Observation(int(stamps[at]), {item.name: np.asarray(values[item.name][0][at]) for item in task.observation})
        for at in numbers
    ]
    person = np.zeros(len(numbers), dtype=np.bool_)
    reasons += said
    return segments_of(episode, rows, stamps[good], actions[good], person, task, reasons), reasons


def _doubts(
    links: FeatureLinks, commands: Mapping[str, SampleSeries], states: Mapping[str, SampleSeries], task: Task
) -> list[tuple[str, str]]:
    """Return the features that are hardly in rad or m, and why.

    Raises:
        RecordingError: they are joints, which would be trained as rad.
    """
    units = {} if task.data is None else task.data.unit
    found: list[tuple[str, str]] = []
    for every, series in ((links.observation, states), (links.action, commands)):
        for link in every:
            name, kind = link.feature.name, link.feature.kind
            if name in units or name not in series or link.twist:
                continue
            if why := doubt(kind, name, series[name].values, task.limits):
                if kind == "joints":
                    raise RecordingError(why)
                found.append((name, why))
    return found


class _Picker:
    """Takes the pictures of a camera, in the order of time, to the rows that they are nearest to.

    Args:
        link: the camera.
        stamps: ``(T,)`` of the rows, ns.
    """

    def __init__(self, link: FeatureLink, stamps: Stamps) -> None:
        self._link, self._stamps = link, stamps
        self._last: tuple[int, Any] | None = None
        self._row = 0
        self.found: list[Any] = [np.zeros(link.feature.shape, link.feature.dtype)] * len(stamps)
        self.near = np.zeros(len(stamps), dtype=np.bool_)

    def take(self, stamp_ns: int, message: Any) -> None:
        """Take a picture; one that is not newer than the last is ignored. Raises RecordingError if it is none."""
        if self._last is None or stamp_ns > self._last[0]:
            self.finish(stamp_ns)
            self._last = stamp_ns, message

    def finish(self, next_ns: int | None = None) -> None:
        """Give the last picture to its rows: those that are not nearer to the next one."""
        if self._last is None:
            return
        begin, picture = self._row, None
        until = len(self._stamps)
        if next_ns is not None:
            until = int(np.searchsorted(self._stamps, (self._last[0] + next_ns) // 2, side="right"))
        for row in range(begin, until):
            if abs(int(self._stamps[row]) - self._last[0]) <= NEAR_NS:
                picture = self._decoded() if picture is None else picture
                self.found[row], self.near[row] = picture, True
        self._row = max(begin, until)

    def _decoded(self) -> NDArray[Any]:
        assert self._last is not None, "there is a picture"
        try:
            picture: NDArray[Any] = fitted(self._link, self._last[1])
        except CameraError as error:
            raise RecordingError(str(error)) from error
        return picture


def _pictures(
    reader: BagReader, links: FeatureLinks, stamps: Stamps, around: tuple[int, int]
) -> dict[str, tuple[Any, NDArray[np.bool_]]]:
    """Return the pictures nearest to some times, by the name of the camera, and whether each is near enough."""
    pickers = {link.place.topic: _Picker(link, stamps) for link in _cameras(links) if link.place is not None}
    for item in reader.messages(pickers, *around) if pickers else ():
        pickers[item.topic].take(links.stamp_ns(item), item.message)
    for picker in pickers.values():
        picker.finish()
    names = {link.place.topic: link.feature.name for link in _cameras(links) if link.place is not None}
    return {names[topic]: (picker.found, picker.near) for topic, picker in pickers.items()}


def _begin(reader: BagReader, links: FeatureLinks, begin_ns: int, around: tuple[int, int]) -> int:
    """Return the time of the first picture of the first camera from a time on; that time if there is none."""
    topics = [link.place.topic for link in _cameras(links)[:1] if link.place is not None]
    times = (links.stamp_ns(item) for item in (reader.messages(topics, *around) if topics else ()))
    return next((stamp for stamp in times if stamp >= begin_ns), begin_ns)


def _cameras(links: FeatureLinks) -> list[FeatureLink]:
    return [link for link in links.observation if link.feature.kind == "image"]
