"""Lists the episodes of bags, and shows what one bag or episode holds."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bid_ros.core.outcome import INFRASTRUCTURE
from bid_ros.core.tables import aligned
from bid_ros.core.topics import EPISODE_EVENT
from bid_ros.curation.catalog import BagEpisode, bag_bytes, chosen, count_frames
from bid_ros.recording.reader import BagReader

KINDS: Final = ("PREPARE", "START", "END", "UNDO")
LONGEST: Final = 32  # characters of an outcome in the table
COLUMNS: Final = ("episode", "label", "seed", "begin (UTC)", "s", "outcome", "frames", "MB")


def listed(bag: Path) -> list[dict[str, Any]]:
    """Return one row for each episode of a bag. Raises RecordingError if it cannot be read, or holds no message."""
    with BagReader(bag) as reader:
        episodes = chosen(reader, None)
        size = bag_bytes(bag)
        frames = count_frames(reader, episodes)
        return [row(item, count, size) for item, count in zip(episodes, frames, strict=True)]


def row(recorded: BagEpisode, frames: int, size: int) -> dict[str, Any]:
    """Return what is listed of an episode; the size is that of its bag."""
    event = recorded.episode
    return {
        "bag": str(recorded.bag),
        "number": recorded.number,
        "label": recorded.label,
        "seed": None if event is None else event.seed,
        "begin_ns": recorded.begin_ns,
        "duration_s": round(recorded.duration_s, 3),
        "success": recorded.success,
        "outcome": recorded.outcome,
        "outcome_class": "" if event is None else event.outcome_class,
        "frames": frames,
        "bag_bytes": size,
    }


def utc_time(stamp_ns: int) -> str:
    """Return date and time of day, UTC, to the second."""
    return datetime.fromtimestamp(stamp_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows as a table, and a line about all of them."""
    cells = [
        (
            f"{item['bag']}:{item['number']}",
            item["label"],
            "" if item["seed"] is None else str(item["seed"]),
            utc_time(item["begin_ns"]),
            f"{item['duration_s']:.1f}",
            item["outcome"] if len(item["outcome"]) <= LONGEST else f"{item['outcome'][: LONGEST - 1]}…",
            str(item["frames"]),
            f"{item['bag_bytes'] / 1e6:.1f}" if not item["number"] else "",
        )
        for item in rows
    ]
    good = sum(item["success"] is True for item in rows)
    seconds = sum(item["duration_s"] for item in rows)
    bags = len({item["bag"] for item in rows})
    left = sum(item["outcome_class"] == INFRASTRUCTURE for item in rows)
    counted = f"with success: {good}" + (f", not counted: {left}" if left else "")
    total = f"episodes: {len(rows)}, {counted}, bags: {bags}, {seconds:.0f} s"
    return f"{aligned([COLUMNS, *cells], right={2, 4, 6, 7})}\n{total}"


def shown(bag: Path, number: int | None, remapped: Mapping[str, str], task: str) -> dict[str, Any]:
    """Return what a bag, or one of its episodes, holds.

    Args:
        bag: path of the bag.
        number: only this episode; None: the whole bag.
        remapped: recorded names, as BagReader takes them.
        task: name of its task, empty if it is not known.

    Raises:
        RecordingError: the bag cannot be read, or has no such episode.
    """
    with BagReader(bag, remapped) as reader:
        episodes = chosen(reader, number)
        begin, end = reader.span_ns if number is None else (episodes[0].begin_ns, episodes[0].end_ns)
        counts = dict.fromkeys(reader.topics, 0)
        if number is None:
            counts |= reader.counts
        else:
            for item in reader.raw(None, begin, end + 1):
                counts[item.topic] += 1
        seconds = max((end - begin) / 1e9, 1e-9)
        topics = {
            name: {"type": reader.topics[name], "count": count, "rate_hz": round(count / seconds, 1)}
            for name, count in counts.items()
        }
        return {
            "bag": str(bag),
            "complete": reader.was_complete,
            "definitions": reader.has_definitions,
            "task": task,
            "custom": reader.custom,
            "begin_ns": begin,
            "duration_s": round(seconds, 3),
            "episodes": [
                row(item, count, bag_bytes(bag))
                for item, count in zip(episodes, count_frames(reader, episodes), strict=True)
            ],
            "events": _events(reader, begin, end),
            "topics": topics,
        }


def _described(custom: Mapping[str, str]) -> list[str]:
    """Return a line for each of a bag's custom data; of the files of its system only the names."""
    files = [name for name, text in custom.items() if "\n" in text]
    lines = [f"{name}: {text}" for name, text in custom.items() if text and name not in ("task", *files)]
    return [*lines, *([f"files: {', '.join(files)}"] if files else [])]


def _events(reader: BagReader, begin: int, end: int) -> list[dict[str, Any]]:
    return [
        {
            "at_s": round((item.stamp_ns - begin) / 1e9, 3),
            "kind": KINDS[item.message.kind] if item.message.kind < len(KINDS) else str(item.message.kind),
            "episode": int(item.message.episode),
            "outcome": str(item.message.outcome),
        }
        for item in reader.messages([EPISODE_EVENT], begin, end + 1)
    ]


def shown_text(about: Mapping[str, Any]) -> str:
    """Return what :func:`shown` found as text."""
    complete = "" if about["complete"] else ", not closed by its recorder: bid episodes repair restores its index"
    without = "" if about["definitions"] else ", without definitions: those of ROS 2 Jazzy are taken"
    task = about["task"] or "not known"
    lines = [
        f"{about['bag']}: {about['duration_s']:.1f} s from {utc_time(about['begin_ns'])} UTC{complete}{without}",
        f"task: {task}",
        *_described(about["custom"]),
        "",
        table(about["episodes"]),
        "",
    ]
    events = [
        f"{item['at_s']:8.2f} s  {item['kind']:8} episode {item['episode']}  {item['outcome']}".rstrip()
        for item in about["events"]
    ]
    cells = [("topic", "type", "messages", "Hz")]
    cells += [
        (name, item["type"], str(item["count"]), f"{item['rate_hz']:.1f}") for name, item in about["topics"].items()
    ]
    return "\n".join([*lines, *(events and [*events, ""]), aligned(cells, right={2, 3})])
