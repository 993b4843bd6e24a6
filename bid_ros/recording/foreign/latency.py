"""Latency between command and state: the shift in time at which commanded and measured motion are most alike.

It is told, never corrected: a policy that is trained on these rows commands as early as the data did.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from bid_ros.core.task import Task
from bid_ros.recording.episodes import RecordedEpisode
from bid_ros.recording.foreign.commands import read_commands, read_series
from bid_ros.recording.foreign.episodes import read_foreign_episodes
from bid_ros.recording.foreign.links import FeatureLink, FeatureLinks, is_foreign, links_of, mapping_of, measured
from bid_ros.recording.foreign.series import SampleSeries, Stamps, Values
from bid_ros.recording.reader import BagReader
from bid_ros.recording.rows import LAG_NS

KINDS: Final = ("position", "joints")  # whose motion is compared
STEP_NS: Final = 10_000_000  # of the grid
LONGEST_S: Final = 1.0
LEAST_S: Final = -0.2  # a state before its command means that two clocks differ
SMOOTHED: Final = 9  # steps of a mean: numbers that come ten times a second move in jumps
ALIKE: Final = 0.6  # correlation from which on both are the same motion
STILL: Final = {"position": 0.01, "joints": 0.05}  # m/s and rad/s; a mean below it tells nothing


@dataclass(frozen=True)
class Latency:
    """By how much the state follows its command.

    Attributes:
        name: of the action.
        each_s: s, of each episode that tells it.
        episodes: number of all.
    """

    name: str
    each_s: tuple[float, ...]
    episodes: int

    @property
    def median_ms(self) -> float | None:
        """Median of the episodes, ms. None: it cannot be told."""
        return round(1e3 * float(np.median(self.each_s)), 1) if self.each_s else None

    def __str__(self) -> str:
        if self.median_ms is None:
            return f"'{self.name}' cannot be told: too little motion, or command and state move differently"
        few = f"{len(self.each_s)} of {self.episodes} episodes, {1e3 * min(self.each_s):.0f} to"
        early = "; a state before its command means that their clocks differ" if self.median_ms < 0 else ""
        return (
            f"'{self.name}' follows its command by {self.median_ms:.0f} ms ({few} {1e3 * max(self.each_s):.0f}); it is "
            f"not corrected{early}"
        )


def latencies(bags: Iterable[Path], task: Task) -> tuple[Latency, ...]:
    """Return the latency of each action in bags of others; the bags are read without their pictures.

    Raises:
        RecordingError: as :func:`bid_ros.recording.foreign.rows.read_foreign`.
    """
    if mapping_of(task) is None:
        return ()  # opening a bag takes half a second
    found: dict[str, list[float]] = {}
    count = 0
    for bag in bags:
        with BagReader(bag, task.recorded_names) as reader:
            if is_foreign(reader, task):
                lags, episodes = _measured(reader, task)
                count += episodes
                for name, each in lags.items():
                    found.setdefault(name, []).extend(each)
    return tuple(Latency(name, tuple(each), count) for name, each in found.items())


def _measured(reader: BagReader, task: Task) -> tuple[dict[str, list[float]], int]:
    """Return the latencies of a bag's episodes that tell one, s, by the name of the action; and all its episodes."""
    links, mapping = links_of(reader, task), mapping_of(task)
    assert mapping is not None, "a task file with places"
    pairs = {
        link.feature.name: (link, seen)
        for link in links.action
        if link.feature.kind in KINDS and link.place is not None and (seen := measured(links.observation, link))
    }
    episodes = [each for each in read_foreign_episodes(reader, mapping, links) if each.end_ns is not None]
    commands = read_commands(reader, links) if pairs else {}
    found: dict[str, list[float]] = {name: [] for name in pairs}
    for episode in episodes:
        states = _states(reader, links, episode, [seen for _, seen in pairs.values()])
        for name, (link, seen) in pairs.items():
            lag = _lag_s(commands[name], states[seen.feature.name], link, episode)
            found[name] += [] if lag is None else [lag]
    return found, len(episodes)


def _states(
    reader: BagReader, links: FeatureLinks, episode: RecordedEpisode, wanted: list[FeatureLink]
) -> Mapping[str, SampleSeries]:
    assert episode.end_ns is not None, "episodes with an end"
    once = {link.feature.name: link for link in wanted}
    return read_series(reader, links, list(once.values()), episode.start_ns - LAG_NS, episode.end_ns + 2 * LAG_NS)


def _lag_s(command: SampleSeries, state: SampleSeries, link: FeatureLink, episode: RecordedEpisode) -> float | None:
    """Return by how many s a state follows its command in an episode; None: it cannot be told."""
    assert episode.end_ns is not None, "episodes with an end"
    grid = np.arange(episode.start_ns, episode.end_ns, STEP_NS, dtype=np.int64)
    around = np.arange(
        episode.start_ns + round(LEAST_S * 1e9), episode.end_ns + round(LONGEST_S * 1e9), STEP_NS, dtype=np.int64
    )
    if len(grid) < 2 * SMOOTHED or not len(command) or not len(state):
        return None
    wanted, moved = _motion(command, grid, link.twist), _motion(state, around, False)
    if link.twist:  # whose axes may be those of the tool
        wanted, moved = (np.linalg.norm(each, axis=1, keepdims=True) for each in (wanted[:, :3], moved))
    if np.linalg.norm(wanted, axis=1).mean() < STILL[link.feature.kind]:
        return None
    return _shift_s(wanted - wanted.mean(axis=0), moved)


def _motion(series: SampleSeries, grid: Stamps, is_velocity: bool) -> Values:
    """Return the velocity ``(T, d)`` on a grid, smoothed."""
    seconds, at = (series.stamps - grid[0]) * 1e-9, (grid - grid[0]) * 1e-9
    values = np.stack([np.interp(at, seconds, column) for column in series.values.T], axis=-1)
    rates = values if is_velocity else np.gradient(values, STEP_NS * 1e-9, axis=0)
    kernel = np.ones(SMOOTHED) / SMOOTHED
    return np.stack([np.convolve(column, kernel, mode="same") for column in rates.T], axis=-1)


def _shift_s(wanted: Values, moved: Values) -> float | None:
    """Return the shift with the largest correlation, between two steps by a parabola; None: nothing is alike."""
    count, power = len(wanted), float((wanted**2).sum())
    alike = np.zeros(len(moved) - count + 1)
    for at in range(len(alike)):
        part = moved[at : at + count] - moved[at : at + count].mean(axis=0)
        both = np.sqrt(power * float((part**2).sum()))
        alike[at] = float((part * wanted).sum()) / both if both > 0 else 0.0
    best = int(np.argmax(alike))
    if alike[best] < ALIKE or best in (0, len(alike) - 1):
        return None
    before, top, after = alike[best - 1 : best + 2]
    bend = before - 2 * top + after
    return LEAST_S + STEP_NS * 1e-9 * (best + (0.5 * (before - after) / bend if bend < 0 else 0.0))
