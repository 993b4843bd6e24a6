"""The replay buffer of Diffusion Policy."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import zarr
from zarr.storage import ZipStore

from bid_ros.bench.pusht.data import human_dataset
from bid_ros.core.errors import RecordingError
from bid_ros.core.settings import read_yaml
from bid_ros.core.task import load_task, parse_task
from bid_ros.formats import Options, convert, mapped, open_source
from bid_ros.formats.loading import collected


def pusht(root, **data):
    return parse_task(read_yaml(root / "config" / "pusht.yaml", "task file") | {"data": data})


def make(path, **changes):
    """Write a replay buffer as Diffusion Policy does."""
    root = zarr.open_group(str(path), mode="w", zarr_format=2)
    arrays = {"data/action": np.zeros((6, 2), np.float32), "data/state": np.ones((6, 5)), "meta/episode_ends": [2, 6]}
    for name, values in (arrays | changes).items():
        if values is not None:
            group, _, key = name.partition("/")
            root.require_group(group).create_array(key, data=np.asarray(values))
    return path


def test_the_published_replay_buffer_is_that_of_its_file_without_pictures(shared, root):
    folder = shared / "data" / "pusht"
    task = pusht(root, observation={"block_keypoints": "keypoint", "agent_position": "state[0:2]"})
    source = mapped(open_source(folder / "pusht_cchi_v7_replay.zarr.zip"), task)
    dataset = collected(source)
    dataset.validate(task)
    plain = human_dataset(folder / "pusht_cchi_v7_lowdim.npz", load_task(root / "config" / "pusht.yaml"))
    assert dataset.episode_ends.tolist() == plain.episode_ends.tolist()
    np.testing.assert_array_equal(dataset.actions, plain.actions)
    np.testing.assert_array_equal(dataset.observations["agent_position"], plain.observations["agent_position"])
    with np.load(folder / "pusht_cchi_v7_lowdim.npz") as published:
        points = published["keypoint"].reshape(len(plain.actions), -1)
    np.testing.assert_array_equal(dataset.observations["block_keypoints"], points)


def test_the_pictures_of_the_published_replay_buffer_become_bytes(shared, root):
    task = parse_task(
        read_yaml(root / "config" / "pusht.yaml", "task file")
        | {"observation": [{"name": "img", "kind": "image", "shape": [96, 96, 3]}]}
    )
    whole = open_source(shared / "data" / "pusht" / "pusht_cchi_v7_replay.zarr.zip")
    plain, found = next(whole.episodes(205)), next(mapped(whole, task).episodes(205))
    assert found.observations["img"].dtype == np.uint8
    np.testing.assert_array_equal(found.observations["img"], plain.observations["img"])


def test_the_files_are_those_that_diffusion_policy_reads(written, dataset):
    path = written("zarr")
    assert json.loads((path / ".zgroup").read_text()) == {"zarr_format": 2}
    array = json.loads((path / "data" / "wrist" / ".zarray").read_text())
    assert (array["zarr_format"], array["dtype"], array["compressor"]["id"]) == (2, "|u1", "blosc")
    root = zarr.open_group(str(path), mode="r")
    assert root["meta/episode_ends"][:].tolist() == dataset.episode_ends.tolist()
    # Its ReplayBuffer asserts that each array below data has a row for each step.
    assert {array.shape[0] for _, array in root["data"].arrays()} == {17}


def test_a_zip_file_is_the_same_folder(written):
    zipped = zarr.open_group(ZipStore(written("zarr_zip"), mode="r"), mode="r")
    plain = zarr.open_group(str(written("zarr")), mode="r")
    for name, array in plain["data"].arrays():
        np.testing.assert_array_equal(zipped["data"][name][:], array[:])


def test_rows_of_more_than_a_chunk_are_whole(tmp_path, monkeypatch):
    values = np.arange(60.0).reshape(30, 2)
    make(tmp_path / "a", **{"data/action": values, "data/state": values, "meta/episode_ends": [7, 8, 30]})
    monkeypatch.setattr("bid_ros.formats.zarr.LONGEST_CHUNK", 4)
    convert(open_source(tmp_path / "a"), tmp_path / "b", "zarr", Options())
    root = zarr.open_group(str(tmp_path / "b"), mode="r")
    assert root["data/action"].chunks == (4, 2)
    np.testing.assert_array_equal(root["data/action"][:], values)
    np.testing.assert_array_equal(root["data/state"][:], values)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"meta/episode_ends": None}, "is no replay buffer; valid is one with data/action and meta/episode_ends"),
        ({"data/state": np.ones((5, 5))}, "data/state has 5 rows; episode_ends says 6"),
        ({"meta/episode_ends": [4, 2]}, "episode_ends that do not increase from 1 or more"),
        ({"meta/episode_ends": [2.5, 6.0]}, r"episode_ends that are no whole numbers: \[2\.5, 6\.0\]"),
        ({"meta/episode_ends": [2.0, np.nan]}, r"episode_ends that are no whole numbers: \[2\.0, nan\]"),
        ({"meta/episode_ends": np.zeros(0, int)}, "episode_ends that do not increase from 1 or more"),
    ],
)
def test_a_replay_buffer_that_is_not_whole_is_refused(tmp_path, changes, said):
    with pytest.raises(RecordingError, match=said):
        open_source(make(tmp_path / "set.zarr", **changes))


def test_a_chunk_that_is_not_there_is_said_because_zarr_makes_it_up(tmp_path):
    convert(open_source(make(tmp_path / "set.zarr")), tmp_path / "copy", "zarr")
    assert open_source(tmp_path / "copy").contents.notes == (), "chunks of zeros are written, too"
    (tmp_path / "copy" / "data" / "state" / "0.0").unlink()
    (said,) = open_source(tmp_path / "copy").contents.notes
    assert said == "data/state lacks 1 of 1 files: zarr takes all values in them as 0.0"


def test_actions_of_umi_are_derived_from_its_poses(root, tmp_path):
    """Those of the published loader: position, rotation vector and opening of each hand, of the same row."""
    rng = np.random.default_rng(0)
    parts = {"eef_pos": 3, "eef_rot_axis_angle": 3, "gripper_width": 1}
    hands = {f"robot{hand}_{part}": rng.normal(size=(6, size)) for hand in (0, 1) for part, size in parts.items()}
    more = {"robot0_demo_start_pose": np.zeros((6, 6)), "camera0_rgb": rng.integers(0, 256, (6, 4, 4, 3), np.uint8)}
    arrays = {f"data/{name}": values for name, values in (hands | more).items()}
    path = make(tmp_path / "umi.zarr", **{"data/action": None, "data/state": None, **arrays})
    source = open_source(path)
    expected = np.concatenate(list(hands.values()), axis=1)
    np.testing.assert_array_equal(np.concatenate([item.actions for item in source.episodes()]), expected)
    assert source.contents.action.names[5:9] == (
        *("robot0_eef_rot_axis_angle.2", "robot0_gripper_width", "robot1_eef_pos.0", "robot1_eef_pos.1"),
    )
    assert {column.name for column in source.contents.columns} == hands.keys() | more.keys()
    convert(source, tmp_path / "copy", "zarr")
    np.testing.assert_array_equal(zarr.open_group(str(tmp_path / "copy"), mode="r")["data/action"][:], expected)


def test_a_codec_of_another_package_names_the_extra_that_has_it(tmp_path):
    path = make(tmp_path / "umi.zarr")
    about = path / "data" / "state" / ".zarray"
    about.write_text(
        json.dumps(json.loads(about.read_text()) | {"compressor": {"id": "imagecodecs_none", "level": 99}})
    )
    with pytest.raises(RecordingError, match=r"of the codec imagecodecs_none, which needs the extra 'umi'; install it"):
        open_source(path)


def test_an_action_may_have_the_other_key_or_none(tmp_path):
    plain = next(open_source(make(tmp_path / "a")).episodes())
    values = np.zeros((6, 2), np.float32)
    other = open_source(make(tmp_path / "b", **{"data/action": None, "data/actions": values}))
    np.testing.assert_array_equal(next(other.episodes()).actions, plain.actions)
    assert [column.name for column in other.contents.columns] == ["state"]
    none = open_source(make(tmp_path / "c", **{"data/action": None}))
    assert next(none.episodes()).actions.shape == (2, 0)
    with pytest.raises(
        RecordingError, match="lacks an action: valid is a key action or actions; it has data/state; say"
    ):
        convert(none, tmp_path / "d", "zarr")


def test_damaged_files_are_refused(written, tmp_path):
    path = written("zarr_zip")
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(RecordingError, match=r"set\.zarr\.zip is damaged"):
        open_source(path)
    folder = shutil.copytree(written("zarr"), tmp_path / "cut")
    (folder / "data" / "action" / "0.0").write_bytes(b"no chunk")
    with pytest.raises(RecordingError, match=r"cut/data/action/0\.0 is damaged"):
        list(open_source(folder).episodes())


def test_a_task_that_names_what_the_set_lacks_is_refused(root, tmp_path):
    with pytest.raises(
        RecordingError, match=r"names the key 'keypoint'; valid are data/state \(5,\), data/action \(2,\)"
    ):
        mapped(open_source(make(tmp_path / "set")), pusht(root, observation={"block_keypoints": "keypoint"}))


def test_arrays_in_groups_are_read_by_their_path(tmp_path):
    path = make(tmp_path / "set", **{"data/cam/left": np.arange(6.0)[:, None]})
    contents = open_source(path).contents
    assert [(item.name, item.key) for item in contents.columns] == [
        ("cam/left", "data/cam/left"),
        ("state", "data/state"),
    ]
    convert(open_source(path), tmp_path / "out.hdf5", "robomimic")
    first, second = open_source(tmp_path / "out.hdf5").episodes()
    assert [*first.observations["cam/left"], *second.observations["cam/left"]] == list(range(6))


def test_a_column_that_has_the_name_of_the_action_is_refused(tmp_path):
    from odd_sets import Memory, counted

    from bid_ros.formats import Column

    columns = (Column("action", (2,), "float32"),)
    with pytest.raises(RecordingError, match="a column is called 'action'; valid in a data set is a name"):
        convert(Memory(columns, columns[0], counted().held), tmp_path / "out", "zarr")


def test_a_file_that_is_cut_off_is_refused_because_blosc_reads_on_behind_it(tmp_path):
    convert(open_source(make(tmp_path / "set.zarr")), tmp_path / "copy", "zarr")
    file = tmp_path / "copy" / "data" / "state" / "0.0"
    whole = file.read_bytes()
    for size in (len(whole) - 1, 10, 0):
        file.write_bytes(whole[:size])
        with pytest.raises(RecordingError, match=rf"state/0\.0 is damaged or cut off: its {size} bytes"):
            next(open_source(tmp_path / "copy").episodes())


def test_a_number_without_rows_is_refused(tmp_path):
    with pytest.raises(RecordingError, match=r"data/scale has no rows; episode_ends says 6"):
        open_source(make(tmp_path / "set.zarr", **{"data/scale": np.float64(3)}))


def test_a_column_without_values_is_carried(tmp_path):
    path = make(tmp_path / "set.zarr", **{"data/nothing": np.zeros((6, 0))})
    convert(open_source(path), tmp_path / "copy", "zarr")
    assert next(open_source(tmp_path / "copy").episodes()).observations["nothing"].shape == (2, 0)


@pytest.mark.parametrize("names", [[1, 2], "ab", {"a": 1}, ["a", "b", "c"], 5])
def test_names_of_values_are_texts_or_none(tmp_path, names):
    path = make(tmp_path / "set.zarr")
    zarr.open_group(str(path), mode="a")["data/action"].attrs["names"] = names
    assert open_source(path).contents.action.names == (("1", "2") if names == [1, 2] else ())


def test_numbers_in_another_order_of_bytes_are_read(tmp_path):
    path = make(tmp_path / "set.zarr", **{"data/state": np.arange(30.0).reshape(6, 5).astype(">f4")})
    convert(open_source(path), tmp_path / "copy", "zarr")
    for place in (path, tmp_path / "copy"):
        state = np.concatenate([item.observations["state"] for item in open_source(place).episodes()])
        np.testing.assert_array_equal(state, np.arange(30.0).reshape(6, 5))
