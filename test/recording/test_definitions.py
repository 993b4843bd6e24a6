"""Messages made without ROS are what ROS reads."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from geometry_msgs.msg import PoseStamped
from rclpy.serialization import deserialize_message
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from std_msgs.msg import String

from bid_msgs.msg import ArmStatus
from bid_ros.core.errors import RecordingError
from bid_ros.core.topics import IMAGE_TYPE, TOPICS
from bid_ros.recording.definitions import Encoder, find_definition, search_prefixes


@pytest.mark.parametrize("type_name", sorted({*(topic.type_name for topic in TOPICS.values()), IMAGE_TYPE}))
def test_hash_of_the_text_is_the_one_ros_computed_when_it_built_the_type(type_name):
    package, _, name = type_name.split("/")
    description = next(
        path for prefix in search_prefixes() if (path := prefix / "share" / package / "msg" / f"{name}.json").exists()
    )
    hashes = {item["type_name"]: item["hash_string"] for item in json.loads(description.read_text())["type_hashes"]}
    assert find_definition(type_name).type_hash == hashes[type_name]


def test_text_alone_defines_the_type_with_all_that_it_uses():
    text = find_definition("bid_msgs/msg/ArmStatus").text
    types = get_types_from_msg(text, "bid_msgs/msg/ArmStatus")
    assert {"bid_msgs/msg/ArmStatus", "std_msgs/msg/Header", "geometry_msgs/msg/Quaternion"} <= set(types)
    store = get_typestore(Stores.EMPTY)
    store.register(types)
    assert store.types["bid_msgs/msg/ArmStatus"].STOPPED == 3


def test_prefixes_are_searched_in_order(tmp_path, monkeypatch):
    for name, content in (("a", "int32 first\n"), ("b", "int32 second\n")):
        folder = tmp_path / name / "share" / "mine" / "msg"
        folder.mkdir(parents=True)
        (folder / "Thing.msg").write_text(content)
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{tmp_path / 'a'}:{tmp_path / 'b'}")
    assert search_prefixes() == (tmp_path / "a", tmp_path / "b", Path(sys.prefix))
    assert find_definition("mine/msg/Thing").text == "int32 first\n"


def test_unknown_type_names_the_places_searched(tmp_path):
    with pytest.raises(RecordingError, match=rf"'nothing/msg/Here' is not installed; looked in share/ of {tmp_path}"):
        find_definition("nothing/msg/Here", [tmp_path])


def test_missing_dependency_is_named(tmp_path):
    folder = tmp_path / "share" / "mine" / "msg"
    folder.mkdir(parents=True)
    (folder / "Thing.msg").write_text("other/Part[] parts\n")
    with pytest.raises(RecordingError, match="'other/msg/Part' is not installed"):
        find_definition("mine/msg/Thing", [tmp_path])


def test_text_that_is_no_definition_and_name_of_another_form(tmp_path):
    folder = tmp_path / "share" / "mine" / "msg"
    folder.mkdir(parents=True)
    (folder / "Thing.msg").write_text("int32 = = 3 [\n")
    with pytest.raises(RecordingError, match=r"definition of mine/msg/Thing cannot be read"):
        find_definition("mine/msg/Thing", [tmp_path])
    with pytest.raises(RecordingError, match="valid is package/msg/Name"):
        find_definition("mine/Thing", [tmp_path])


def test_ros_reads_every_field():
    status = ArmStatus(mode=1, source="teleop", gripper_width=0.04, joint_positions=[0.1, 0.2], gripper_busy=True)
    status.header.stamp.sec, status.header.frame_id = 5, "base"
    status.tool.orientation.w, status.reference_twist[2] = 0.5, 0.25
    status.tool.orientation.x = status.tool.orientation.y = status.tool.orientation.z = 0.0
    status.reference.orientation.w = 0.0  # ROS's own default is 1
    values = {
        "header": {"stamp": {"sec": 5}, "frame_id": "base"},
        "mode": 1,
        "source": "teleop",
        "gripper_width": 0.04,
        "joint_positions": [0.1, 0.2],
        "gripper_busy": True,
        "tool": {"orientation": {"w": 0.5}},
        "reference_twist": [0, 0, 0.25, 0, 0, 0],
    }
    # Not byte by byte: ROS leaves what it likes between two values.
    assert deserialize_message(Encoder("bid_msgs/msg/ArmStatus").encode(values), ArmStatus) == status


def test_text_and_empty_messages():
    text = Encoder("std_msgs/msg/String").encode({"data": "ä cup"})
    assert deserialize_message(text, String).data == "ä cup"
    pose = deserialize_message(Encoder("geometry_msgs/msg/PoseStamped").encode({}), PoseStamped)
    assert pose.pose.orientation.w == 0.0 and pose.header.frame_id == ""


def test_unknown_fields_and_types_are_named():
    with pytest.raises(RecordingError, match="std_msgs/msg/String has no field text; valid are data"):
        Encoder("std_msgs/msg/String").encode({"text": "x"})
    with pytest.raises(RecordingError, match="no_msgs/msg/None"):
        Encoder("no_msgs/msg/None")
