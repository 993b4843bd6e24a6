"""Which bags there are, and which episodes they hold."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bid_ros.core.errors import RecordingError
from bid_ros.core.topics import COMPRESSED_IMAGE_TYPE, IMAGE_TYPE
from bid_ros.recording.episodes import RecordedEpisode, find_episodes
from bid_ros.recording.files import KINDS, bag_files, bags_inside
from bid_ros.recording.reader import BagReader


@dataclass(frozen=True)
class BagEpisode:
    """One episode of a bag. A bag without events of episodes counts as one episode of unknown outcome.

    Attributes:
        bag: path of the bag.
        number: place of the episode in its bag, from 0.
        episode: what its events say; None without events.
        begin_ns, end_ns: times of receipt of its first message and of its last, ns since the epoch.
    """

    bag: Path
    number: int
    episode: RecordedEpisode | None
    begin_ns: int
    end_ns: int

    @property
    def name(self) -> str:
        """What names it on the command line: ``BAG:N``."""
        return f"{self.bag}:{self.number}"

    @property
    def duration_s(self) -> float:
        """s from its begin to its end."""
        return (self.end_ns - self.begin_ns) / 1e9

    @property
    def success(self) -> bool | None:
        """Whether it succeeded; None if nothing says so."""
        return None if self.episode is None or self.episode.end_ns is None else self.episode.success

    @property
    def outcome(self) -> str:
        """How it ended."""
        if self.episode is None:
            return "unknown"
        return self.episode.outcome or ("success" if self.episode.success else "unknown")

    @property
    def label(self) -> str:
        """Its label; empty if nothing says one."""
        return "" if self.episode is None else self.episode.label


def find_bags(paths: Iterable[str | Path], or_none: bool = False) -> list[Path]:
    """Return the bags that ``paths`` name: bags, runs that hold one, and folders of these, each bag once.

    Hidden folders, such as the trash, are left out.

    Args:
        paths: see above.
        or_none: a folder may hold no bag.

    Raises:
        RecordingError: a path does not exist, or there is no bag in it.
    """
    found: dict[Path, Path] = {}
    for path in map(Path, paths):
        inside = [path] if path.is_file() else list(bags_inside(path))
        if not inside and not (or_none and path.is_dir()):
            bag_files(path)  # says what is wrong with it, if it is missing
            raise RecordingError(f"there is no bag in {path}; valid is {KINDS}, or a folder that holds some")
        for bag in inside:
            found.setdefault(bag.resolve(), bag)
    return list(found.values())


def split_name(text: str) -> tuple[Path, int | None]:
    """Return the bag and the number of an episode that ``BAG`` or ``BAG:N`` names."""
    match = re.fullmatch(r"(.+):(\d+)", text)
    if match is None or Path(text).exists():
        return Path(text), None
    return Path(match[1]), int(match[2])


def one_bag(text: str | Path) -> Path:
    """Return the one bag that a path names: a bag, or a run that holds it. Raises RecordingError unless it is one."""
    bags = find_bags([text])
    if len(bags) > 1:
        raise RecordingError(f"{text} holds {len(bags)} bags; valid is one, such as {bags[0]}")
    return bags[0]


def episodes_of(reader: BagReader) -> tuple[BagEpisode, ...]:
    """Return the episodes of an open bag, in order of time. A bag without messages has none.

    Raises:
        RecordingError: its events are damaged.
    """
    first, last = reader.span_ns
    if not last:
        return ()
    found = find_episodes(reader)
    if not found:
        return (BagEpisode(reader.path, 0, None, first, last),)
    begins = [*(episode.start_received_ns for episode in found[1:]), last + 1]
    return tuple(
        BagEpisode(
            reader.path,
            number,
            episode,
            episode.start_received_ns,
            begins[number] - 1 if episode.end_received_ns is None else episode.end_received_ns,
        )
        for number, episode in enumerate(found)
    )


def chosen(reader: BagReader, number: int | None) -> tuple[BagEpisode, ...]:
    """Return the episodes of a bag, or the one of that number.

    Raises:
        RecordingError: the bag has no such episode, or no message at all.
    """
    found = episodes_of(reader)
    if not found:
        raise RecordingError(f"bag {reader.path} holds no message, so there is no episode to look at")
    if number is None:
        return found
    if number >= len(found):
        raise RecordingError(f"bag {reader.path} has no episode {number}; valid is 0 to {len(found) - 1}")
    return (found[number],)


def image_topics(reader: BagReader) -> list[str]:
    """Return the recorded names of the topics with images, those with messages first in order of their names."""
    types, counts = reader.topics, reader.counts
    images = [name for name, kind in types.items() if kind in (IMAGE_TYPE, COMPRESSED_IMAGE_TYPE)]
    return sorted((name for name in images if counts[name]), key=lambda name: ("depth" in name, name))


def count_frames(reader: BagReader, episodes: Sequence[BagEpisode]) -> list[int]:
    """Return how many images of the first camera each of the episodes has; 0 without a camera."""
    topics = image_topics(reader)[:1]
    if not topics:
        return [0] * len(episodes)
    return [sum(1 for _ in reader.raw(topics, item.begin_ns, item.end_ns + 1)) for item in episodes]


def bag_bytes(path: Path) -> int:
    """Return the size of a bag's files."""
    return sum(file.stat().st_size for file in bag_files(path))
