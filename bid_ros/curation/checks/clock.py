"""Clocks: the stamps in the headers beside the times of receipt."""

import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
from mcap.exceptions import McapError
from mcap.reader import make_reader
from numpy.typing import NDArray

from bid_ros.core.task import Task
from bid_ros.core.topics import CHUNK_TYPE, TOPICS
from bid_ros.curation.fault import Fault, error, warning
from bid_ros.curation.track import EpisodeTrack, Series
from bid_ros.recording.files import MCAP, bag_files

# Several nodes send these, or their stamps are of another time than that of sending.
NOT_HELD: Final = {
    CHUNK_TYPE,
    *(TOPICS[name].type_name for name in ("heartbeat", "grant", "policy/decision", "episode/event")),
    *(TOPICS[name].type_name for name in ("/diagnostics", "/tf", "/rosout")),
}
FUTURE_S: Final = 0.05
OLD_S: Final = 0.5
JUMP_S: Final = 0.1
DRIFT_S: Final = 0.03
BLOCKS: Final = 8
LEAST: Final = 5 * BLOCKS  # messages from which a drift shows
BACK_S: Final = 0.5


def check_clock(track: EpisodeTrack, task: Task | None) -> Iterator[Fault]:
    """Find stamps that lie in the future, are old, go backwards, jump or drift against the recorder's clock."""
    del task
    for topic, series in track.series.items():
        if series.header_ns is not None and series.type_name not in NOT_HELD:
            yield from _held(track, topic, series, (series.log_ns - series.header_ns) / 1e9)


def _held(track: EpisodeTrack, topic: str, series: Series, ages: NDArray[np.float64]) -> Iterator[Fault]:
    assert series.header_ns is not None
    steps = np.diff(series.header_ns) / 1e9
    if len(steps) and steps.min() < 0:
        at = track.seconds(series.log_ns[int(steps.argmin()) + 1])
        number = int((steps < 0).sum())
        text = f"{topic}: {number} stamps go backwards, by up to {-steps.min():.3f} s at {at:.1f} s; valid is forwards"
        yield (error if -steps.min() > JUMP_S else warning)("clock", text, at)
    # Delays only make messages older, so the smallest age of a while is that of the clocks.
    floors = [float(block.min()) for block in np.array_split(ages, BLOCKS)] if len(ages) >= LEAST else []
    jumps = [abs(after - before) for before, after in pairwise(floors)]
    if jumps and max(jumps) > JUMP_S:
        number = int(np.argmax(jumps)) + 1
        at = track.seconds(series.log_ns[len(ages) * number // BLOCKS])
        change = floors[number] - floors[number - 1]
        text = f"{topic}: the stamps jump by {-change:+.3f} s against the recorder's clock near {at:.1f} s; valid is 0"
        yield error("clock", text, at)
    elif floors and abs(floors[-1] - floors[0]) > max(DRIFT_S, sum(jumps) / 1.5):
        drift = floors[0] - floors[-1]
        text = f"{topic}: the stamps drift by {drift:+.3f} s against the recorder's clock; valid is up to {DRIFT_S} s"
        yield warning("clock", text)
    if ages.min() < -FUTURE_S:
        at = track.seconds(series.log_ns[int(ages.argmin())])
        text = (
            f"{topic}: stamps lie up to {-ages.min():.3f} s in the future of the recorder's clock; valid is up to "
            f"{FUTURE_S} s, so the clocks of the computers must be synchronised"
        )
        yield error("clock", text, at)
    elif np.median(ages) > OLD_S:
        text = f"{topic}: messages are {np.median(ages):.2f} s old when they are received; valid is up to {OLD_S} s"
        yield warning("clock", text)


def check_recorder_clock(bag: Path) -> Iterator[Fault]:
    """Find where the clock of the recorder went backwards, from the index of the bag's chunks in the MCAP files."""
    latest = 0
    for file in (file for file in bag_files(bag) if file.suffix == MCAP):
        try:
            with file.open("rb") as stream:
                summary = make_reader(stream).get_summary()
        except (McapError, struct.error, ValueError):
            continue  # without an index; what is wrong with the file is said when it is read
        indexes = [] if summary is None else sorted(summary.chunk_indexes, key=lambda index: index.chunk_start_offset)
        for index in indexes:
            if 0 < index.message_end_time < latest - BACK_S * 1e9:
                back = (latest - index.message_end_time) / 1e9
                text = (
                    f"the recorder's clock went back by about {back:.1f} s while it recorded; valid is a clock that "
                    "only goes forwards, so do not step the clock of a computer that records"
                )
                yield error("clock", text)
                return
            latest = max(latest, index.message_end_time)
