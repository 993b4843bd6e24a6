"""The odd inputs of ``shared/cases``: each comes out right, or is refused in one sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from shared_files import shared_file

from bid_ros.core.errors import RecordingError
from bid_ros.core.task import Task, load_task
from bid_ros.formats import Options, convert, mapped, open_source
from bid_ros.system.folder import find_system

EXACT = Options(images="png")


def case(name: str) -> Path:
    return shared_file("cases", name)


def odd(name: str = "odd") -> Task:
    return load_task(case(f"{name}.task.yaml"))


def episodes(path: Path, task: Task | None = None):
    source = open_source(path, task)
    return list((mapped(source, task) if task else source).episodes())


def texts(source):
    return [(item.text, [tuple(run) for run in item.texts]) for item in source.episodes()]


@pytest.mark.parametrize("tasked", [False, True])
def test_timestamps_of_20_hz_in_a_set_of_10_are_resampled_and_said(tmp_path, tasked):
    source = open_source(case("c02_timestamps_20hz_info_10hz"))
    report = convert(mapped(source, odd()) if tasked else source, tmp_path / "set.zarr", "zarr", EXACT)
    assert report.rows == 28 and any("resampled, 28 of 55 rows are taken" in note for note in report.notes)


def test_distances_in_png_are_refused_where_they_are_taken_for_colours(tmp_path):
    path = case("c09_depth16_png")
    with pytest.raises(RecordingError, match=r"picture 0 of 'observation\.images\.depth' has 16 bits a channel"):
        convert(open_source(path), tmp_path / "set.zarr", "zarr", EXACT)
    assert [item.rows for item in episodes(path, odd())] == [30, 25], "a task that does not name them takes the rest"


def test_a_nan_is_named_with_episode_and_row(tmp_path):
    said = r"episode 0: 'observation\.state' is nan in row 3 \(value .*\); 1 of 30 rows have such a value"
    for source in (open_source(case("c12_nan_state")), mapped(open_source(case("c12_nan_state")), odd())):
        with pytest.raises(RecordingError, match=said):
            convert(source, tmp_path / "set.zarr", "zarr", EXACT)


@pytest.mark.parametrize(("name", "file"), [("zarr", "set.zarr"), ("robomimic", "set.hdf5"), ("lerobot_v30", "set")])
def test_two_tasks_in_one_episode_are_kept_by_row(tmp_path, name, file):
    source = open_source(case("c15_two_tasks_in_one_episode"))
    before = texts(source)
    assert len(before[0][1]) == 2 and all(";" not in text for _, text in before[0][1])
    convert(source, tmp_path / file, name, EXACT)
    assert texts(open_source(tmp_path / file)) == before


def test_names_with_dots_and_slashes_survive_zarr_and_back(tmp_path):
    source = open_source(case("c18_dots_slashes"))
    names = {column.name for column in source.contents.columns}
    assert any("/" in name for name in names) and any("." in name for name in names)
    convert(source, tmp_path / "set.zarr", "zarr", EXACT)
    convert(open_source(tmp_path / "set.zarr"), tmp_path / "back", "lerobot_v21", EXACT)
    for before, after in zip(source.episodes(), open_source(tmp_path / "back").episodes(), strict=True):
        assert before.observations.keys() == after.observations.keys() == names
        for name in names:
            np.testing.assert_array_equal(before.observations[name], after.observations[name])


def test_degrees_are_refused_before_training_and_right_with_their_unit():
    path, task = case("c22_degrees"), odd()
    with pytest.raises(RecordingError, match=r"episode 0: 'arm' reaches .*; joints are in rad, at most 2 pi"):
        episodes(path, task)
    assert task.data is not None
    meant = episodes(path, replace(task, data=replace(task.data, unit={"arm": "deg"})))
    plain = episodes(path)
    for turned, told in zip(meant, plain, strict=True):
        np.testing.assert_allclose(turned.actions, np.radians(told.actions.astype(np.float64)))


def test_keys_of_openpi_are_read_with_a_mapping():
    path, task = case("c26_openpi_keys"), odd()
    (first, *_) = episodes(path)
    found = episodes(path, task)
    np.testing.assert_array_equal(found[0].actions, first.actions)


def test_a_bag_without_messages_says_so():
    with pytest.raises(RecordingError) as caught:
        episodes(case("f02_no_messages.bag"), find_system("franka_place").task)
    assert "it holds no message" in str(caught.value) and "take one of these" not in str(caught.value)


def test_an_action_row_too_many_is_the_action_s_fault(tmp_path):
    with pytest.raises(RecordingError, match=r"episode 0: 'actions' has \d+ rows; valid is \d+, one for each row"):
        convert(open_source(case("h01_action_longer.hdf5")), tmp_path / "set.zarr", "zarr", EXACT)


def test_demonstrations_of_two_types_are_refused():
    said = r"'\w+' is float\d\d in data/demo_1 and \w+ in data/demo_0, so perhaps of another scale too; valid is one"
    with pytest.raises(RecordingError, match=said):
        open_source(case("h04_mixed_dtype.hdf5"))
