"""LeRobotDataset: what the package lerobot wrote reads equal, and what is written here has the same layout."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import pyarrow
import pyarrow.parquet as parquet
import pytest

from bid_ros.core.data_keys import DataKeys
from bid_ros.core.errors import RecordingError
from bid_ros.core.task import parse_task
from bid_ros.formats import Options, convert, load_dataset, mapped, open_source
from bid_ros.formats.base import Column
from bid_ros.formats.lerobot.part_writer import image_stats, joined, vector_stats
from bid_ros.formats.lerobot.tables import pictures
from bid_ros.formats.lerobot.video import av
from bid_ros.formats.lerobot_v30 import LeRobotV30Writer

CAMERAS = ("wrist", "front")
LARGE = ("dataset_v21_image", "dataset_v30_video", "dataset_v30_video_h264")


def check_golden(golden) -> None:
    """Compare what is read with what the package lerobot read from the same files."""
    source, numbers = open_source(golden.dataset), golden.numbers
    episodes = list(source.episodes())
    assert [item.rows for item in episodes] == list(source.contents.lengths) == [40, 52, 60]
    for name, key in (("state", "observation.state"), ("", "action")):
        values = np.concatenate([item.observations[name] if name else item.actions for item in episodes])
        np.testing.assert_array_equal(values, numbers[f"frame/{key}"])
    texts = [item.text for item in episodes for _ in range(item.rows)]
    assert texts == numbers["frame/task"].tolist()
    times = np.concatenate([item.stamps_ns for item in episodes]) / 1e9
    np.testing.assert_allclose(times, numbers["frame/timestamp"], atol=1e-6)
    for camera in CAMERAS:
        frames = np.concatenate([item.observations[camera] for item in episodes])
        means = frames.reshape(len(frames), -1, 3).mean(axis=1)
        np.testing.assert_allclose(means, numbers[f"image_mean/observation.images.{camera}"], atol=1e-4)
        if f"image/observation.images.{camera}" in numbers:
            shown = frames[numbers["image/index"]]
            np.testing.assert_array_equal(shown, numbers[f"image/observation.images.{camera}"])


def test_what_lerobot_wrote_reads_equal(golden):
    check_golden(golden)


@pytest.mark.parametrize("name", LARGE)
def test_every_golden_data_set_reads_equal(shared, kit, tmp_path, name):
    check_golden(kit.unpacked(shared / "golden" / "lerobot" / f"{name}.tar.xz", tmp_path))


def test_reading_begins_at_any_episode(golden):
    source = open_source(golden.dataset)
    last = list(source.episodes())[2]
    (alone,) = source.episodes(2)
    np.testing.assert_array_equal(alone.observations["front"], last.observations["front"])
    np.testing.assert_array_equal(alone.actions, last.actions)


@pytest.fixture
def again(golden, tmp_path):
    """The golden data set, read and written here."""
    convert(open_source(golden.dataset), tmp_path / "again", "lerobot_v30")
    return tmp_path / "again"


def schema(path):
    found = parquet.read_schema(path)
    features = json.loads((found.metadata or {}).get(b"huggingface", b"{}")).get("info", {})
    return [(field.name, str(field.type)) for field in found], features


def test_the_tables_have_the_schema_of_lerobot(again, golden):
    for name in ("data/chunk-000/file-000.parquet", "meta/tasks.parquet"):
        assert schema(again / name) == schema(golden.dataset / name)
    ours, theirs = (
        dict(schema(root / "meta/episodes/chunk-000/file-000.parquet")[0]) for root in (again, golden.dataset)
    )
    assert ours == theirs
    pandas = [
        json.loads(parquet.read_schema(root / "meta/tasks.parquet").metadata[b"pandas"])
        for root in (again, golden.dataset)
    ]
    assert pandas[0]["index_columns"] == pandas[1]["index_columns"] == ["task"]
    assert pandas[0]["columns"] == pandas[1]["columns"]


def test_the_rows_are_those_of_lerobot(again, golden):
    theirs = [parquet.read_table(path) for path in sorted(golden.dataset.glob("data/*/*.parquet"))]
    ours = parquet.read_table(again / "data/chunk-000/file-000.parquet")
    assert ours.num_rows == sum(table.num_rows for table in theirs)
    for name in ours.column_names:
        assert ours.column(name).to_pylist() == [value for table in theirs for value in table.column(name).to_pylist()]
    assert parquet.ParquetFile(again / "data/chunk-000/file-000.parquet").metadata.num_row_groups == 3


def test_the_information_has_the_fields_of_lerobot(again, golden):
    ours, theirs = (json.loads((root / "meta/info.json").read_text()) for root in (again, golden.dataset))
    assert list(ours) == list(theirs)
    sizes = ("data_files_size_in_mb", "video_files_size_in_mb", "robot_type", "features")
    assert {key: ours[key] for key in ours if key not in sizes} == {
        key: theirs[key] for key in theirs if key not in sizes
    }
    assert set(ours["features"]) == set(theirs["features"])
    for key, feature in theirs["features"].items():
        told = feature.pop("info", {})
        mine = ours["features"][key].pop("info", {})
        assert ours["features"][key] == feature
        for name in ("video.height", "video.width", "video.codec", "video.pix_fmt", "video.fps", "has_audio"):
            assert mine.get(name) == told.get(name)


def test_the_statistics_are_those_of_lerobot(again, golden):
    # Theirs are of the frames before they were coded: the coding moves the darkest and brightest values.
    check_stats(again, golden, ("mean", "std", "q50", "count"), 0.05)


def test_the_statistics_of_exact_pictures_are_those_of_lerobot(shared, kit, tmp_path):
    folder = shared / "golden" / "lerobot"
    exact = kit.unpacked(folder / "dataset_v21_image.tar.xz", tmp_path)
    theirs = kit.unpacked(folder / "dataset_v30_video.tar.xz", tmp_path)
    convert(open_source(exact.dataset), tmp_path / "set", "lerobot_v30", Options("png"))
    check_stats(
        tmp_path / "set", theirs, ("min", "max", "mean", "std", "q01", "q10", "q50", "q90", "q99", "count"), 0.02
    )


def check_stats(root, golden, of_pictures, tolerance) -> None:
    """Compare statistics with lerobot's, whose quantiles come from a histogram."""
    ours, theirs = (json.loads((each / "meta/stats.json").read_text()) for each in (root, golden.dataset))
    assert set(ours) == set(theirs)
    for key, stats in theirs.items():
        span = max(1.0, np.ptp([stats["min"], stats["max"]], axis=0).max())
        assert set(stats) == set(ours[key])
        for name, value in stats.items():
            assert np.shape(value) == np.shape(ours[key][name])
            if "images" not in key or name in of_pictures:
                allowed = tolerance if "images" in key else 0.02 * span
                np.testing.assert_allclose(ours[key][name], value, atol=allowed, err_msg=f"{key} {name}")
            if "images" not in key and name in ("min", "max", "count"):
                np.testing.assert_allclose(ours[key][name], value, rtol=1e-7)


def test_the_episodes_say_where_they_are(again):
    rows = parquet.read_table(again / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    assert [row["dataset_from_index"] for row in rows] == [0, 40, 92]
    assert [row["dataset_to_index"] for row in rows] == [40, 92, 152]
    for camera in CAMERAS:
        places = [
            (
                row[f"videos/observation.images.{camera}/from_timestamp"],
                row[f"videos/observation.images.{camera}/to_timestamp"],
            )
            for row in rows
        ]
        np.testing.assert_allclose(places, [(0, 4), (4, 9.2), (9.2, 15.2)])


def test_videos_are_h264_with_a_short_group_of_pictures(again):
    for path in again.glob("videos/*/*/*.mp4"):
        with av().open(str(path)) as video:
            (track,) = video.streams.video
            frames = list(video.decode(track))
            assert (track.codec_context.name, track.codec_context.pix_fmt, track.average_rate) == (
                "h264",
                "yuv420p",
                10,
            )
        assert len(frames) == 152
        np.testing.assert_allclose([float(frame.pts * frame.time_base) for frame in frames], np.arange(152) / 10)
        assert [at for at, frame in enumerate(frames) if frame.key_frame][:4] == [0, 2, 4, 6]


def test_files_begin_anew_where_they_are_full(source, dataset, task, tmp_path):
    class Small(LeRobotV30Writer):
        def __init__(self, contents, options):
            super().__init__(contents, options, data_mb=0.001, video_mb=0.001)

    from bid_ros.formats.files import write_about

    writer, parts = Small(source.contents, Options()), []
    for number, episode in enumerate(source.episodes()):
        parts.append(tmp_path / str(number))
        parts[-1].mkdir()
        writer.write_part(episode, parts[-1])
        write_about(episode, parts[-1])
    writer.assemble(parts, tmp_path / "set")
    assert len(list((tmp_path / "set").glob("data/*/*.parquet"))) == 3
    assert len(list((tmp_path / "set").glob("videos/*/*/*.mp4"))) == 3
    np.testing.assert_array_equal(load_dataset(tmp_path / "set", task).actions, dataset.actions)


def test_version_2_1_has_its_files(written, kit):
    root = written("lerobot_v21")
    names = sorted(item.relative_to(root).as_posix() for item in root.rglob("*") if item.is_file())
    assert names[0] == "data/chunk-000/episode_000000.parquet"
    assert "videos/chunk-000/observation.images.wrist/episode_000002.mp4" in names
    assert {"meta/episodes.jsonl", "meta/episodes_stats.jsonl", "meta/info.json", "meta/tasks.jsonl"} <= set(names)
    info = json.loads((root / "meta/info.json").read_text())
    assert (info["codebase_version"], info["total_videos"], info["total_chunks"]) == ("v2.1", 3, 1)
    lines = [json.loads(line) for line in (root / "meta/episodes_stats.jsonl").read_text().splitlines()]
    assert set(lines[0]["stats"]["action"]) == {"min", "max", "mean", "std", "count"}
    assert [line["stats"]["index"]["min"] for line in lines] == [[0.0], [5.0], [13.0]]
    _, features = schema(root / names[0])
    assert features["features"]["action"]["_type"] == "Sequence"


def test_vectors_become_the_state_with_a_name_for_each_value(written):
    features = json.loads((written("lerobot_v30_png") / "meta/info.json").read_text())["features"]
    assert features["observation.state"]["shape"] == [10]
    assert features["observation.state"]["names"][-2:] == ["tool_rotation.5", "gripper_width"]
    assert features["action"]["names"] == ["tool_position.0", "tool_position.1", "tool_position.2", "gripper_width"]
    assert features["observation.images.wrist"]["dtype"] == "image"


def test_statistics_are_exact_and_join():
    rng = np.random.default_rng(0)
    values, pictures = rng.normal(size=(60, 3)), rng.integers(0, 256, (6, 4, 5, 3), np.uint8)
    whole = joined([vector_stats(values[:20]), vector_stats(values[20:])])
    for name, expected in (("mean", values.mean(0)), ("std", values.std(0)), ("min", values.min(0)), ("count", [60])):
        np.testing.assert_allclose(whole[name], expected)
    found, plain = image_stats(pictures), pictures.reshape(-1, 3) / 255
    assert np.shape(found["mean"]) == (3, 1, 1)
    for name in ("mean", "std", "min", "max"):
        np.testing.assert_allclose(np.ravel(found[name]), getattr(plain, name)(axis=0))
    np.testing.assert_allclose(np.ravel(found["q50"]), np.quantile(plain, 0.5, axis=0, method="inverted_cdf"))


@pytest.fixture
def broken(golden, tmp_path):
    shutil.copytree(golden.dataset, tmp_path / "broken")
    return tmp_path / "broken"


def read_all(root) -> None:
    for _ in open_source(root).episodes():
        pass


def edit(root, change) -> None:
    info = json.loads((root / "meta/info.json").read_text())
    change(info)
    (root / "meta/info.json").write_text(json.dumps(info))


def cut(path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


DAMAGES = {
    "cut table": (lambda root: cut(root / "data/chunk-000/file-001.parquet"), r"file-001\.parquet is damaged"),
    "no table": (lambda root: (root / "data/chunk-000/file-000.parquet").unlink(), r"file-000\.parquet does not exist"),
    "cut video": (
        lambda root: cut(root / "videos/observation.images.front/chunk-000/file-000.mp4"),
        r"file-000\.mp4 is damaged",
    ),
    "no video": (
        lambda root: (root / "videos/observation.images.wrist/chunk-000/file-002.mp4").unlink(),
        r"video .*file-002\.mp4 does not exist",
    ),
    "other video": (
        lambda root: shutil.copy(
            root / "videos/observation.images.wrist/chunk-000/file-000.mp4",
            root / "videos/observation.images.wrist/chunk-000/file-002.mp4",
        ),
        r"file-002\.mp4 lacks the frame at 4\.000 s",
    ),
    "cut episodes": (lambda root: cut(root / "meta/episodes/chunk-000/file-000.parquet"), "is damaged"),
    "no episodes": (lambda root: shutil.rmtree(root / "meta/episodes"), "lacks meta/episodes"),
    "cut info": (lambda root: cut(root / "meta/info.json"), r"info\.json is damaged"),
    "no features": (lambda root: edit(root, lambda info: info.pop("features")), r"info\.json is damaged .*'features'"),
    "more frames": (
        lambda root: edit(root, lambda info: info.update(total_frames=160)),
        r"has 3 episodes of 152 rows; its info\.json says 3 of 160",
    ),
    "wrong shape": (
        lambda root: edit(root, lambda info: info["features"]["action"].update(shape=[6])),
        r"'action' has 280 values in 40 rows; valid is 6 a row",
    ),
    "wrong picture": (
        lambda root: edit(root, lambda info: info["features"]["observation.images.wrist"].update(shape=[64, 96, 3])),
        r"frames of \(96, 96, 3\); the data set says \(64, 96, 3\)",
    ),
    "missing column": (
        lambda root: edit(
            root, lambda info: info["features"].update({"observation.force": {"dtype": "float32", "shape": [3]}})
        ),
        "lacks the column observation.force",
    ),
    "unknown version": (
        lambda root: edit(root, lambda info: info.update(codebase_version="v4.0")),
        r"has version v4\.0; valid are v2\.1 and v3\.0",
    ),
    "old version": (
        lambda root: edit(root, lambda info: info.update(codebase_version="v2.0")),
        r"has version v2\.0; valid are v2\.1 and v3\.0",
    ),
    "no rate": (lambda root: edit(root, lambda info: info.update(fps=0)), "has fps 0; valid is a positive number"),
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_a_damaged_data_set_is_refused_in_one_sentence(broken, damage):
    spoil, said = DAMAGES[damage]
    spoil(broken)
    with pytest.raises(RecordingError, match=said) as raised:
        read_all(broken)
    assert "\n" not in str(raised.value)


def test_what_no_task_names_is_left_out_and_said(broken):
    def add(info) -> None:
        depth = {"dtype": "video", "shape": [96, 96, 1], "info": {"is_depth_map": True}}
        info["features"] |= {
            "next.reward": {"dtype": "float32", "shape": [1]},
            "observation.images.depth": depth,
            "observation.note": {"dtype": "string", "shape": [1]},
        }

    edit(broken, add)
    left = open_source(broken).contents.left
    assert left == (
        "next.reward is not read: it is no observation",
        "observation.images.depth is not read: it is a depth map",
        "observation.note is not read: it is string",
    )
    read_all(broken)


def test_a_key_that_is_not_of_lerobot_is_taken_by_its_name(tmp_path, kit):
    """Keys of openpi, a grey camera, and an action with a key of its own."""
    own = kit.content(
        observation=[
            {"name": "arm", "kind": "joints", "shape": [3]},
            {"name": "eye", "kind": "image", "shape": [8, 6, 3]},
        ],
        action=[{"name": "arm", "kind": "joints", "shape": [3]}],
    )
    rng = np.random.default_rng(4)
    vectors = {"state": rng.normal(size=(5, 3)), "actions": rng.normal(size=(5, 3)), "cmd": rng.normal(size=(5, 3))}
    pictures = rng.integers(0, 256, (5, 8, 6, 1), np.uint8)
    for named, key in (("actions", "actions"), ("cmd", "cmd"), ("action", "actions")):
        root = tmp_path / named
        kept = {name: values for name, values in vectors.items() if name in ("state", key)}
        openpi(root, kept, {"image": pictures})
        data = {"observation": {"arm": "state", "eye": "image"}, "action": {"arm": named}}
        episode = next(mapped(open_source(root), parse_task({**own, "data": data})).episodes())
        np.testing.assert_array_equal(episode.actions, vectors[key].astype(np.float32))
        np.testing.assert_array_equal(episode.observations["arm"], vectors["state"].astype(np.float32))
        np.testing.assert_array_equal(episode.observations["eye"], np.repeat(pictures, 3, axis=3))
    with pytest.raises(
        RecordingError, match=r"lacks an action: valid is a key action or actions; it has state, cmd, im"
    ):
        convert(open_source(tmp_path / "cmd"), tmp_path / "out", "zarr")
    assert not (tmp_path / "out").exists()


def openpi(root, vectors, pictures) -> None:
    """Write one episode as LeRobot 2.1, under keys of one's own."""
    rows = len(next(iter(vectors.values())))
    features = {key: {"dtype": "float32", "shape": [each.shape[1]]} for key, each in vectors.items()}
    features |= {key: {"dtype": "image", "shape": list(each.shape[1:])} for key, each in pictures.items()}
    columns = {key: list(each.astype(np.float32)) for key, each in vectors.items()}
    columns |= {
        key: [{"bytes": cv2.imencode(".png", image)[1].tobytes(), "path": ""} for image in each]
        for key, each in pictures.items()
    }
    info = {"codebase_version": "v2.1", "fps": 10, "total_episodes": 1, "total_frames": rows, "features": features}
    info |= {"data_path": "data.parquet", "video_path": None}
    (root / "meta").mkdir(parents=True)
    (root / "meta" / "info.json").write_text(json.dumps(info))
    (root / "meta" / "episodes.jsonl").write_text(json.dumps({"episode_index": 0, "tasks": ["go"], "length": rows}))
    count = np.arange(rows)
    columns |= {
        "timestamp": np.float32(count / 10),
        "frame_index": count,
        "task_index": 0 * count,
        "episode_index": 0 * count,
    }
    parquet.write_table(pyarrow.table(columns), root / "data.parquet")


def test_lerobot_refuses_what_it_cannot_hold(source, tmp_path, golden):
    from dataclasses import replace

    class As:
        def __init__(self, **changes):
            self.contents = replace(source.contents, **changes)

        def episodes(self, start=0, names=None):
            return source.episodes(start)

    odd = [replace(item, shape=(31, 48, 3)) if item.image else item for item in source.contents.columns]
    for changes, said in (
        ({"rate_hz": 12.5}, "LeRobot holds whole rates only; the data set has 12.5 rows a second"),
        ({"rate_hz": None}, "LeRobot needs the rate of the rows"),
        ({"columns": tuple(odd)}, "image 'wrist' of 31 x 48 pixels cannot be a video; valid are even sizes"),
    ):
        with pytest.raises(RecordingError, match=said):
            convert(As(**changes), tmp_path / "set", "lerobot_v30")
    assert list(tmp_path.glob("*set*")) == []


def test_pictures_that_the_task_does_not_name_are_not_decoded(broken, kit):
    shutil.rmtree(broken / "videos")
    task = parse_task(
        kit.content(
            observation=[
                {"name": "arm", "kind": "vector", "shape": [7], "topic": "a", "type": "b/msg/B", "field": "c"}
            ],
            action=[{"name": "arm", "kind": "joints"}],
            data={"observation": {"arm": "observation.state"}},
        )
    )
    assert load_dataset(broken, task).rows == 152


def test_a_task_reads_the_golden_data_set_by_its_names(golden, kit):
    task = parse_task(
        kit.content(
            observation=[
                {"name": "wrist", "kind": "image", "shape": [96, 96, 3]},
                {"name": "arm", "kind": "joints", "shape": [6]},
                {"name": "gripper", "kind": "gripper"},
            ],
            action=[{"name": "arm", "kind": "joints", "shape": [6]}, {"name": "gripper", "kind": "gripper"}],
            data={
                "observation": {"arm": "observation.state[0:6]"},
                "action": {"arm": "action[0:6]", "gripper": "action[gripper.pos]"},
            },
        )
    )
    assert isinstance(task.data, DataKeys)
    dataset = load_dataset(golden.dataset, task)
    dataset.validate(task)
    np.testing.assert_array_equal(dataset.actions, golden.numbers["frame/action"])
    np.testing.assert_array_equal(dataset.observations["gripper"], golden.numbers["frame/observation.state"][:, 6:])


def test_a_picture_of_distances_is_refused_and_no_colour():
    depth = cv2.imencode(".png", np.full((4, 5), 1000, np.uint16))[1].tobytes()
    table = pyarrow.table({"observation.images.depth": [{"bytes": depth, "path": None}]})
    column = Column("depth", (4, 5, 3), "uint8", True, key="observation.images.depth")
    with pytest.raises(RecordingError, match=r"picture 0 of 'observation\.images\.depth' has 16 bits a channel"):
        pictures(table, column, Path("part.parquet"))
