"""The project's own file, read and written in a stream."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.cli import main
from bid_ros.core.errors import RecordingError
from bid_ros.formats import convert, load_dataset, mapped, open_source
from bid_ros.formats.base import format_of
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


@pytest.mark.parametrize("name", ["mine", "mine.v2", "mine.npz"])
def test_a_data_set_is_known_by_what_it_holds_whatever_its_name(dataset, task, tmp_path, name):
    dataset.save(tmp_path / name)
    assert open_source(tmp_path / name).contents.format == "npz"
    assert load_dataset(tmp_path / name, task).sha256 == dataset.sha256


def test_only_columns_that_are_wanted_are_read(dataset, tmp_path):
    dataset.save(tmp_path / "set.npz")
    episode = next(open_source(tmp_path / "set.npz").episodes(0, ["gripper_width"]))
    assert list(episode.observations) == ["gripper_width"]


def test_a_file_of_any_name_is_read(dataset, task, tmp_path):
    """``bid data build runs --out data/mine`` writes such a file."""
    dataset.save(tmp_path / "mine")
    assert format_of(tmp_path / "mine") == "npz"
    assert load_dataset(tmp_path / "mine", task).sha256 == dataset.sha256


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


@pytest.mark.parametrize("by", [-1, 1])
def test_episodes_that_are_not_all_rows_are_refused(dataset, tmp_path, by):
    path = tmp_path / "set.npz"
    dataset.save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez(path, **arrays | {"episode_ends": arrays["episode_ends"] + by})
    with pytest.raises(RecordingError, match=rf"has 17 rows; episode_ends says {17 + by}"):
        open_source(path)


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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"actions": lambda values: values.astype(str)}, "'action' of the data set is <U32; valid are numbers"),
        (
            {"actions": lambda values: values.astype(complex)},
            "'action' of the data set is complex128; valid are numbers",
        ),
        ({"stamps_ns": lambda values: values[::-1]}, "the time of row 1 is not after that of row 0; valid are times"),
    ],
)
def test_what_is_no_number_or_goes_back_in_time_is_refused(dataset, task, tmp_path, change, said):
    path = tmp_path / "set.npz"
    dataset.save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    ((name, edit),) = change.items()
    np.savez(path, **arrays | {name: edit(arrays[name])})
    with pytest.raises(RecordingError, match=said):
        convert(mapped(open_source(path), task), tmp_path / "out", "zarr")


def test_a_task_that_is_no_text_is_said_to_be_unknown(dataset, tmp_path, capsys):
    path = tmp_path / "set.npz"
    dataset.save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez(path, **arrays | {"about": np.array(str(arrays["about"]).replace('"task": "small"', '"task": 5'))})
    assert main(["data", "info", str(path)]) == 0
    assert "task 5" in capsys.readouterr().out


def test_a_text_beside_the_numbers_is_left_to_a_person(dataset, tmp_path, capsys):
    path = tmp_path / "set.npz"
    dataset.save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez(path, **arrays | {"observation.word": np.full(17, "pick")})
    assert main(["data", "map", str(path), "--out", str(tmp_path / "task.yaml")]) == 0
    assert "'word' is left out: <U4, no numbers" in capsys.readouterr().err
