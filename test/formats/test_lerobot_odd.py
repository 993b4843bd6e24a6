"""Odd names, tasks and types of a LeRobotDataset: carried, or refused; never silently another."""

from __future__ import annotations

import json

import numpy as np
import pytest
from odd_sets import Memory, change, counted, edit_info, edit_lines, written

from bid_ros.core.errors import RecordingError
from bid_ros.formats import Column, DataEpisode, Options, convert, open_source

FIRST = "data/chunk-000/episode_000000.parquet"
STATE = "observation.state"


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
