"""The project's own file, read and written in a stream."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.core.errors import RecordingError
from bid_ros.formats import convert, load_dataset, open_source
from bid_ros.recording.dataset import Dataset


def test_episodes_are_those_of_the_data_set(dataset, tmp_path):
    dataset.save(tmp_path / "set.npz")
    source = open_source(tmp_path / "set.npz")
    assert (source.contents.lengths, source.contents.task) == ((5, 8, 4), "small")
    for start in (0, 2):
        for number, episode in enumerate(source.episodes(start), start):
            rows = slice(dataset.episode_starts[number], dataset.episode_ends[number])
            np.testing.assert_array_equal(episode.observations["wrist"], dataset.observations["wrist"][rows])
            np.testing.assert_array_equal(episode.actions, dataset.actions[rows])
            np.testing.assert_array_equal(episode.stamps_ns, dataset.stamps_ns[rows])
            said = (dataset.labels[number], int(dataset.seeds[number]), bool(dataset.truncated[number]))
            assert (episode.label, episode.seed, episode.truncated) == said


def test_only_columns_that_are_wanted_are_read(dataset, tmp_path):
    dataset.save(tmp_path / "set.npz")
    episode = next(open_source(tmp_path / "set.npz").episodes(0, ["gripper_width"]))
    assert list(episode.observations) == ["gripper_width"]


def test_the_file_needs_a_task(tmp_path, written):
    with pytest.raises(RecordingError, match="holds what a task observes and commands; name the task with --task"):
        from dataclasses import replace

        source = open_source(written("robomimic"))
        source.contents = replace(source.contents, signature="")
        convert(source, tmp_path / "other.npz", "npz")


def test_damaged_files_are_refused(dataset, task, tmp_path):
    path = tmp_path / "set.npz"
    dataset.save(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    for read in (lambda: open_source(path), lambda: load_dataset(path, task)):
        with pytest.raises(RecordingError, match=r"set\.npz is damaged or of another kind"):
            read()
    path.write_bytes(content[:3000] + bytes(100) + content[3100:])
    with pytest.raises(RecordingError, match=r"set\.npz is damaged"):
        list(open_source(path).episodes())


def test_a_file_of_another_version_is_refused(dataset, tmp_path):
    path = tmp_path / "set.npz"
    dataset.save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays["about"] = np.array(str(arrays["about"]).replace('"format": 1', '"format": 7'))
    np.savez(path, **arrays)
    with pytest.raises(RecordingError, match="has format 7; valid is 1"):
        open_source(path)
    with pytest.raises(RecordingError):
        Dataset.load(path)
