from __future__ import annotations

import random

import pytest
from mcap.reader import make_reader
from mcap.writer import Writer
from rclpy.serialization import serialize_message
from rosbags.highlevel import AnyReader

from bid_msgs.msg import ArmStatus
from bid_ros.core.errors import RecordingError
from bid_ros.core.topics import Qos
from bid_ros.recording.files import bag_files, qos_text
from bid_ros.recording.reader import BagReader
from bid_ros.recording.repair import is_complete, repair_bag
from bid_ros.recording.storage import PROVISIONAL_END, BagFile

ARM_STATUS = "/arm/status"

CHUNKS, PER_CHUNK = 6, 5
INDEX_BYTES = 9 + 2 + 4 + 16 * PER_CHUNK  # the index of a chunk's one channel, which follows the chunk


@pytest.fixture(params=["lz4", "none"])
def written(tmp_path, kit, request):
    """Return a bag of six chunks, its bytes before it was closed, and the offset of the end of each chunk's data."""
    # The file alone, without the thread of BagWriter: that one also flushes by the clock, which makes other chunks.
    bag = tmp_path / "bag"
    bag.mkdir()
    ends = []
    file = BagFile(bag / "bag_0.mcap", request.param)
    file.add_topic(ARM_STATUS, kit.definition("bid_msgs/msg/ArmStatus"), qos_text(Qos()))
    for number in range(CHUNKS * PER_CHUNK):
        file.add_message(ARM_STATUS, 100 + number, serialize_message(ArmStatus(sequence=number)))
        if number % PER_CHUNK == PER_CHUNK - 1:
            file.commit()
            ends.append(file.path.stat().st_size - len(PROVISIONAL_END) - INDEX_BYTES)
    content = file.path.read_bytes()
    file.finish()
    file.write_metadata({"task": "small"})
    return bag, content, ends


def sequences(bag):
    with BagReader(bag) as reader:
        return [item.message.sequence for item in reader.messages()]


@pytest.mark.parametrize("seed", range(25))
def test_cut_anywhere_loses_only_the_chunk_that_was_cut(written, seed):
    bag, content, ends = written
    cut = random.Random(seed).randrange(ends[0], len(content))
    file = bag / "bag_0.mcap"
    file.write_bytes(content[:cut])
    expected = list(range(PER_CHUNK * sum(end <= cut for end in ends)))
    assert sequences(bag) == expected
    assert file.read_bytes() == content[:cut], "reading changed the bag"

    report = repair_bag(bag)
    assert report.messages == len(expected)
    assert report.damaged_chunks == 0
    assert is_complete(file)
    with AnyReader([bag]) as reader:
        assert reader.message_count == len(expected)
        assert [reader.deserialize(data, item.msgtype).sequence for item, _, data in reader.messages()] == expected
    with file.open("rb") as stream:
        assert make_reader(stream, validate_crcs=True).get_summary().statistics.message_count == len(expected)


def test_end_that_a_killed_writer_left_is_no_loss(written):
    bag, content, _ = written
    (bag / "bag_0.mcap").write_bytes(content)
    (bag / "metadata.yaml").unlink()
    assert repair_bag(bag).cut_bytes == 0
    (bag / "bag_0.mcap").write_bytes(content[: -len(PROVISIONAL_END)] + b"\x06half a chunk")
    assert repair_bag(bag).cut_bytes > 0


def test_repair_brings_metadata_back_with_types_hashes_and_custom_data(written):
    bag, content, _ = written
    metadata = (bag / "metadata.yaml").read_text()
    (bag / "bag_0.mcap").write_bytes(content)
    repair_bag(bag)
    assert (bag / "metadata.yaml").read_text() == metadata
    (bag / "metadata.yaml").unlink()
    repair_bag(bag)
    assert (bag / "metadata.yaml").read_text() == metadata.replace("custom_data:\n    task: small", "custom_data: null")


def test_bag_without_a_fault_is_left_alone(written):
    bag, _, _ = written
    before = (bag / "bag_0.mcap").stat()
    assert repair_bag(bag).messages == CHUNKS * PER_CHUNK
    assert (bag / "bag_0.mcap").stat().st_mtime_ns == before.st_mtime_ns
    assert (bag / "bag_0.mcap").stat().st_ino == before.st_ino
    assert sorted(item.name for item in bag.iterdir()) == ["bag_0.mcap", "metadata.yaml"]


def test_damaged_chunk_is_reported_by_the_reader_and_left_out_by_the_repair(written):
    bag, _, ends = written
    file = bag / "bag_0.mcap"
    content = bytearray(file.read_bytes())
    middle = (ends[1] + ends[2]) // 2
    content[middle] ^= 0xFF
    file.write_bytes(content)
    with pytest.raises(RecordingError, match=r"bag .* is damaged \(.*\); bid episodes repair keeps what can be read"):
        sequences(bag)
    assert repair_bag(bag).damaged_chunks == 1
    lost = set(range(2 * PER_CHUNK, 3 * PER_CHUNK))
    assert sequences(bag) == [number for number in range(CHUNKS * PER_CHUNK) if number not in lost]


def test_what_cannot_be_repaired_says_why(tmp_path):
    with pytest.raises(RecordingError, match="does not exist"):
        repair_bag(tmp_path / "nothing")
    folder = tmp_path / "bag"
    folder.mkdir()
    with pytest.raises(RecordingError, match=r"holds no \.mcap file"):
        repair_bag(folder)
    (folder / "a_0.mcap").write_bytes(b"something else entirely, and long enough to be a recording")
    with pytest.raises(RecordingError, match=r"a_0\.mcap is not an MCAP recording"):
        repair_bag(folder)
    with (folder / "a_0.mcap").open("wb") as stream:
        writer = Writer(stream)
        writer.start(profile="ros1")
        writer.finish()
    with pytest.raises(RecordingError, match="not a recording of ROS 2"):
        repair_bag(folder)
    assert [item.name for item in folder.iterdir()] == ["a_0.mcap"]
    (folder / "a_1.mcap").write_bytes(b"")
    with pytest.raises(RecordingError, match="has 2 files; only a bag of one file can be repaired"):
        repair_bag(folder)


def test_files_of_a_bag_come_in_the_order_of_their_numbers(tmp_path):
    for name in ("b_10.mcap", "b_2.mcap", ".b_0.mcap.repair", ".x.mcap"):
        (tmp_path / name).touch()
    assert [item.name for item in bag_files(tmp_path)] == ["b_2.mcap", "b_10.mcap"]
    assert bag_files(tmp_path / "b_2.mcap") == (tmp_path / "b_2.mcap",)
