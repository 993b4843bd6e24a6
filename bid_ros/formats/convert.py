"""Conversion of a data set from one format to another: one episode in memory, resumable, whole or not at all."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bid_ros.core.errors import RecordingError
from bid_ros.formats.base import (
    ACTIONS,
    FORMATS,
    NUMBERS,
    Column,
    Contents,
    DataEpisode,
    Options,
    Source,
    Writer,
    about_json,
)
from bid_ros.formats.files import ArrayWriter, EpisodeParts, check_names, read_about, remove, write_about
from bid_ros.formats.pieces import pieces_of
from bid_ros.formats.verify import Verified, verify

Progress = Callable[[int, int], None]


def check_commanded(contents: Contents, what: str) -> None:
    """Raise RecordingError if no column of a data set is its action, as the sentence about ``what`` says."""
    if not contents.action.size:
        keys = ", ".join(column.key or column.name for column in contents.columns) or "nothing else"
        raise RecordingError(
            f"{what} lacks an action: valid is a key {' or '.join(ACTIONS)}; it has {keys}; say which of these it is "
            "in the section data of a task file, and name that with --task"
        )


@dataclass(frozen=True)
class Conversion:
    """Report on a conversion.

    Attributes:
        target: path that was written.
        format: its format.
        episodes, rows: how many it has.
        resumed: episodes that were there from an earlier run.
        lost: one sentence for each thing that the target cannot hold, or that is not read from the source.
        changed: for each column that the target holds otherwise, by its name, how; the others are exact.
        notes: one sentence for each thing that was read otherwise than the source says it.
        compared: episodes that were read again and held against the source.
        unread: rows of these that reading leaves out of what was written; of bags.
        fidelity: see :class:`bid_ros.formats.verify.Verified`.
    """

    target: str
    format: str
    episodes: int
    rows: int
    resumed: int
    lost: tuple[str, ...]
    changed: Mapping[str, str]
    notes: tuple[str, ...]
    compared: int
    unread: int
    fidelity: Mapping[str, tuple[float, float]]


def convert(
    source: Source,
    target: str | Path,
    name: str,
    options: Options | None = None,
    progress: Progress | None = None,
    origin: str = "",
    keep: Path | None = None,
    whole: bool = False,
) -> Conversion:
    """Write a data set in the format ``name``.

    Episodes are written one by one into a folder beside the target. Running a killed conversion again continues after
    the last whole one, and gives the same files. The target appears when it is whole. Of bags, those that are read are
    not read again, whatever bags come or go in between.

    Args:
        source: opened data set, mapped to a task or not.
        target: file or folder to write; there is none yet, unless ``keep`` is given.
        name: format to write.
        options: how it is written; default: ``Options()``.
        progress: called after each episode with the number of the finished episodes and rows.
        origin: path of the source. Parts of another one are not mixed with it.
        keep: folder where the parts stay for the next conversion, which replaces the file ``target``; None: the parts
            are removed when the target is whole.
        whole: hold every episode against what was read, as :func:`bid_ros.formats.verify.verify` does; else a sample.

    Raises:
        RecordingError: the target exists, what was written differs from what was read, the source is damaged or not
            what it says, or the format cannot hold it.
    """
    target, options = Path(target), options or Options()
    form = FORMATS.find(name)
    if form.writer is None:
        valid = [item for item in FORMATS.names() if FORMATS.find(item).writer is not None]
        raise RecordingError(f"data format '{name}' is only read; valid targets are {', '.join(valid)}")
    if keep is None and (target.exists() or target.is_symlink()):
        raise RecordingError(f"{target} exists; name another target, or remove it")
    contents = source.contents
    check_commanded(contents, origin or "the data set")
    check_names(contents, ("action",), "a data set")
    writer = form.writer(contents, options)
    chosen = asdict(replace(options, task=None))  # the contents name the task
    identity = {"origin": origin, "format": name, "options": chosen, "contents": about_json(contents)}
    folder = keep or target.with_name(f".{target.name}.parts")
    parts, rows, resumed = _write_parts(source, writer, folder, identity, progress)
    kept = partial(_kept, writer, parts) if isinstance(writer, ArrayWriter) else None
    verified = _assemble(writer, parts, target, lambda path: verify(source, path, form, options, rows, whole, kept))
    if keep is None:
        remove(folder)
    lost = (*contents.left, *form.losses(contents, options))
    counts = (len(rows), sum(rows), resumed)
    said = (lost, form.fates(contents, options), contents.notes)
    return Conversion(str(target), name, *counts, *said, verified.episodes, verified.left, verified.fidelity)


def _kept(writer: ArrayWriter, parts: Sequence[Path], numbers: Sequence[int]) -> Iterator[DataEpisode]:
    """Yield episodes as they were read, from their parts."""
    return writer.read_parts([parts[at] for at in numbers])


def _write_parts(
    source: Source, writer: Writer, below: Path, identity: Mapping[str, Any], progress: Progress | None
) -> tuple[list[Path], list[int], int]:
    """Write the episodes that are not there yet. Return the folders and rows of every one, and how many were there."""
    every: list[Path] = []
    rows: list[int] = []
    resumed = 0
    for piece in pieces_of(source):
        parts = EpisodeParts.of(below, {**identity, "files": piece.files})
        folders, report, done = parts.found()
        piece.report |= report
        resumed += len(folders)
        rows += [int(read_about(folder)["rows"]) for folder in folders]
        if progress and folders:
            progress(len(rows), sum(rows))
        for episode in () if done else piece.read(piece, len(folders)):
            check_episode(source.contents, episode, len(rows))
            folder = parts.begin(len(folders))
            writer.write_part(episode, folder)
            write_about(episode, folder)
            folders.append(parts.finish(len(folders), piece.report))
            rows.append(episode.rows)
            if progress:
                progress(len(rows), sum(rows))
        if piece.whole:
            parts.close(len(folders), piece.report)
        every += folders
    expected = source.contents.lengths
    if expected is not None and tuple(rows) != expected:
        raise RecordingError(f"the data set has {len(rows)} episodes; it says {len(expected)}")
    if not rows:
        raise RecordingError("the data set has no episode")
    return every, rows, resumed


def _assemble(writer: Writer, parts: Sequence[Path], target: Path, check: Callable[[Path], Verified]) -> Verified:
    """Write the data set beside its place, check it, and put it there."""
    temporary = target.with_name(f".{target.name}.tmp{target.suffix}")
    remove(temporary)
    temporary.parent.mkdir(parents=True, exist_ok=True)
    writer.assemble(parts, temporary)
    try:
        verified = check(temporary)
    except RecordingError:
        remove(temporary)
        raise
    temporary.replace(target)
    return verified


def check_episode(contents: Contents, episode: DataEpisode, number: int) -> None:
    """Raise RecordingError if an episode is not what the contents of its data set say, or has numbers that are none."""
    observed = {len(values) for values in episode.observations.values()}
    if len(observed) == 1 and observed != {len(episode.actions)}:
        key = contents.action.key or contents.action.name
        raise RecordingError(
            f"episode {number}: '{key}' has {len(episode.actions)} rows; valid is {observed.pop()}, one for each row "
            "of what was observed"
        )
    if episode.rows == 0:
        raise RecordingError(f"episode {number} of the data set has no rows")
    if "stamps" in contents.extras and (back := np.flatnonzero(np.diff(episode.stamps_ns) <= 0)).size:
        raise RecordingError(
            f"episode {number}: the time of row {back[0] + 1} is not after that of row {back[0]}; valid are times that "
            "increase"
        )
    for column in contents.columns:
        _check(column, episode.observations.get(column.name), episode.rows, number)
    _check(contents.action, episode.actions, episode.rows, number)
    if contents.lengths is not None and contents.lengths[number : number + 1] != (episode.rows,):
        said = contents.lengths[number] if number < len(contents.lengths) else "no such episode"
        raise RecordingError(f"episode {number} of the data set has {episode.rows} rows; it says {said}")


def _check(column: Column, values: object, rows: int, number: int) -> None:
    shape, dtype = getattr(values, "shape", None), getattr(values, "dtype", None)
    said = f"episode {number}: '{column.key or column.name}'"
    if shape != (rows, *column.shape):
        raise RecordingError(f"{said} has shape {shape}; valid is {(rows, *column.shape)}")
    if np.dtype(dtype).kind not in NUMBERS:
        raise RecordingError(f"{said} is {dtype}; valid are numbers")
    if dtype != column.dtype:
        raise RecordingError(f"{said} is {dtype}, in other episodes {column.dtype}; valid is one type")
    table = np.asarray(values).reshape(rows, -1)
    if dtype.kind == "f" and not np.isfinite(table).all():
        row, at = np.argwhere(~np.isfinite(table))[0]
        name = column.names[at] if column.names else at
        bad = int((~np.isfinite(table)).any(axis=1).sum())
        raise RecordingError(
            f"{said} is {table[row, at]} in row {row} (value {name}); {bad} of {rows} rows have such a value; "
            "valid are finite numbers"
        )
