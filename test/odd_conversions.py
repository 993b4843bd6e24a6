"""Odd data sets of all formats, drawn by hypothesis: a conversion is right, says what changes, or is refused."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from odd_sets import Memory, change, edit_info, edit_lines, keep, seen, written

from bid_ros.core.errors import RecordingError
from bid_ros.formats import Column, DataEpisode, Options, convert, open_source
from bid_ros.formats.base import EXTRAS
from bid_ros.formats.lerobot.layout import NUMBERS

NAMES = (
    "arm",
    "a",
    "a.b",
    "cam/rgb",
    "100%",
    "%2F",
    "état",
    "images.x",
    "state",
    ".x",
    "x y",
    "observation.x",
    "action",
)
TEXTS = ("", "Pick it.", "Drop it.\nThen stop.", "把它拿起来", "task")
TARGETS = (
    ("lerobot_v30", "set", "png"), ("lerobot_v21", "set", "png"), ("lerobot_v30", "set", "video"),
    ("lerobot_v21", "set", "video"), ("zarr", "set.zarr", "png"), ("zarr", "set.zarr.zip", "png"),
    ("robomimic", "set.hdf5", "png"), ("npz", "set.npz", "png"),
)  # fmt: skip
COARSEST = 60.0  # mean difference of a picture of noise that a video may have: its colours are halved


def values(draw, rng: np.random.Generator, rows: int, column: Column) -> np.ndarray:
    """Return random numbers of a column, the ends of its type among them, and seldom one that is none."""
    kind, shape = np.dtype(column.dtype), (rows, *column.shape)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind.kind in "iu":
        ends = np.iinfo(kind)
        return rng.integers(ends.min, ends.max, shape, kind, endpoint=True)
    found = rng.normal(scale=10.0 ** rng.integers(-6, 4), size=shape).astype(kind)
    special = [0.0, -0.0, min(1e30, np.finfo(kind).max), np.finfo(kind).tiny]
    found.reshape(-1)[rng.integers(found.size)] = draw(st.sampled_from(special))
    if draw(st.integers(0, 40)) == 0:
        found.reshape(-1)[rng.integers(found.size)] = np.nan
    return found


def a_column(draw, name: str) -> Column:
    if draw(st.integers(0, 2)) == 0:
        shape = draw(st.sampled_from([(4, 6, 3), (5, 7, 3), (16, 16, 3)]))
        return Column(name, shape, draw(st.sampled_from(["uint8", "uint8", "uint8", "float32"])), image=True)
    shape = draw(st.sampled_from([(), (1,), (3,), (2, 2), (1, 2, 2)]))
    count = int(np.prod(shape))
    names = draw(
        st.sampled_from([(), tuple(f"{name}.{at}" for at in range(count)), tuple(f"v{at}/ü" for at in range(count))])
    )
    return Column(name, shape, draw(st.sampled_from([*NUMBERS, "uint32"])), names=names)


def an_episode(draw, rng: np.random.Generator, columns: list[Column], action: Column) -> DataEpisode:
    rows = draw(st.integers(1, 5))
    text, person = draw(st.sampled_from(TEXTS)), draw(st.booleans())
    runs = ((0, text), (rows - 1, draw(st.sampled_from(TEXTS[1:]))))
    return DataEpisode(
        {item.name: values(draw, rng, rows, item) for item in columns},
        values(draw, rng, rows, action),
        int(draw(st.sampled_from([0, 1_700_000_000_123_456_789]))) + np.cumsum(rng.integers(1, 10**9, rows)),
        draw(st.sampled_from(["", "clean", "ä b"])),
        draw(st.sampled_from([0, 7, 2**64 - 1])),
        draw(st.booleans()),
        draw(st.sampled_from([None, True, False])),
        text,
        runs if rows > 1 and text and runs[1][1] != text and draw(st.booleans()) else (),
        ((0, 1),) if person else (),
    )


@st.composite
def data_sets(draw) -> Memory:
    """Draw a data set in memory."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    columns = [a_column(draw, name) for name in names]
    action = Column(
        "action", draw(st.sampled_from([(1,), (3,), ()])), draw(st.sampled_from(["float32", "float64", "int64"]))
    )
    episodes = [an_episode(draw, rng, columns, action) for _ in range(draw(st.integers(1, 3)))]
    extras = frozenset(draw(st.sets(st.sampled_from(sorted(EXTRAS)))))
    named = draw(st.booleans())
    return Memory(
        columns,
        action,
        episodes,
        rate_hz=draw(st.sampled_from([10.0, 10.0, 30.0, 12.5, None])),
        extras=extras,
        **({"task": "small", "signature": "s"} if named else {}),
    )


def check_conversion(source: Memory, target: tuple[str, str, str]) -> None:
    """Convert a data set, and hold the result against it without the code that does so in a conversion."""
    name, file, images = target
    options = Options(images)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file
        try:
            report = convert(source, path, name, options)
        except RecordingError as error:
            assert "\n" not in str(error) and "a fault of bid_ros" not in str(error), error
            assert not path.exists()
            return
        again = open_source(path)
        _check_columns(source, again, report.changed)
        for extra in source.contents.extras:
            if not any(EXTRAS[extra] in sentence for sentence in report.lost):
                _check_extra(source, again, extra)


def _check_columns(source: Memory, again, changed) -> None:
    found = {item.name: item for item in again.contents.columns}
    joined = [item for item in source.contents.columns if "of observation.state" in changed.get(item.name, "")]
    for before, after in zip(source.held, again.episodes(), strict=True):
        rows = before.rows
        for column in source.contents.columns:
            first, how = before.observations[column.name], changed.get(column.name, "")
            if "H.264" in how:
                assert np.abs(after.observations[column.name].astype(float) - first).mean() < COARSEST
            elif column not in joined:
                second = after.observations[column.name]
                assert np.array_equal(second.reshape(rows, -1), first.reshape(rows, -1)), column
                if not how:
                    assert (second.dtype, second.shape) == (first.dtype, first.shape), column
                    assert column.names == found[column.name].names or not found[column.name].names
        if joined:
            whole = np.concatenate([before.observations[item.name].reshape(rows, -1) for item in joined], axis=1)
            assert np.array_equal(after.observations["state"], whole)
            assert len(found["state"].names) == whole.shape[1] or not all(item.names for item in joined)
        assert np.array_equal(after.actions.reshape(before.actions.shape), before.actions)


def _check_extra(source: Memory, again, extra: str) -> None:
    names = {"stamps": ("stamps_ns",), "text": ("text", "texts")}.get(extra, (extra,))
    for before, after in zip(source.held, again.episodes(), strict=True):
        for name in names:
            first, second = getattr(before, name), getattr(after, name)
            assert np.array_equal(np.array(first, dtype=object), np.array(second, dtype=object)), (extra, first, second)


@st.composite
def edits(draw) -> dict:
    """Draw what is done to the rows of a data set of LeRobot: its version, times, rows that are missing, drift."""
    lengths = draw(st.lists(st.integers(2, 9), min_size=2, max_size=3))
    first = lengths[0]
    return {
        "version": draw(st.sampled_from(["v21", "v30"])),
        "images": draw(st.sampled_from(["png", "video"])),
        "lengths": lengths,
        "pace": draw(st.sampled_from([1.0, 1.0, 0.5, 2 / 3, 0.95, 1.05, 2.0])),
        "jump": draw(st.sampled_from([0.0, 0.0, 3.0, -0.5, 0.05])),
        "at": draw(st.integers(1, first - 1)),
        "gone": draw(st.sets(st.integers(0, first - 1), max_size=max(0, first - 2))),
        "numbered": draw(st.booleans()),
        "drift": draw(st.sampled_from([0.0, 0.0, 0.1, -0.1, 0.03, 0.25])),
    }


def check_edited(drawn: dict) -> None:
    """Edit a data set of LeRobot, and require that each row keeps its picture and its time, or that it is refused."""
    lengths, old = drawn["lengths"], drawn["version"] == "v21"
    first = lengths[0]
    rows = [row for row in range(first) if row not in drawn["gone"]]
    number = np.arange(first)
    stamps = number / 10 * drawn["pace"] + drawn["jump"] * (number >= drawn["at"])

    def edit(columns) -> None:
        columns["timestamp"][:first] = stamps.tolist()
        keep(columns, [*rows, *range(first, len(columns["timestamp"]))])
        if drawn["numbered"]:
            columns["frame_index"][: len(rows)] = range(len(rows))

    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder) / "set", drawn["version"], drawn["images"], lengths)
        change(path / ("data/chunk-000/" + ("episode_000000.parquet" if old else "file-000.parquet")), edit)
        edit_info(path, total_frames=sum(lengths) - first + len(rows))
        if old:
            new = {"length": len(rows)}
            edit_lines(path / "meta/episodes.jsonl", lambda line: line | (new if line["episode_index"] == 0 else {}))
        else:
            change(
                path / "meta/episodes/chunk-000/file-000.parquet",
                lambda columns: _shorten(columns, len(rows), drawn["drift"]),
            )
        true = {row: stamps[row] for row in rows} | {row: row / 10 for row in range(first, sum(lengths))}
        try:
            source = open_source(path)
            episodes = list(source.episodes())
        except RecordingError as error:
            assert "\n" not in str(error), error
            return
        taken = []
        for item in episodes:
            own = item.observations["state"][:, 0].astype(int).tolist()
            assert seen(item.observations["wrist"]) == own == item.actions[:, 0].astype(int).tolist(), drawn
            times = np.array([true[row] for row in own])
            assert np.abs(times - times[0] - np.arange(len(own)) / 10).max() < 0.076, drawn
            taken += own
        if taken != [*rows, *range(first, sum(lengths))]:
            assert source.contents.notes, drawn


def _shorten(columns, length: int, drift: float) -> None:
    columns["length"][0] = length
    ends = np.cumsum(columns["length"]).tolist()
    columns["dataset_from_index"], columns["dataset_to_index"] = [0, *ends[:-1]], ends
    key = "videos/observation.images.wrist/from_timestamp"
    if key in columns:
        columns[key] = [begin + drift * (at > 0) for at, begin in enumerate(columns[key])]


def run(number: int, conversions: int, edited: int) -> None:
    """Check so many data sets of each kind, drawn from a seed."""
    _drawn(number, conversions, given(data_sets(), st.sampled_from(TARGETS)), check_conversion)
    _drawn(number, edited, given(edits()), check_edited)


def _drawn(number: int, count: int, drawing: Callable, check: Callable) -> None:
    every = [HealthCheck.too_slow, HealthCheck.data_too_large]
    limits = settings(max_examples=count, database=None, deadline=None, suppress_health_check=every, print_blob=True)
    seed(number)(limits(drawing(check)))()
