"""Files beside bags that say when episodes were, and how they ended."""

import csv
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from bid_ros.core.bag_mapping import BagTopics, word
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import RecordingError
from bid_ros.core.settings import load_yaml

EPOCH_S: Final = 1e7  # a table's times below it count from the begin of the bag
SLACK_NS: Final = NANOSECONDS // 2  # by which a time of a table may be outside of the bag
WORDS: Final = {
    **dict.fromkeys(("true", "yes", "1", "1.0", "success", "succeeded"), True),
    **dict.fromkeys(("false", "no", "0", "0.0", "failure", "failed"), False),
}


@dataclass(frozen=True)
class EpisodeSpan:
    """When an episode was.

    Attributes:
        name: its number, from 0 on, or what a table calls it.
        start_ns, end_ns: ns; None: it was begun, and not ended.
        success: as the table says it. None: it does not.
    """

    name: str
    start_ns: int
    end_ns: int | None
    success: bool | None = None


def bag_name(bag: Path) -> str:
    """Return how files call a bag: its name without that of its kind; of one that is called ``bag``, its folder's."""
    name = bag.name.split(".")[0] if bag.is_file() else bag.name
    return bag.parent.name if name == "bag" else name


def found_beside(bag: Path, name: str, what: str) -> Path:
    """Return a file in the folder of a bag, or beside it. Raises RecordingError if it is in neither."""
    places = [bag / name, bag.parent / name] if bag.is_dir() else [bag.parent / name, bag.parent.parent / name]
    for path in places:
        if path.is_file():
            return path
    raise RecordingError(f"{what} {name} does not exist; valid is a file in {places[0].parent} or {places[1].parent}")


def files_state(bag: Path, mapping: BagTopics) -> tuple[str, ...]:
    """Return a line for each file beside a bag that says something of its episodes, which changes with it."""
    found = []
    for name in filter(None, (mapping.episodes.table, mapping.success.file if mapping.success else "")):
        with suppress(RecordingError, OSError):  # one that is missing is said when the bag is read
            path = found_beside(bag, name, "file")
            found.append(f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}")
    return tuple(found)


def read_spans(bag: Path, name: str, span_ns: tuple[int, int]) -> list[EpisodeSpan]:
    """Return the episodes of a table of times.

    Args:
        bag: it is of.
        name: of the file.
        span_ns: times of receipt of the bag's first and last message.

    Raises:
        RecordingError: there is no such file, it is no table, or its times are outside of the bag or overlap.
    """
    path = found_beside(bag, name, "table of times")
    spans: list[EpisodeSpan] = []
    for number, row in enumerate(_of_bag(_rows(path, ("start", "end")), bag, path)):
        start, end = (
            _time(row[column], span_ns, f"{path}: {column} of episode {number}") for column in ("start", "end")
        )
        said = f"{path}: episode {number} from {row['start']} to {row['end']} s"
        if start >= end:
            raise RecordingError(f"{said} has no length; valid is an end after its start")
        if start < span_ns[0] - SLACK_NS or end > span_ns[1] + SLACK_NS:
            length = (span_ns[1] - span_ns[0]) / NANOSECONDS
            epoch = f"{span_ns[0] / NANOSECONDS:.3f} to {span_ns[1] / NANOSECONDS:.3f}"
            raise RecordingError(f"{said} is outside of bag {bag}; valid is 0 to {length:.3f}, or {epoch}")
        if spans and start < (spans[-1].end_ns or 0):
            raise RecordingError(f"{said} overlaps the one before it; valid are episodes in order, one after the other")
        success = row.get("success") or ""
        ended = _success(success, f"{path}: episode {number}") if success else None
        spans.append(EpisodeSpan(row.get("episode") or str(number), start, end, ended))
    return spans


def read_success(bag: Path, name: str, episodes: Sequence[str]) -> list[bool]:
    """Return the success of each episode from a file.

    Args:
        bag: it is of.
        name: of the file, in CSV, JSON or YAML.
        episodes: names of the bag's episodes, in order.

    Raises:
        RecordingError: there is no such file, it has another form, or it is of other episodes.
    """
    path = found_beside(bag, name, "success file")
    if path.suffix == ".csv":
        rows = _of_bag(_rows(path, ("episode", "success")), bag, path)
        pairs: list[tuple[str, Any]] = [(row["episode"], row["success"]) for row in rows]
    else:
        pairs = _pairs(_content(path), bag, path)
    said = [name for name, _ in pairs]
    if sorted(said) != sorted(episodes):
        raise RecordingError(
            f"{path} is of other episodes: it has {_listed(said)}, bag {bag} has {_listed(episodes)}; valid is one "
            "line for each of these"
        )
    ended = {name: _success(value, f"{path}: episode {name}") for name, value in pairs}
    return [ended[name] for name in episodes]


def _listed(names: Sequence[str]) -> str:
    return f"{len(names)} ({', '.join(names[:6])}{', ...' if len(names) > 6 else ''})" if names else "none"


def _rows(path: Path, needed: Sequence[str]) -> list[dict[str, str]]:
    """Return the rows of a CSV file with a head. Raises RecordingError if it lacks a column or a value."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            table = csv.DictReader(file, skipinitialspace=True)
            rows = [{str(key).strip(): (value or "").strip() for key, value in row.items() if isinstance(value, str)}
                    for row in table]  # fmt: skip
            head = [name.strip() for name in table.fieldnames or ()]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RecordingError(f"{path} cannot be read as CSV: {error}") from error
    missing = [name for name in needed if name not in head]
    if missing:
        raise RecordingError(f"{path} lacks the column {missing[0]}; it has {', '.join(head) or 'none'}")
    for number, row in enumerate(rows):
        if empty := [name for name in needed if not row.get(name)]:
            raise RecordingError(f"{path}: row {number} has no {empty[0]}; valid is a value in each")
    return rows


def _of_bag(rows: list[dict[str, str]], bag: Path, path: Path) -> list[dict[str, str]]:
    """Return the rows of a bag, of a table of several."""
    named = [row for row in rows if row.get("bag")]
    if not named:
        return rows
    own = [row for row in named if row["bag"] == bag_name(bag)]
    if not own:
        raise RecordingError(f"{path} has no row of bag '{bag_name(bag)}'; {_bags(row['bag'] for row in named)}")
    return own


def _bags(names: Any) -> str:
    return f"it is of bags {', '.join(dict.fromkeys(map(str, names)))}"


def _content(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text) if path.suffix == ".json" else load_yaml(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise RecordingError(f"{path} cannot be read: {' '.join(str(error).split())}") from error


def _pairs(content: Any, bag: Path, path: Path) -> list[tuple[str, Any]]:
    """Return name and success of each episode: of a mapping or a list, or of that of a bag in a mapping of bags."""
    if isinstance(content, Mapping):
        names = {str(name): value for name, value in content.items()}
        if bag_name(bag) in names:
            content = names[bag_name(bag)]
        elif any(isinstance(value, Mapping | list) for value in names.values()):
            raise RecordingError(f"{path} has no entry of bag '{bag_name(bag)}'; {_bags(names)}")
    if isinstance(content, Mapping):
        return [(str(name), value) for name, value in content.items()]
    values = content if isinstance(content, list) else [content]
    return [(str(number), value) for number, value in enumerate(values)]


def _success(value: Any, said: str) -> bool:
    if word(value) not in WORDS:
        raise RecordingError(f"{said} has success '{value}'; valid are true and false")
    return WORDS[word(value)]


def _time(text: str, span_ns: tuple[int, int], said: str) -> int:
    """Return a time of a table, ns, exactly."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise RecordingError(f"{said} is '{text}'; valid is a number of seconds")
    return round(seconds * NANOSECONDS) + (span_ns[0] if seconds < EPOCH_S else 0)
