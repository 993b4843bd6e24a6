"""Trims, splits and merges bags. The originals are never changed, and what is latched is never lost."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from heapq import merge as merged
from itertools import pairwise
from pathlib import Path
from typing import Final

from bid_ros.core.errors import RecordingError
from bid_ros.core.topics import EPISODE_EVENT
from bid_ros.curation.catalog import BagEpisode, chosen, episodes_of
from bid_ros.curation.copying import EVENT_TYPE, INFO_TYPE, BagCopy, Copied, RawBag, latched_depth
from bid_ros.recording.episodes import PREPARE
from bid_ros.recording.reader import BagReader
from bid_ros.recording.rows import LAG_NS

REMAPPED: Final = "remapped"
SYSTEM_KEYS: Final = ("namespace", "frame_prefix", REMAPPED, "task")
ORIGIN: Final = "origin"
Progress = Callable[[], None]


def trim(
    bag: Path,
    number: int | None,
    from_s: float,
    to_s: float | None,
    out: Path,
    about: Mapping[str, str],
    remapped: Mapping[str, str] | None = None,
) -> int:
    """Write a part of one episode into a new bag, with its START and its END.

    What is latched and lies before the part is put at its begin, END at its end. Their time of publishing stays.

    Args:
        bag: path of the bag.
        number: the episode; None: the only one.
        from_s, to_s: begin and end of the part, s after START; ``to_s`` None: the end of the episode.
        out: bag folder to create.
        about: custom data beside that of the bag.
        remapped: recorded names, as BagReader takes them. The new bag says them itself.

    Returns:
        Number of copied messages.

    Raises:
        RecordingError: there is no such episode or part, or ``out`` exists.
    """
    with BagReader(bag, remapped) as reader:
        found = chosen(reader, number)
        if len(found) > 1:
            raise RecordingError(f"bag {bag} holds {len(found)} episodes; valid is one of them, such as {bag}:0")
        recorded, borders = found[0], _borders(reader)
    last = recorded.duration_s
    end_s = last if to_s is None else to_s
    if not 0 <= from_s < end_s <= last + 1e-3:
        raise RecordingError(f"{recorded.name} has no part from {from_s:g} to {end_s:g} s; valid is 0 to {last:.3f} s")
    begin = recorded.begin_ns + round(from_s * 1e9)
    end = recorded.begin_ns + round(end_s * 1e9) + 1
    if end > recorded.end_ns:  # a frame from before the end is received after it
        following = [border for border in borders if border > recorded.end_ns]
        end = min([recorded.end_ns + LAG_NS, *following])
    with RawBag(bag) as source, BagCopy(out, [source], _renamed(source, recorded.name, about, remapped)) as copy:
        for item in _carried(source, begin, end):
            copy.add(item, begin)
        early, late = _outside(source, recorded, begin, end)
        for item in early:
            copy.add(item, begin)
        for item in source.messages(None, begin, end):
            if not _foreign_event(item, recorded):
                copy.add(item)
        for item in late:
            copy.add(item, end - 1)
        return copy.finish()


def split(bag: Path, folder: Path, about: Mapping[str, str], progress: Progress = lambda: None) -> list[Path]:
    """Write each episode of a bag into a bag of its own. Together they hold every message.

    A part begins with the preparation of its episode, the first with the bag. What is latched and lies before a part is
    put at its begin.

    Returns:
        The new bags, ``episode_000`` and so on.

    Raises:
        RecordingError: the bag has fewer than two episodes, or one of the new bags exists.
    """
    with BagReader(bag) as reader:
        episodes, borders = episodes_of(reader), _borders(reader)
        first, last = reader.span_ns
    if len(episodes) < 2:
        raise RecordingError(f"bag {bag} holds {len(episodes)} episode(s), so there is nothing to split; valid is 2")
    parts = list(pairwise([first, *borders, last + 1]))
    outs = [folder / f"episode_{number:03d}" for number in range(len(parts))]
    if taken := [out for out in outs if out.exists()]:
        raise RecordingError(f"{taken[0]} exists already; valid is a new folder")
    with RawBag(bag) as source:
        for number, (out, (begin, end)) in enumerate(zip(outs, parts, strict=True)):
            with BagCopy(out, [source], _custom(source, f"{bag}:{number}", about)) as copy:
                for item in _carried(source, begin, end):
                    copy.add(item, begin)
                for item in source.messages(None, begin, end):
                    copy.add(item)
                copy.finish()
            progress()
    return outs


def merge(bags: Sequence[Path], out: Path, about: Mapping[str, str], progress: Progress = lambda: None) -> int:
    """Write the messages of several bags of one system into a new one, in order of their times of receipt.

    A latched message that a split has copied into several parts is written once.

    Returns:
        Number of copied messages.

    Raises:
        RecordingError: there are fewer than two bags, they are of different systems, their episodes overlap, or ``out``
            exists.
    """
    if len(bags) < 2:
        raise RecordingError(f"there is {len(bags)} bag to merge; valid is 2 or more")
    with ExitStack() as stack:
        _check_apart(bags)
        sources = [stack.enter_context(RawBag(bag)) for bag in bags]
        custom = dict(about)
        for source in sources:
            for key, value in source.custom.items():
                if key in SYSTEM_KEYS and custom.setdefault(key, value) != value:
                    raise RecordingError(
                        f"{key} is '{custom[key]}' in {bags[0]} and '{value}' in {source.bag}; valid are bags of one "
                        "system and task"
                    )
                custom.setdefault(key, value)
        custom[ORIGIN] = "merge " + " ".join(map(str, bags))
        copy = stack.enter_context(BagCopy(out, sources, custom))
        seen: set[tuple[str, int, bytes]] = set()
        streams = [source.messages() for source in sources]
        for number, item in enumerate(merged(*streams, key=lambda item: item.record.log_time)):
            key_of = (item.channel.topic, item.record.publish_time, item.record.data)
            if latched_depth(item.schema, item.channel):
                if key_of in seen:
                    continue
                seen.add(key_of)
            copy.add(item)
            if number % 1000 == 0:
                progress()
        return copy.finish()


def without(bag: Path, number: int, out: Path) -> int:
    """Write a bag without one of its episodes, and return the number of copied messages.

    What is latched stays, also if it was received during the episode.

    Raises:
        RecordingError: there is no such episode, or it is the only one.
    """
    with BagReader(bag) as reader:
        chosen(reader, number)
        first, last = reader.span_ns
        parts = list(pairwise([first, *_borders(reader), last + 1]))
    if len(parts) < 2:
        raise RecordingError(f"episode {number} is the only one of bag {bag}; valid is to delete the whole bag")
    begin, end = parts[number]
    with RawBag(bag) as source, BagCopy(out, [source], _custom(source, f"{bag} without {number}", {})) as copy:
        for item in source.messages():
            if not begin <= item.record.log_time < end or latched_depth(item.schema, item.channel):
                copy.add(item)
        return copy.finish()


def _borders(reader: BagReader) -> list[int]:
    """Return where each episode but the first begins: at its preparation, or at its START."""
    episodes = episodes_of(reader)
    prepared = [item.stamp_ns for item in reader.messages([EPISODE_EVENT]) if item.message.kind == PREPARE]
    borders = []
    for before, episode in pairwise(episodes):
        since = before.begin_ns if before.episode is None else (before.episode.end_received_ns or before.begin_ns)
        own = [stamp for stamp in prepared if since < stamp <= episode.begin_ns]
        borders.append(min(own, default=episode.begin_ns))
    return borders


def _custom(source: RawBag, origin: str, about: Mapping[str, str]) -> dict[str, str]:
    return {**about, **source.custom, ORIGIN: origin}


def _renamed(
    source: RawBag, origin: str, about: Mapping[str, str], remapped: Mapping[str, str] | None
) -> dict[str, str]:
    """Return the custom data of a part, with the recorded names that a reader of the bag was told."""
    custom = _custom(source, origin, about)
    if remapped:
        custom[REMAPPED] = json.dumps({**json.loads(custom.get(REMAPPED, "{}")), **remapped})
    return custom


def _carried(source: RawBag, begin: int, end: int) -> list[Copied]:
    """Return what a late subscriber at ``begin`` would have got, in order: the last messages of latched topics.

    A calibration is sent with its images, not latched. The last one is carried where the part has none.
    """
    depths = {channel.topic: latched_depth(schema, channel) for schema, channel in source.channels}
    infos = {channel.topic for schema, channel in source.channels if schema is not None and schema.name == INFO_TYPE}
    missing = infos - {item.channel.topic for item in source.messages(sorted(infos), begin, end)} if infos else set()
    wanted = {topic: depth for topic, depth in depths.items() if depth} | dict.fromkeys(missing, 1)
    kept: dict[str, dict[bytes, Copied]] = {topic: {} for topic in wanted}
    if wanted:
        for item in source.messages(sorted(wanted), None, begin):
            queue = kept[item.channel.topic]
            queue.pop(item.record.data, None)  # of equal messages the last
            queue[item.record.data] = item
            if len(queue) > wanted[item.channel.topic]:
                del queue[next(iter(queue))]
    return sorted((item for queue in kept.values() for item in queue.values()), key=lambda item: item.record.log_time)


def _outside(source: RawBag, recorded: BagEpisode, begin: int, end: int) -> tuple[list[Copied], list[Copied]]:
    """Return the START of an episode if it lies before the part, and its END if it lies behind."""
    if recorded.episode is None:
        return [], []
    events = list(_events(source, recorded))
    return (
        [item for item in events if item.record.log_time < begin],
        [item for item in events if item.record.log_time >= end],
    )


def _events(source: RawBag, recorded: BagEpisode) -> Iterator[Copied]:
    topics = sorted({item.topic for schema, item in source.channels if schema and schema.name == EVENT_TYPE})
    for item in source.messages(topics, recorded.begin_ns, recorded.end_ns + 1):
        if not _foreign_event(item, recorded):
            yield item


def _foreign_event(item: Copied, recorded: BagEpisode) -> bool:
    """Whether a message is an event outside the episode, which would make another episode of the part."""
    is_event = item.schema is not None and item.schema.name == EVENT_TYPE and recorded.episode is not None
    return is_event and not recorded.begin_ns <= item.record.log_time <= recorded.end_ns


def _check_apart(bags: Sequence[Path]) -> None:
    """Raise RecordingError if two bags with episodes overlap in time: their events would be of no episode."""
    spans = []
    for bag in bags:
        with BagReader(bag) as reader:
            if any(item.episode is not None for item in episodes_of(reader)):
                spans.append((*reader.span_ns, bag))
    for (_, end, before), (begin, _, after) in pairwise(sorted(spans)):
        if begin <= end:
            raise RecordingError(
                f"{before} and {after} both hold episodes and overlap in time; valid are bags recorded one by one"
            )
