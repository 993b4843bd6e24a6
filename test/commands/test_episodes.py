"""The verb on real bags, from the command line."""

import json

import numpy as np
import pytest
from PIL import Image
from recording.conftest import kit, make_run  # noqa: F401
from rosbags.rosbag1 import Writer as Ros1Writer
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Ros2Writer
from rosbags.typesys import Stores, get_typestore

from bid_ros.cli import main

SHEET = 8 * 150 + 7 * 6 + 2 * 14  # px: eight frames, the gaps between them, and the margins


@pytest.fixture
def bag(make_run, tmp_path):  # noqa: F811
    return make_run(episodes=2, seconds=1.0, success=lambda index: index == 0).write(tmp_path / "runs" / "a" / "bag")


def foreign(path, store, writer):
    """Write a bag of ten images with ROS 1 or ROS 2."""
    old = store is Stores.ROS1_NOETIC
    types = get_typestore(store)
    image, header, time = (
        types.types[name] for name in ("sensor_msgs/msg/Image", "std_msgs/msg/Header", "builtin_interfaces/msg/Time")
    )
    with writer as bag:
        topic = bag.add_connection("/cam/raw", "sensor_msgs/msg/Image", typestore=types)
        for k in range(10):
            stamp = header(*([k] if old else []), time(100, k * 10**8), "cam")
            message = image(stamp, 6, 8, "bgr8", 0, 24, np.full(144, k, np.uint8))
            raw = (types.serialize_ros1 if old else types.serialize_cdr)(message, "sensor_msgs/msg/Image")
            bag.write(topic, 100 * 10**9 + k * 10**8 + 1, raw)
    return path


def printed(capsys, *arguments):
    status = main(["episodes", *map(str, arguments)])
    return status, capsys.readouterr()


def test_list_and_show(bag, tmp_path, capsys):
    status, out = printed(capsys, "list", tmp_path / "runs", "--json")
    rows = json.loads(out.out)["episodes"]
    assert status == 0 and [(row["number"], row["outcome"], row["frames"]) for row in rows] == [
        (0, "success", 10),
        (1, "timeout", 10),
    ]
    status, out = printed(capsys, "list", tmp_path / "runs")
    assert "episodes: 2, with success: 1, bags: 1, 2 s" in out.out
    status, out = printed(capsys, "show", f"{bag}:1")
    assert status == 0 and "END      episode 1  timeout" in out.out and "bid_msgs/msg/ArmStatus" in out.out


def test_list_goes_on_after_a_bag_that_cannot_be_read(bag, tmp_path, capsys):
    (tmp_path / "runs" / "broken.mcap").write_bytes(b"")
    (tmp_path / "runs" / "text.mcap").write_text("not a recording, though it is long enough to be looked at at all")
    status, out = printed(capsys, "list", tmp_path / "runs")
    assert status == 2 and out.out.count("runs/a/bag:") == 2
    assert "broken.mcap is empty: it has 0 bytes" in out.err and "text.mcap is not an MCAP recording" in out.err


def test_foreign_bags_of_every_kind_are_listed_and_validated(tmp_path, capsys):
    ros2 = Stores.ROS2_JAZZY
    foreign(tmp_path, Stores.ROS1_NOETIC, Ros1Writer(tmp_path / "one.bag"))
    foreign(tmp_path, ros2, Ros2Writer(tmp_path / "sq", version=9, storage_plugin=StoragePlugin.SQLITE3))
    foreign(tmp_path, ros2, Ros2Writer(tmp_path / "mc", version=9, storage_plugin=StoragePlugin.MCAP))
    _, out = printed(capsys, "list", tmp_path, "--json")
    rows = json.loads(out.out)["episodes"]
    assert [(row["outcome"], row["frames"], row["duration_s"]) for row in rows] == [("unknown", 10, 0.9)] * 3
    status, out = printed(capsys, "validate", tmp_path)
    assert status == 0 and out.out.count("warning  ending: the bag has no event of an episode") == 3
    assert "bags whose task is not known: 3" in out.out
    status, out = printed(capsys, "validate", tmp_path, "--task", "franka_place")
    assert status == 1 and "take one with --remap camera/wrist/image:=/cam/raw" in out.out
    status, out = printed(capsys, "trim", tmp_path / "sq", "-o", tmp_path / "cut")
    assert status == 2 and "so it cannot be edited; rosbags-convert" in out.err


def test_edits_name_the_task_so_that_it_is_known_later(bag, tmp_path, capsys):
    (bag.parent / "run.json").write_text('{"task": "franka_place"}')
    assert printed(capsys, "trim", f"{bag}:0", "--to", "0.5", "-o", tmp_path / "cut")[0] == 0
    assert "task: franka_place" in printed(capsys, "show", tmp_path / "cut")[1].out
    assert printed(capsys, "split", bag, "-o", tmp_path / "parts")[0] == 0
    assert printed(capsys, "merge", tmp_path / "parts", "-o", tmp_path / "whole")[0] == 0
    assert "task: franka_place" in printed(capsys, "show", tmp_path / "whole")[1].out
    assert printed(capsys, "delete", f"{bag}:0", f"{bag}:1")[0] == 0 and not bag.exists()
    assert printed(capsys, "restore", bag)[0] == 0 == printed(capsys, "restore", bag)[0]
    assert "episodes: 2" in printed(capsys, "list", bag)[1].out


def test_pictures_and_the_page(bag, tmp_path, capsys):
    assert printed(capsys, "sheet", f"{bag}:0", "-o", tmp_path / "sheet.png")[0] == 0
    assert Image.open(tmp_path / "sheet.png").width == SHEET
    assert printed(capsys, "plot", bag, "-o", tmp_path / "plot.png")[0] == 0
    assert Image.open(tmp_path / "plot.png").width > 800
    (bag.parent / "<b>.mcap").write_bytes(b"")
    assert printed(capsys, "page", tmp_path / "runs", "-o", tmp_path / "page")[0] == 0
    text = (tmp_path / "page" / "index.html").read_text()
    assert text.count("<article") == 3 and text.count("data:image/jpeg") == 2 == text.count("data:image/png")
    assert "&lt;b&gt;.mcap is empty" in text and "<b>.mcap" not in text
    assert "://" not in text  # it needs nothing beside itself
    status, out = printed(capsys, "sheet", bag, "-o", tmp_path / "sheet.bmp")
    assert status == 2 and "valid are .png and .jpg" in out.err


def test_nothing_is_deleted_if_one_of_the_names_is_wrong(bag, tmp_path, capsys):
    before = sorted(path.name for path in bag.parent.rglob("*"))
    for wrong in (f"{bag}:7", tmp_path / "none", f"{bag.parent}:9"):
        status, out = printed(capsys, "delete", f"{bag}:0", wrong)
        assert status == 2 and out.err.count("error: ") == 1 and out.out == "", wrong
        assert sorted(path.name for path in bag.parent.rglob("*")) == before


def test_an_episode_that_is_named_twice_is_deleted_once(bag, capsys, monkeypatch):
    monkeypatch.chdir(bag.parent)
    status, out = printed(capsys, "delete", f"{bag}:0", "bag:0", "./bag:0", "--json")
    assert status == 0 and [item["number"] for item in json.loads(out.out)["deleted"]] == [0]
    _, out = printed(capsys, "list", bag, "--json")
    assert [row["outcome"] for row in json.loads(out.out)["episodes"]] == ["timeout"], "the other one is left"
    status, out = printed(capsys, "restore", bag.parent)
    assert status == 0 and out.out.strip().endswith("bag:0"), "a folder lists its trash"
    assert printed(capsys, "restore", "bag")[0] == 0
    status, out = printed(capsys, "restore", "bag")
    assert status == 2 and "bag bag is not in the trash" in out.err


def test_a_bag_that_cannot_be_read_can_be_deleted(tmp_path, capsys):
    (tmp_path / "broken.mcap").write_bytes(b"")
    status, _ = printed(capsys, "delete", tmp_path / "broken.mcap")
    assert status == 0 and not (tmp_path / "broken.mcap").exists()
    assert printed(capsys, "restore", tmp_path / "broken.mcap")[0] == 0 and (tmp_path / "broken.mcap").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("trim", "BAG:0", "--from", "0.8", "--to", "0.2"), "has no part from 0.8 to 0.2 s; valid is 0 to 1.000 s"),
        (("trim", "BAG:0", "--from", "-1"), "has no part from -1 to 1 s; valid is 0 to 1.000 s"),
        (("trim", "BAG:0", "--to", "nan"), "has no part from 0 to nan s; valid is 0 to"),
        (("trim", "BAG", "--to", "0.5"), "holds 2 episodes; valid is one of them"),
        (("trim", "BAG:0", "--remap", "arm/status=/arm"), "remapping 'arm/status=/arm' has an unknown form"),
        (("merge", "BAG"), "there is 1 bag to merge; valid is 2 or more"),
        (("merge", "BAG", "BAG/../none"), "none does not exist"),
        (("split", "NONE"), "none does not exist"),
    ],
)
def test_a_bad_edit_is_one_sentence_and_leaves_nothing(bag, tmp_path, capsys, arguments, said):
    words = [word.replace("BAG", str(bag)).replace("NONE", str(tmp_path / "none")) for word in arguments]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    status, out = printed(capsys, *words, "-o", tmp_path / "out")
    assert status == 2 and said in out.err and out.err.count("error: ") == 1 and out.out == ""
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
