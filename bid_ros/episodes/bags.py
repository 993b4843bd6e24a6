"""A bag for each episode of a session: it begins with START, and what is discarded or undone goes to the trash."""

import json
import os
import re
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bid_ros.core.errors import RecordingError
from bid_ros.core.lock import lock_folder
from bid_ros.core.outcome import outcome_from_event, outcome_from_text
from bid_ros.core.topics import TF_STATIC
from bid_ros.curation.trash import TRASH, delete
from bid_ros.recording.episodes import DISCARDED, END, START, UNDO, UNDONE
from bid_ros.recording.provenance import EPISODE
from bid_ros.recording.writer import BagWriter

TAIL_NS: Final = 1_000_000_000  # after END, in which what was sent before it still arrives
AHEAD_NS: Final = 1_000_000_000  # before START, of which a bag has the messages too
MOST_BEFORE: Final = 5000  # messages
STATIC_DEPTH: Final = 100  # of the latched topic that has a publisher for each frame
Make = Callable[[Path, Mapping[str, str]], BagWriter]


@dataclass
class EpisodeNote:
    """What the metadata of a bag say about its episode."""

    index: int
    seed: int
    label: str
    outcome: str = "not ended"
    success: bool = False
    outcome_class: str = ""
    outcome_code: str = ""
    duration_s: float = 0.0
    notes: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return it as JSON."""
        return json.dumps(vars(self))


class EpisodeBags:
    """Writes each episode into a bag of its own, ``0000`` and so on in one folder. One thread uses it.

    Between two episodes nothing is written but events and notes, which belong to the episode before. Numbers are never
    used twice, so what is in the trash can be restored.

    Args:
        folder: of the bags; it is made. Bags that are there already stay.
        make: opens a bag: from its path and custom data to its writer, with every topic.
        latched: topics of which a late subscriber gets the last messages, with their depth. A new bag begins with them.

    Raises:
        RecordingError: the folder cannot be made, or somebody else records into it.
    """

    def __init__(self, folder: Path, make: Make, latched: Mapping[str, int]) -> None:
        self.folder, self._make = folder.absolute(), make
        self._lock = lock_folder(self.folder)
        self._kept: dict[str, deque[tuple[int, bytes]]] = {
            topic: deque(maxlen=STATIC_DEPTH if topic == TF_STATIC else depth) for topic, depth in latched.items()
        }
        self.writer: BagWriter | None = None
        self.about: EpisodeNote | None = None
        self.bag: Path | None = None
        self._until_ns = 0
        self._before: deque[tuple[str, int, bytes]] = deque(maxlen=MOST_BEFORE)
        self._bags: dict[int, Path] = {}
        self._closing: list[threading.Thread] = []
        self._failed: list[str] = []
        self.closed_counts: Counter[str] = Counter()
        self.closed_dropped: Counter[str] = Counter()
        self._next = _next_number(self.folder)

    @property
    def recording(self) -> bool:
        """Whether an episode is recorded now."""
        return self.writer is not None and not self._until_ns

    def write(self, topic: str, stamp_ns: int, data: bytes, aside: bool = False) -> None:
        """Take a message; what belongs to no episode is left out.

        Args:
            topic, stamp_ns, data: as :meth:`BagWriter.write`.
            aside: it is an event or a note, which the bag takes after the episode, too.

        Raises:
            RecordingError: the bag can no longer be written.
        """
        if topic in self._kept:
            self._kept[topic].append((stamp_ns, bytes(data)))
        if self._failed:
            raise RecordingError(self._failed[0])
        if self.writer is None or self._until_ns:
            self._keep(topic, stamp_ns, data)
        if self.writer is not None and (aside or not self._until_ns or stamp_ns <= self._until_ns):
            self.writer.write(topic, stamp_ns, data)

    def _keep(self, topic: str, stamp_ns: int, data: bytes) -> None:
        """Keep a message for the bag that may begin now: its first decision is made on what came before START."""
        self._before.append((topic, stamp_ns, bytes(data)))
        while self._before[0][1] < stamp_ns - AHEAD_NS:
            self._before.popleft()

    def take_event(self, event: Any, topic: str, stamp_ns: int, data: bytes) -> None:
        """Take an event of an episode, with the message that it came in. Raises RecordingError as :meth:`write`."""
        if event.kind == START:
            self._begin(event, stamp_ns)
        if self.writer is not None:  # events of no episode belong to none
            self.write(topic, stamp_ns, data, aside=True)
        about = self.about
        if about is not None and about.index == event.episode and event.kind in (END, UNDO):
            found = outcome_from_text(UNDONE) if event.kind == UNDO else outcome_from_event(event)
            about.outcome, about.outcome_class, about.outcome_code = found.text, found.kind, found.code
            about.success = event.kind == END and bool(event.success)
            about.duration_s = round(float(event.duration), 3)
            self._until_ns = self._until_ns or stamp_ns + TAIL_NS
            self._describe()
        if event.kind == UNDO or (event.kind == END and event.outcome == DISCARDED):
            self._throw_away(event.episode)

    def take_note(self, text: str, topic: str, stamp_ns: int, data: bytes) -> None:
        """Take a note about the episode that runs or has ended last. Raises RecordingError as :meth:`write`."""
        self.write(topic, stamp_ns, data, aside=True)
        if self.about is not None:
            self.about.notes.append(text)
            self._describe()

    def close(self) -> None:
        """Close the bag. Raises RecordingError if one could not be finished."""
        self._leave()
        for thread in self._closing:
            thread.join()
        os.close(self._lock)
        if self._failed:
            raise RecordingError(self._failed[0])

    def _begin(self, event: Any, stamp_ns: int) -> None:
        self._leave()
        self.about = EpisodeNote(int(event.episode), int(event.seed), str(event.label))
        self.bag = self.folder / f"{self._next:04d}"
        self._next += 1
        self._bags[self.about.index] = self.bag
        self.writer, self._until_ns = self._make(self.bag, {EPISODE: self.about.text()}), 0
        for topic, items in self._kept.items():
            for _, data in items:
                self.writer.write(topic, stamp_ns - AHEAD_NS, data)
        before, self._before = self._before, deque(maxlen=MOST_BEFORE)
        for topic, at_ns, data in sorted(before, key=lambda item: item[1]):
            if at_ns >= stamp_ns - AHEAD_NS and topic not in self._kept:
                self.writer.write(topic, at_ns, data)

    def _describe(self) -> None:
        if self.writer is not None and self.about is not None:
            self.writer.describe(**{EPISODE: self.about.text()})

    def _leave(self) -> None:
        """Close the bag in a thread of its own: the disk may take a while."""
        writer, self.writer = self.writer, None
        if writer is None:
            return
        thread = threading.Thread(target=self._finish, args=(writer,), name="bag-closer")
        self._closing = [item for item in self._closing if item.is_alive()]
        self._closing.append(thread)
        thread.start()

    def _finish(self, writer: BagWriter) -> None:
        try:
            writer.close()
        except RecordingError as error:
            self._failed.append(str(error))
        self.closed_counts.update(writer.counts)
        self.closed_dropped.update(writer.dropped)

    def _throw_away(self, episode: int) -> None:
        """Move the bag of an episode into the trash, from which ``bid episodes restore`` takes it."""
        bag = self._bags.pop(episode, None)
        if bag is None:
            return
        if bag == self.bag:
            self._leave()
            self.about = self.bag = None
        for thread in self._closing:
            thread.join()
        delete(bag, None)


def _next_number(folder: Path) -> int:
    """Return a number above those of the bags in a folder and in its trash."""
    names = [item.name for item in folder.iterdir()]
    with suppress(FileNotFoundError):
        names += [item.name.partition("_")[2] for item in (folder / TRASH).iterdir()]
    return max((int(name) for name in names if re.fullmatch(r"\d+", name)), default=-1) + 1
