from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bid_ros.core.errors import RecordingError
from bid_ros.recording.dataset import Dataset


@pytest.fixture
def dataset(task):
    rng = np.random.default_rng(1)
    observations = {
        item.name: rng.integers(0, 256, (9, *item.shape), np.uint8)
        if item.kind == "image"
        else 0.1 * rng.normal(size=(9, *item.shape))
        for item in task.observation
    }
    return Dataset(
        observations=observations,
        actions=0.1 * rng.normal(size=(9, task.action_dim)),
        stamps_ns=np.arange(9, dtype=np.int64) * task.dt_ns,
        episode_ends=np.array([4, 9], dtype=np.int64),
        labels=("clean", "diverse"),
        seeds=np.array([3, 2**64 - 1], dtype=np.uint64),
        task=task.name,
        task_signature=task.signature(),
    )


def changed(dataset, name, values):
    return replace(dataset, observations={**dataset.observations, name: values})


def test_save_and_load_give_the_same_content(dataset, task, tmp_path):
    path = tmp_path / "new" / "data.npz"
    dataset.save(path)
    loaded = Dataset.load(path)
    assert loaded.sha256 == dataset.sha256
    assert (loaded.labels, loaded.task, loaded.task_signature) == (dataset.labels, task.name, task.signature())
    np.testing.assert_array_equal(loaded.seeds, dataset.seeds)
    for name, values in dataset.observations.items():
        np.testing.assert_array_equal(loaded.observations[name], values)
        assert loaded.observations[name].dtype == values.dtype
    assert [item.name for item in path.parent.iterdir()] == ["data.npz"]
    loaded.validate(task)
    assert (loaded.rows, loaded.episodes, loaded.episode_starts.tolist()) == (9, 2, [0, 4])
    assert loaded.truncated.tolist() == [False, False]


def test_hash_changes_with_any_part_of_the_content(dataset):
    moved = dataset.actions.copy()
    moved[4, 2] += 1e-12
    others = [
        replace(dataset, actions=moved),
        replace(dataset, labels=("clean", "clean")),
        replace(dataset, episode_ends=np.array([5, 9], dtype=np.int64)),
        replace(dataset, truncated=np.array([True, False])),
        replace(dataset, task_signature="0"),
        changed(dataset, "wrist", dataset.observations["wrist"] ^ 1),
    ]
    assert len({dataset.sha256, *(other.sha256 for other in others)}) == 7


def test_a_file_that_may_not_be_read_says_so(dataset, tmp_path, monkeypatch):
    path = tmp_path / "data.npz"
    dataset.save(path)

    def refuse(self, mode):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(RecordingError, match=r"Permission denied: '.*data\.npz'"):
        Dataset.load(path)


def test_damaged_and_missing_files_are_refused(dataset, tmp_path):
    with pytest.raises(RecordingError, match=r"data set .*none\.npz does not exist"):
        Dataset.load(tmp_path / "none.npz")
    path = tmp_path / "data.npz"
    dataset.save(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(RecordingError, match="is damaged or of another kind"):
        Dataset.load(path)
    np.savez(path, state=np.zeros(3), action=np.zeros(3))
    with pytest.raises(RecordingError, match="is no data set of bid: it holds state, action; valid is what bid data"):
        Dataset.load(path)
    np.savez(path)
    with pytest.raises(RecordingError, match="is no data set of bid: it holds nothing; valid"):
        Dataset.load(path)
    path.write_text("words")
    with pytest.raises(RecordingError, match="is damaged or of another kind: it is no whole npz file"):
        Dataset.load(path)
    dataset.save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays["actions"][0, 0] += 1
    np.savez(path, **arrays)
    with pytest.raises(RecordingError, match="its content has another hash than it says"):
        Dataset.load(path)


def test_file_that_cannot_be_written_is_an_error(dataset, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RecordingError, match="cannot be written"):
        dataset.save(tmp_path / "file" / "data.npz")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"actions": np.zeros((8, 10))}, "'actions' has 8 rows; valid is 9"),
        ({"episode_ends": np.array([9, 9])}, r"episode_ends is \[9, 9\]; valid increases"),
        ({"episode_ends": np.array([4, 8])}, r"episode_ends is \[4, 8\]; valid increases"),
        ({"episode_ends": np.array([], dtype=np.int64)}, r"episode_ends is \[\]"),
        ({"labels": ("clean",)}, "1 labels; valid is 2"),
        ({"seeds": np.zeros(3, np.uint64)}, "3 seeds; valid is 2"),
        ({"truncated": np.zeros(3, np.bool_)}, "3 truncated; valid is 2"),
    ],
)
def test_fields_that_disagree_are_refused(dataset, fields, sentence):
    with pytest.raises(RecordingError, match=sentence):
        replace(dataset, **fields)


def test_validate_names_what_is_wrong(dataset, task):
    def refused(broken, sentence, task=task):
        with pytest.raises(RecordingError, match=sentence):
            broken.validate(task)

    dataset.validate(task)
    refused(dataset, "made for task 'small' with other features or rates", replace(task, rate_hz=20.0))
    fewer = {name: values for name, values in dataset.observations.items() if name != "wrist"}
    refused(replace(dataset, observations=fewer), "lacks observation 'wrist'; it has third_person")
    refused(changed(dataset, "wrist", np.zeros((9, 6, 6, 3), np.uint8)), r"'wrist' as uint8 \(9, 6, 6, 3\)")
    refused(changed(dataset, "wrist", np.zeros((9, 6, 8, 3))), r"float64 .* the task says uint8 \(T, 6, 8, 3\)")
    bad = dataset.observations["tool_position"].copy()
    bad[5, 1] = np.nan
    refused(changed(dataset, "tool_position", bad), "'tool_position' is not finite in row 5")
    actions = dataset.actions.copy()
    actions[8, 0] = np.inf
    refused(replace(dataset, actions=actions), "'actions' is not finite in row 8")
    refused(replace(dataset, actions=np.zeros((9, 7))), r"actions \(9, 7\); the task says \(T, 10\)")
    short = replace(dataset, episode_ends=np.array([8, 9], dtype=np.int64))
    refused(short, "episode 1 of the data set has 1 rows; valid is at least observation_steps 2")
