from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
from rclpy.serialization import deserialize_message, serialize_message
from rosbags.rosbag2 import Reader

from bid_msgs.msg import ActionChunk, ArmStatus
from bid_ros.core.errors import RecordingError
from bid_ros.core.topics import ARM_STATUS, DIAGNOSTICS, POLICY_CHUNK, TOOL_POSE, camera_topic
from bid_ros.recording.reader import BagReader
from bid_ros.recording.writer import BagWriter


@pytest.fixture
def run(make_run):
    return make_run(seconds=0.5)


@pytest.fixture
def bag(run, tmp_path):
    return run.write(tmp_path / "bag")


def test_everything_comes_back_in_the_order_of_receipt(bag, run):
    with BagReader(bag) as reader:
        found = [(item.stamp_ns, item.topic) for item in reader.messages()]
        counts = reader.counts
        assert reader.topics["/arm/status"] == "bid_msgs/msg/ArmStatus"
        assert reader.was_complete
    assert found == sorted(found, key=lambda item: item[0])
    assert sorted(found) == sorted((stamp, f"/{topic}") for stamp, topic, _ in run.items)
    assert counts["/episode/event"] == 3
    assert sum(counts.values()) == len(run.items)


def test_values_are_those_that_ros_serialized(bag, run):
    images = [message for _, topic, message in run.ordered() if topic == camera_topic("wrist")]
    poses = [message for _, topic, message in run.ordered() if topic == TOOL_POSE]
    with BagReader(bag) as reader:
        for item, sent in zip(reader.messages([camera_topic("wrist")]), images, strict=True):
            assert item.message.encoding == "rgb8"
            np.testing.assert_array_equal(item.message.data, sent.data)
        for item, sent in zip(reader.messages([TOOL_POSE]), poses, strict=True):
            assert item.message.pose.position.x == sent.pose.position.x
            assert item.message.header.stamp.nanosec == sent.header.stamp.nanosec
            assert item.message.header.frame_id == "base"


def test_matrix_of_a_chunk_comes_back(tmp_path, kit):
    chunk = ActionChunk(features=["a", "b"], steps=2, dims=3, actions=[1.5, -2.0, float("nan"), 0.0, 1e-9, 7.0])
    run = kit.Run()
    run.add(POLICY_CHUNK, 5, chunk)
    with BagReader(run.write(tmp_path / "bag")) as reader:
        (item,) = reader.messages()
    assert list(item.message.features) == ["a", "b"]
    np.testing.assert_array_equal(item.message.actions, chunk.actions)


def test_topics_and_times_filter(bag, run):
    stamps = sorted(stamp for stamp, topic, _ in run.items if topic == TOOL_POSE)
    with BagReader(bag) as reader:
        found = list(reader.messages([TOOL_POSE, "/never/recorded"], stamps[3], stamps[9]))
        assert [item.stamp_ns for item in found] == stamps[3:9]
        assert {item.topic for item in found} == {TOOL_POSE}
        assert list(reader.messages(["/never/recorded"])) == []
        assert list(reader.messages([])) == []


def test_one_file_opens_without_its_folder(bag, tmp_path, run):
    shutil.copy(bag / "bag_0.mcap", tmp_path / "alone.mcap")
    with BagReader(tmp_path / "alone.mcap") as reader:
        assert sum(1 for _ in reader.messages()) == len(run.items)


def test_missing_and_foreign_bags_say_so_in_one_sentence(tmp_path):
    with pytest.raises(RecordingError, match=r"bag .*/none does not exist$"):
        BagReader(tmp_path / "none")
    (tmp_path / "text.mcap").write_text("not a recording at all, though it has some length to it")
    with pytest.raises(RecordingError, match=r"text\.mcap is not an MCAP recording$"):
        BagReader(tmp_path / "text.mcap")


def test_message_that_does_not_fit_its_definition_is_damage(tmp_path, kit):
    with BagWriter(tmp_path / "bag") as writer:
        kit.add_topic(writer, ARM_STATUS)
        writer.write("/arm/status", 1, b"\x00\x01\x00\x00abc")
    with BagReader(tmp_path / "bag") as reader, pytest.raises(RecordingError, match="is damaged"):
        list(reader.messages())


def test_a_definition_without_fields_is_none(tmp_path, kit):
    with BagWriter(tmp_path / "bag") as writer:
        writer.add_topic("/arm/status", replace(kit.definition("bid_msgs/msg/ArmStatus"), text=""))
        writer.write("/arm/status", 1, serialize_message(ArmStatus()))
    said = "has no definition of bid_msgs/msg/ArmStatus, the type of /arm/status"
    with BagReader(tmp_path / "bag") as reader, pytest.raises(RecordingError, match=said):
        list(reader.messages())


def test_serialized_bytes_are_stored_unchanged(run, tmp_path, kit):
    sent = [serialize_message(message) for _, topic, message in run.ordered() if topic == ARM_STATUS]
    with BagWriter(tmp_path / "bag") as writer:
        kit.add_topic(writer, ARM_STATUS)
        for number, data in enumerate(sent):
            writer.write("/arm/status", number, data)
    with Reader(tmp_path / "bag") as reader:
        stored = [bytes(data) for _, _, data in reader.messages()]
    assert stored == sent
    assert deserialize_message(stored[5], ArmStatus).reference_gripper == 0.04


@pytest.mark.parametrize("about", [{"namespace": "/cell/left"}, {}], ids=["ours", "of_another_recorder"])
def test_relative_names_are_found_in_the_namespace_of_the_recording(run, tmp_path, about):
    sent = [stamp for stamp, topic, _ in run.ordered() if topic == ARM_STATUS]
    with BagReader(run.write(tmp_path / "bag", "/cell/left", about)) as reader:
        assert set(reader.topics) == {f"/cell/left/{topic}" for _, topic, _ in run.items}
        found = list(reader.messages([ARM_STATUS, "/cell/left/arm/tool_pose"]))
        assert [item.stamp_ns for item in found if item.topic == ARM_STATUS] == sent
        assert {item.topic for item in found} == {ARM_STATUS, "/cell/left/arm/tool_pose"}
        assert reader.recorded_name(POLICY_CHUNK) == ("/cell/left/policy/chunk" if about else "/policy/chunk")
        assert reader.recorded_name(DIAGNOSTICS) == "/diagnostics"


def test_a_topic_that_was_remapped_is_found(run, tmp_path, kit):
    about = {"namespace": "/", "remapped": '{"arm/status": "/other/state"}'}
    moved = kit.Run([(at, "/other/state" if topic == ARM_STATUS else topic, item) for at, topic, item in run.items])
    with BagReader(moved.write(tmp_path / "bag", about=about, like={"/other/state": ARM_STATUS})) as reader:
        assert (
            reader.recorded_name(ARM_STATUS) == "/other/state" and reader.recorded_name(TOOL_POSE) == "/arm/tool_pose"
        )
        assert len(list(reader.messages([ARM_STATUS]))) == reader.counts["/other/state"] > 10


def test_a_bag_of_two_systems_is_read_by_full_names_only(run, tmp_path, kit):
    both = kit.Run([(at, f"/{side}/{topic}", item) for at, topic, item in run.items for side in ("left", "right")])
    types = {topic: topic.split("/", 2)[2] for _, topic, _ in both.items}
    with BagReader(both.write(tmp_path / "bag", like=types)) as reader:
        assert list(reader.messages(["/right/arm/status"]))
        with pytest.raises(
            RecordingError, match=r"holds /left/arm/status and /right/arm/status; valid is a bag of one"
        ):
            list(reader.messages([ARM_STATUS]))
