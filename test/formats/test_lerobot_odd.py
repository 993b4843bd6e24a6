"""Odd names, tasks and types of a LeRobotDataset: carried, or refused; never silently another."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow
import pyarrow.parquet as parquet
import pytest
from odd_sets import Memory, change, counted, edit_info, edit_lines, written

from bid_ros.core.errors import RecordingError
from bid_ros.formats import Column, DataEpisode, Options, convert, open_source

FIRST = "data/chunk-000/episode_000000.parquet"
STATE = "observation.state"
WRIST = "observation.images.wrist"
LIST = pyarrow.list_(pyarrow.float64())


def names_of(path, names, key=STATE):
    """Return the value names of a feature whose ``names`` are these, and what is said."""
    info = json.loads((path / "meta/info.json").read_text())
    info["features"][key]["names"] = names
    edit_info(path, features=info["features"])
    contents = open_source(path).contents
    return next(item.names for item in (*contents.columns, contents.action) if item.key == key), contents.notes


@pytest.mark.parametrize(
    "names",
    [
        ["a", "b"],
        [["a", "b"]],
        [["a"], ["b"]],
        {"motors": ["a", "b"]},
        {"motors": [["a", "b"]]},
        {"left": ["a"], "right": ["b"]},
        {"a": 0, "b": 1},
    ],
)
def test_names_in_any_nesting_are_kept(tmp_path, names):
    path = written(tmp_path / "set", images="png")
    assert names_of(path, names) == (("a", "b"), ())
    assert names_of(path, names, "action") == (("a", "b"), ())
    convert(open_source(path), tmp_path / "out", "lerobot_v30", Options("png"))
    features = json.loads((tmp_path / "out" / "meta/info.json").read_text())["features"]
    assert features["action"]["names"] == ["a", "b"]


def test_names_of_another_number_are_said(tmp_path):
    path = written(tmp_path / "set", images="png")
    assert names_of(path, ["a", "b", "c"]) == ((), ("observation.state has 3 names for 2 values, which are not read",))


@pytest.fixture
def two_tasks(tmp_path):
    """A data set whose first episode is of another task from row 9 on."""
    path = written(tmp_path / "set", images="png")
    (path / "meta/tasks.jsonl").write_text(
        json.dumps({"task_index": 0, "task": "Pick it."}) + "\n" + json.dumps({"task_index": 1, "task": "Drop it."})
    )
    change(path / FIRST, lambda columns: columns.update(task_index=[0] * 9 + [1] * 7))
    edit_lines(
        path / "meta/episodes.jsonl",
        lambda line: line | {"tasks": ["Pick it.", "Drop it."][: 2 - line["episode_index"]]},
    )
    return path


RUNS = ((0, "Pick it."), (9, "Drop it."))


@pytest.mark.parametrize(
    ("name", "target"),
    [("lerobot_v30", "out"), ("lerobot_v21", "out"), ("zarr", "out.zarr"), ("robomimic", "out.hdf5")],
)
def test_two_tasks_in_one_episode_are_kept_by_row(two_tasks, tmp_path, name, target):
    convert(open_source(two_tasks), tmp_path / target, name, Options("png"))
    for path in (two_tasks, tmp_path / target):
        first, second = open_source(path).episodes()
        assert (first.text, tuple(map(tuple, first.texts))) == ("Pick it.", RUNS)
        assert (second.text, tuple(second.texts)) == ("Pick it.", ())


def test_a_task_without_a_text_is_refused(two_tasks):
    change(two_tasks / FIRST, lambda columns: columns.update(task_index=[0] * 9 + [4] * 7))
    with pytest.raises(RecordingError, match="episode 0 has task_index 4; valid in this data set are 0, 1"):
        list(open_source(two_tasks).episodes())


def test_two_features_of_one_name_are_told_apart(tmp_path):
    path = written(tmp_path / "set", images="png")
    info = json.loads((path / "meta/info.json").read_text())
    info["features"]["observation.wrist"] = info["features"][STATE]
    edit_info(path, features=info["features"])
    contents = open_source(path).contents
    assert [(item.name, item.key) for item in contents.columns if "wrist" in item.key] == [
        ("wrist", "observation.images.wrist"),
        ("observation.wrist", "observation.wrist"),
    ]
    assert contents.notes == (
        "observation.wrist is called observation.wrist: observation.images.wrist has the name wrist",
    )


@pytest.mark.parametrize("name", ["cam.left/rgb", "100% é", "..", "a//b"])
@pytest.mark.parametrize(
    ("form", "target", "images"),
    [
        ("zarr", "out.zarr", "png"),
        ("zarr", "out.zarr.zip", "png"),
        ("robomimic", "out.hdf5", "png"),
        ("lerobot_v21", "out", "png"),
        ("lerobot_v30", "out", "video"),
    ],
)
def test_any_name_survives_or_is_refused(tmp_path, form, target, images, name):
    plain = counted((4,))
    state, wrist = plain.contents.columns
    (episode,) = plain.held
    columns = (Column(f"{name}_force", (2,), "float32"), Column(name, wrist.shape, "uint8", image=True), state)
    observed = {f"{name}_force": episode.actions + 1, name: episode.observations["wrist"], "state": episode.actions}
    source = Memory(columns, plain.contents.action, [DataEpisode(observed, episode.actions, episode.stamps_ns)])
    try:
        convert(source, tmp_path / target, form, Options(images))
    except RecordingError as error:
        assert name == "a//b" and form.startswith("lerobot") and name in str(error)
        assert not (tmp_path / target).exists()
        return
    found = open_source(tmp_path / target)
    assert {item.name for item in found.contents.columns} == set(observed)
    (again,) = found.episodes()
    np.testing.assert_array_equal(again.observations[f"{name}_force"], observed[f"{name}_force"])
    np.testing.assert_allclose(again.observations[name], observed[name], atol=2)


def stored_as(path, kind, rows):
    """Store the state of the first episode as another type of Arrow."""
    file = path / FIRST
    table = parquet.read_table(file)
    at = table.column_names.index(STATE)
    parquet.write_table(table.set_column(at, pyarrow.field(STATE, kind), pyarrow.array(rows, kind)), file)


PAIRS = [[float(row), float(row)] for row in range(16)]


@pytest.mark.parametrize(
    ("dtype", "kind", "rows", "said"),
    [
        ("float32", LIST, [[0.0, None], *PAIRS[1:]], "'observation.state' lacks 1 values"),
        ("int64", LIST, [[0.0, None], *PAIRS[1:]], "'observation.state' lacks 1 values"),
        ("float32", LIST, [None, *PAIRS[1:]], "'observation.state' lacks 1 values"),
        # Two rows of one and of three values are as many values as two rows of two.
        ("float32", LIST, [[0.0], [1.0, 1.0, 1.0], *PAIRS[2:]], "has rows of 1 and 2 and 3 values; valid is one"),
        ("int64", LIST, [[0.5, 1.0], *PAIRS[1:]], "has 0.5, which is no int64, as info.json says"),
        ("uint8", LIST, [[0.0, 300.0], *PAIRS[1:]], "has 300.0, which is no uint8, as info.json says"),
        ("float32", pyarrow.list_(pyarrow.string()), [["0", "1"]] * 16, "is string; valid are numbers"),
    ],
)
def test_rows_that_are_not_what_info_says_are_refused(tmp_path, dtype, kind, rows, said):
    path = written(tmp_path / "set", images="png")
    info = json.loads((path / "meta/info.json").read_text())
    info["features"][STATE]["dtype"] = dtype
    edit_info(path, features=info["features"])
    stored_as(path, kind, rows)
    with pytest.raises(RecordingError, match=re.escape(said)):
        next(open_source(path).episodes())


def test_whole_numbers_that_are_stored_as_another_type_are_read(tmp_path):
    path = written(tmp_path / "set", images="png")
    info = json.loads((path / "meta/info.json").read_text())
    info["features"][STATE]["dtype"] = "int64"
    edit_info(path, features=info["features"])
    stored_as(path, LIST, PAIRS)
    found = next(open_source(path).episodes()).observations["state"]
    assert found.dtype == np.int64 and found[:, 0].tolist() == list(range(16))


def test_pictures_that_are_no_files_are_refused(tmp_path):
    path = written(tmp_path / "set", images="png")
    table = parquet.read_table(path / FIRST)
    at = table.column_names.index(WRIST)
    plain = [item["bytes"] for item in table.column(WRIST).to_pylist()]
    table = table.set_column(at, pyarrow.field(WRIST, pyarrow.binary()), pyarrow.array(plain, pyarrow.binary()))
    parquet.write_table(table.replace_schema_metadata(None), path / FIRST)
    with pytest.raises(RecordingError, match=r"'observation\.images\.wrist' has no picture in row 0"):
        next(open_source(path).episodes())


@pytest.mark.parametrize("fps", [0, -5, 1e400])
def test_a_rate_that_is_none_is_refused(tmp_path, fps):
    path = written(tmp_path / "set", images="png")
    edit_info(path, fps=fps)
    with pytest.raises(RecordingError, match=f"has fps {fps:g}; valid is a positive number"):
        open_source(path)


@pytest.mark.parametrize("version", ["v21", "v30"])
def test_rows_that_belong_to_no_episode_are_said(tmp_path, version):
    path = written(tmp_path / "set", version, images="png")
    assert open_source(path).contents.left == ()
    if version == "v21":
        edit_lines(path / "meta/episodes.jsonl", lambda line: line | {"length": min(line["length"], 13)})
        file = path / FIRST
    else:
        change(path / "meta/episodes/chunk-000/file-000.parquet", lambda columns: columns.update(length=[13, 12]))
        file = path / "data/chunk-000/file-000.parquet"
    edit_info(path, total_frames=25)
    rows = 16 if version == "v21" else 28
    assert open_source(path).contents.left == (f"3 of {rows} rows of {file} are not read: they belong to no episode",)
