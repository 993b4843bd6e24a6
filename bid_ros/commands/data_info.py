"""What ``bid data info`` says: what a data set holds, and what becomes of it in other formats."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from bid_ros.core.errors import BidError
from bid_ros.core.tables import markdown_table
from bid_ros.core.task import Task

if TYPE_CHECKING:
    from bid_ros.formats import Column, Contents, Source
    from bid_ros.recording.recorded_count import RecordedCount


def describe(path: str, source: Source, task: Task | None, as_json: bool) -> None:
    """Print what a data set holds, and what each format would make of it.

    Args:
        path: as it was given.
        source: opened data set.
        task: whose data it is; None: unknown.
        as_json: print a report as JSON.
    """
    from bid_ros.formats import FORMATS
    from bid_ros.formats.bag import BagSource
    from bid_ros.formats.base import about_json

    contents = source.contents
    damage = _damage(source)
    told = {name: _told(contents, name, task) for name in FORMATS.names() if FORMATS.find(name).writer is not None}
    latencies = source.latencies() if isinstance(source, BagSource) else ()
    recorded = source.recorded() if isinstance(source, BagSource) else None
    if as_json:
        lost = {name: each.lost for name, each in told.items()}
        fates = {name: each.fates for name, each in told.items()}
        lags = {each.name: each.median_ms for each in latencies}
        about = {"lost": lost, "fates": fates, "damage": damage, "latency_ms": lags}
        counts = {} if recorded is None else {"episodes": recorded.episodes, "successes": recorded.successes}
        print(json.dumps({"path": path, **about_json(contents), **counts, **about}))
    else:
        print(_table(path, contents, told, recorded))
        for bag in recorded.cut if recorded else ():
            print(f"bag {bag} was not closed: it is read up to its last whole message")
        for each in latencies:
            print(f"latency: {each}")
        if damage:
            print(f"cannot be converted: {damage}")


def _damage(source: Source) -> str:
    """Return why the first episode cannot be read, such as pictures of distances; empty if it can, or is of a bag."""
    from bid_ros.formats.convert import check_episode
    from bid_ros.formats.pieces import InPieces

    if isinstance(source, InPieces):
        return ""
    try:
        check_episode(source.contents, next(iter(source.episodes())), 0)
    except BidError as error:
        return str(error)
    return ""


class _Told(NamedTuple):
    """What becomes of a data set in a format.

    Attributes:
        lost: a sentence for each thing that is lost, or the one with which the format refuses all.
        fates: what becomes of each feature, by its name: ``exact``, how it changes, or ``refused``.
    """

    lost: list[str]
    fates: dict[str, str]


def _told(contents: Contents, name: str, task: Task | None) -> _Told:
    """Return what becomes of a data set in the format ``name``."""
    from bid_ros.formats import FORMATS, Options
    from bid_ros.formats.convert import check_commanded

    form, options = FORMATS.find(name), Options(task=task)
    features = [column.name for column in features_of(contents)]
    if form.writer is None:
        return _Told([], {})
    try:
        check_commanded(contents, "the data set")
        form.writer(contents, options)
    except BidError as error:
        return _Told([str(error)], dict.fromkeys(features, "refused"))
    return _Told(form.losses(contents, options), {**dict.fromkeys(features, "exact"), **form.fates(contents, options)})


def features_of(contents: Contents) -> tuple[Column, ...]:
    """Return what a data set holds, the action at the end."""
    return tuple(column for column in (*contents.columns, contents.action) if column.size)


def _names(column: Column) -> str:
    """Return the names of the values, the middle ones of many left out."""
    names = column.names
    return ", ".join(names if len(names) <= 8 else (*names[:3], "...", names[-1]))


def _count(contents: Contents, recorded: RecordedCount | None) -> str:
    """Return how many episodes and rows there are, in words."""
    rows = "rows unknown until they are read" if contents.rows is None else f"{contents.rows} rows"
    if recorded is None:
        episodes = "episodes unknown" if contents.lengths is None else f"{len(contents.lengths)} episodes"
    elif recorded.episodes is None:
        episodes = f"episodes unknown ({recorded.unknown})"
    else:
        ended = "" if recorded.successes is None else f" ({recorded.successes} of them a success)"
        episodes = f"{recorded.episodes} episodes{ended}"
    return f"{episodes}, {rows}"


def _table(path: str, contents: Contents, told: dict[str, _Told], recorded: RecordedCount | None) -> str:
    rate = "rate unknown" if contents.rate_hz is None else f"{contents.rate_hz:g} Hz"
    task = f", task {contents.task}" if contents.task else ""
    lines = [f"{path}: {contents.format}, {_count(contents, recorded)}, {rate}{task}", ""]
    features = []
    for column in features_of(contents):
        kind = f"{column.dtype}, {column.codec}" if column.codec else column.dtype
        features.append((column.name, column.key or column.name, column.shape, kind, _names(column)))
    lines += [
        markdown_table(("feature", "key", "shape", "type", "values"), features),
        "",
        *(f"read otherwise: {sentence}" for sentence in contents.notes),
        *(f"not read: {sentence}" for sentence in contents.left),
    ]
    open_to = [name for name, each in told.items() if "refused" not in each.fates.values()]
    if open_to:
        fates = [
            (column.name, *(told[name].fates[column.name] for name in open_to)) for column in features_of(contents)
        ]
        lines += ["", markdown_table(("feature", *(f"to {name}" for name in open_to)), fates), ""]
    none = "nothing of what is read is lost" if contents.left else "nothing is lost"
    for name, each in told.items():
        refused = "refused: " if name not in open_to else ""
        lines.append(f"to {name}: {refused}{'; '.join(each.lost) or none}")
    return "\n".join(lines)
