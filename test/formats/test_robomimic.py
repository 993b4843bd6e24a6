"""The HDF5 file of robomimic."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest

from bid_ros.core.errors import RecordingError
from bid_ros.formats import convert, open_source


def make(path, demos=(0, 2, 10), change=lambda file: None):
    """Write a file as robomimic does: images, states, rewards, and demonstrations in any order of names."""
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"] = json.dumps({"env_name": "Lift", "type": 1, "env_kwargs": {"control_freq": 20}})
        for number in demos:
            demo = data.create_group(f"demo_{number}")
            demo.attrs["num_samples"] = 3
            demo["actions"] = np.full((3, 7), float(number))
            demo["obs/robot0_eef_pos"] = np.full((3, 3), float(number))
            demo["obs/agentview_image"] = np.full((3, 8, 8, 3), number, np.uint8)
            demo["states"], demo["rewards"], demo["dones"] = np.zeros((3, 9)), np.zeros(3), np.zeros(3)
        file["mask/train"] = np.array([b"demo_0"])
        change(file)
    return path


def test_demonstrations_come_in_the_order_of_their_numbers(tmp_path):
    source = open_source(make(tmp_path / "low_dim.hdf5"))
    assert (source.contents.format, source.contents.lengths, source.contents.rate_hz) == ("robomimic", (3, 3, 3), 20)
    assert [item.actions[0, 0] for item in source.episodes()] == [0, 2, 10]
    assert source.contents.left == ("dones, rewards, states of each demonstration are not read",)
    picture = next(column for column in source.contents.columns if column.image)
    assert (picture.key, picture.shape, picture.dtype) == ("obs/agentview_image", (8, 8, 3), "uint8")
    np.testing.assert_array_equal(next(source.episodes(1)).observations["agentview_image"], np.full((3, 8, 8, 3), 2))


def test_the_file_has_what_robomimic_reads(written, dataset):
    with h5py.File(written("robomimic")) as file:
        data = file["data"]
        assert data.attrs["total"] == 17
        assert json.loads(data.attrs["env_args"]) == {
            "env_name": "small",
            "type": 2,
            "env_kwargs": {"control_freq": 10.0},
        }
        assert sorted(data) == ["demo_0", "demo_1", "demo_2"]
        assert [data[name].attrs["num_samples"] for name in sorted(data)] == [5, 8, 4]
        assert data["demo_1/dones"][:].tolist() == [0] * 7 + [1]
        assert data["demo_1/obs/wrist"].chunks == (1, 32, 48, 3)
        np.testing.assert_array_equal(data["demo_1/actions"][:], dataset.actions[5:13])


def no_actions(file):
    del file["data/demo_2/actions"]


def no_observation(file):
    del file["data/demo_2/obs/robot0_eef_pos"]


def no_demo(file):
    del file["data"]


def shorter(file):
    del file["data/demo_10/obs/robot0_eef_pos"]
    file["data/demo_10/obs/robot0_eef_pos"] = np.zeros((2, 3))


def more_actions(file):
    del file["data/demo_2/actions"]
    file["data/demo_2/actions"] = np.zeros((4, 7))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (more_actions, "episode 1: 'actions' has 4 rows; valid is 3, one for each row of what was observed"),
        (no_actions, "data/demo_2 lacks actions or obs; it has dones, obs, rewards, states"),
        (no_observation, "data/demo_2 lacks obs/robot0_eef_pos"),
        (no_demo, "has no demonstrations; valid is a file with data/demo_0"),
        (shorter, r"episode 2: 'obs/robot0_eef_pos' has shape \(2, 3\); valid is \(3, 3\)"),
    ],
)
def test_a_file_that_is_not_whole_is_refused(tmp_path, change, said):
    path = make(tmp_path / "set.hdf5", change=change)
    with pytest.raises(RecordingError, match=said):
        convert(open_source(path), tmp_path / "set.zarr", "zarr")
    assert not (tmp_path / "set.zarr").exists()


def test_a_truncated_file_is_refused(tmp_path):
    path = make(tmp_path / "set.hdf5")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(RecordingError, match=r"set\.hdf5 is damaged or of another kind"):
        open_source(path)


def test_arrays_in_groups_are_read_by_their_path(tmp_path):
    def nest(file):
        for demo in file["data"].values():
            demo["obs/cam/left"] = np.ones((3, 2))

    convert(open_source(make(tmp_path / "set.hdf5", change=nest)), tmp_path / "out.zarr", "zarr")
    for path in ("set.hdf5", "out.zarr"):
        np.testing.assert_array_equal(
            next(open_source(tmp_path / path).episodes()).observations["cam/left"], np.ones((3, 2))
        )


def test_what_only_later_demonstrations_hold_is_said(tmp_path):
    def more(file):
        file["data/demo_2/obs/force"] = np.zeros((3, 6))

    contents = open_source(make(tmp_path / "set.hdf5", change=more)).contents
    assert "obs/force of some demonstrations is not read: data/demo_0 lacks it" in contents.left


def test_demonstrations_of_different_types_are_refused(tmp_path):
    def scale(file):
        del file["data/demo_2/obs/agentview_image"]
        file["data/demo_2/obs/agentview_image"] = np.full((3, 8, 8, 3), 0.5, np.float32)

    with pytest.raises(
        RecordingError,
        match="'agentview_image' is float32 in data/demo_2 and uint8 in data/demo_0, so perhaps of another",
    ):
        open_source(make(tmp_path / "set.hdf5", change=scale))


def test_float_pictures_of_different_scales_are_refused(tmp_path):
    def scale(file):
        for number, most in ((0, 0.0), (2, 255.0), (10, 1.0)):  # black ones have any scale
            del file[f"data/demo_{number}/obs/agentview_image"]
            file[f"data/demo_{number}/obs/agentview_image"] = np.full((3, 8, 8, 3), most, np.float32)

    source = open_source(make(tmp_path / "set.hdf5", change=scale))
    with pytest.raises(
        RecordingError, match="are 0 to 1 in data/demo_10, and go beyond 1 in data/demo_2; valid is one"
    ):
        convert(source, tmp_path / "out.zarr", "zarr")


def test_a_demonstration_without_rows_is_refused(tmp_path):
    def change(file):
        demo = file["data/demo_2"]
        for key in ("actions", "obs/robot0_eef_pos", "obs/agentview_image"):
            values = demo[key][:0]
            del demo[key]
            demo[key] = values

    with pytest.raises(RecordingError, match="episode 1 has no rows; valid is one row or more"):
        open_source(make(tmp_path / "odd.hdf5", change=change))


def test_text_is_no_number(tmp_path):
    """NumPy would read numbers from it, cut off where the text is."""

    def change(file):
        for demo in file["data"].values():
            demo["obs/said"] = np.array([[b"1.25e-05"]] * 3)

    source = open_source(make(tmp_path / "odd.hdf5", change=change))
    with pytest.raises(RecordingError, match=r"'obs/said' is \|S8; valid are numbers"):
        convert(source, tmp_path / "odd.zarr", "zarr")
    assert not (tmp_path / "odd.zarr").exists()


def test_numbers_in_another_order_of_bytes_are_read(tmp_path):
    def turn(file):
        for demo in file["data"].values():
            values = demo["actions"][:]
            del demo["actions"]
            demo["actions"] = values.astype(">f4")

    convert(open_source(make(tmp_path / "set.hdf5", change=turn)), tmp_path / "out.zarr", "zarr")


def test_names_of_values_that_are_numbers_are_texts(tmp_path):
    def name(file):
        file["data/demo_0/actions"].attrs["names"] = "[1, 2, 3, 4, 5, 6, 7]"

    assert open_source(make(tmp_path / "set.hdf5", change=name)).contents.action.names == tuple("1234567")
