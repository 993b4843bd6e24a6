"""The texts that a recorded policy was asked with."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.topics import INSTRUCTION
from bid_ros.recording.episodes import RecordedEpisode, find_episodes
from bid_ros.recording.files import message_counts
from bid_ros.recording.reader import BagReader

BEGIN_NS: Final = 1_000_000_000  # after START, in which the first decision is made and its text arrives
Told = Sequence[tuple[int, str]]


def find_instructions(bag: BagReader) -> Told:
    """Return (time of receipt in ns, text) of each instruction in a bag, in the order of time."""
    if not bag.counts.get(bag.recorded_name(INSTRUCTION)):
        return []  # a pass through the bag is saved
    return [(item.stamp_ns, str(item.message.data)) for item in bag.messages([INSTRUCTION])]


def find_text_at(bag: BagReader) -> Callable[[int], str]:
    """Return what gives the text that held at a time of receipt or of a frame in ns; empty: none.

    The first decision of an episode is made with a text that may arrive a little after it.
    """
    told = find_instructions(bag)
    starts = [item.start_ns for item in find_episodes(bag)] if told else []

    def text_at(stamp_ns: int) -> str:
        until = max([stamp_ns, *(start + BEGIN_NS for start in starts if start <= stamp_ns)])
        return next((text for at, text in reversed(told) if at <= until), "")

    return text_at


def instructed_in(bags: Iterable[Path]) -> bool:
    """Whether the metadata of a bag count an instruction."""
    counts = (item for bag in bags for item in message_counts(bag).items())
    return any(count and name.endswith(f"/{INSTRUCTION}") for name, count in counts)


def texts_of(told: Told, episode: RecordedEpisode, stamps_ns: NDArray[np.int64]) -> dict[str, Any]:
    """Return ``text`` and ``texts`` of :class:`bid_ros.formats.base.DataEpisode`, of some rows of an episode.

    A text holds until the next. It changes inside an episode only where a person took over meanwhile.

    Args:
        told: of the bag.
        episode: in it.
        stamps_ns: ``(T,)`` of the rows.
    """
    begin = episode.start_received_ns + BEGIN_NS
    texts = {0: ""}
    for at, text in told:
        row = int(np.searchsorted(stamps_ns, at)) if at > begin else 0
        if row < len(stamps_ns):
            texts[row] = text
    changed = [after for before, after in pairwise(texts.items()) if before[1] != after[1]]
    return {"text": texts[0], "texts": ((0, texts[0]), *changed) if changed else ()}
