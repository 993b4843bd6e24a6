from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from rclpy.serialization import serialize_message
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import Reader

from bid_msgs.msg import ArmStatus
from bid_ros.core.errors import RecordingError
from bid_ros.core.topics import Qos
from bid_ros.nodes import run
from bid_ros.recording import writer as writer_module
from bid_ros.recording.reader import BagReader
from bid_ros.recording.repair import repair_bag
from bid_ros.recording.storage import PROVISIONAL_END, BagFile
from bid_ros.recording.writer import BagWriter, WriterConfig
from bid_ros.system import ending

ARM_STATUS = "/arm/status"
EPISODE_EVENT = "/episode/event"

ROOT = Path(__file__).parents[2]

CHILD = """
import sys
from bid_ros.recording.definitions import find_definition
from bid_ros.core.topics import IMAGE_TYPE
from bid_ros.recording.writer import BagWriter, WriterConfig

if sys.argv[2] != "0":
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
writer = BagWriter(sys.argv[1], WriterConfig(flush_period_s=0.02, compression="none"))
found = find_definition("builtin_interfaces/msg/Time")
writer.add_topic("/time", found)
image = find_definition(IMAGE_TYPE)
writer.add_topic("/image", image)
# CDR by hand: an Image of zeros with 20 kB of data.
pixels = bytes([0, 1, 0, 0]) + bytes(8) + bytes([1, 0, 0, 0, 0]) + bytes(3) + bytes(8)
pixels += bytes([1, 0, 0, 0, 0, 0, 0, 0]) + bytes(4) + (20_000).to_bytes(4, "little") + bytes(20_000)
for number in range(100_000):
    writer.write("/time", number, bytes([0, 1, 0, 0]) + number.to_bytes(4, "little") + bytes(4))
    writer.write("/image", number, pixels)
    if number % 7 == 0:
        writer.flush()
        print(number, flush=True)
"""


def start_child(bag: Path, file_limit: int = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(bag), str(file_limit)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 6))])
def test_every_acknowledged_message_survives_sigkill(tmp_path, seed):
    bag = tmp_path / "bag"
    child = start_child(bag)
    assert child.stdout is not None
    acknowledged = [int(child.stdout.readline())]
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(random.Random(seed).uniform(0.0, 0.25))
    child.kill()
    rest, errors = child.communicate(timeout=10)
    assert not errors
    acknowledged += [int(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")]

    with BagReader(bag) as reader:
        times = [item.message.sec for item in reader.messages(["/time"])]
        assert not reader.was_complete
    assert times == list(range(len(times)))
    assert times[-1] >= acknowledged[-1]
    report = repair_bag(bag)
    assert report.damaged_chunks == 0
    with AnyReader([bag]) as reader:
        assert sum(1 for item in reader.messages() if item[0].topic == "/time") == len(times)
        assert reader.message_count == report.messages


def test_file_is_whole_for_other_readers_while_it_is_being_written(tmp_path, kit):
    writer = BagWriter(tmp_path / "bag")
    kit.add_topic(writer, ARM_STATUS)
    for number in range(3):
        writer.write(ARM_STATUS, number, serialize_message(kit.stamped(ArmStatus(sequence=number), number)))
        writer.flush()
        with AnyReader([tmp_path / "bag"]) as reader:
            found = [reader.deserialize(data, item.msgtype).sequence for item, _, data in reader.messages()]
        assert found == list(range(number + 1))
    writer.close()


def test_a_large_backlog_never_leaves_the_file_without_an_end(tmp_path, kit, monkeypatch):
    """What a kill in the middle of a batch would leave: the file as it is after every message."""
    tails = []
    add_message = BagFile.add_message

    def add_and_look(file: BagFile, *arguments: object) -> None:
        add_message(file, *arguments)
        tails.append(file.path.read_bytes()[-len(PROVISIONAL_END) :])

    monkeypatch.setattr(BagFile, "add_message", add_and_look)
    with BagWriter(tmp_path / "bag", WriterConfig(compression="none", flush_period_s=0.5)) as writer:
        kit.add_topic(writer, ARM_STATUS)
        with writer._file_lock:  # as a disk that falls behind
            for number in range(12):
                writer.write(ARM_STATUS, number, bytes(1 << 20))
    assert len(tails) == 12 and set(tails) == {PROVISIONAL_END}


def test_messages_reach_the_file_within_the_period_without_a_flush(tmp_path, kit):
    with BagWriter(tmp_path / "bag", WriterConfig(flush_period_s=0.1)) as writer:
        kit.add_topic(writer, ARM_STATUS)
        writer.write(ARM_STATUS, 1, serialize_message(ArmStatus()))
        limit = time.monotonic() + 5
        while not writer.counts[ARM_STATUS] and time.monotonic() < limit:
            pass
        assert writer.counts == {ARM_STATUS: 1}


def test_full_disk_is_an_error_and_costs_only_what_was_not_flushed(tmp_path):
    child = start_child(tmp_path / "bag", file_limit=400_000)
    out, errors = child.communicate(timeout=60)
    assert child.returncode == 1
    assert "RecordingError" in errors
    assert "can no longer be written" in errors
    with BagReader(tmp_path / "bag") as reader:
        assert [item.message.sec for item in reader.messages(["/time"])][-1] >= int(out.splitlines()[-1])


def test_a_disk_that_stands_still_is_said_before_a_node_that_was_asked_to_end_is_ended_by_force(tmp_path, monkeypatch):
    assert run.LINGER_S + writer_module.CLOSE_SECONDS < ending.END_S
    monkeypatch.setattr(writer_module, "CLOSE_SECONDS", 0.2)
    writer = BagWriter(tmp_path / "bag")
    with writer._file_lock, pytest.raises(RecordingError, match=r"could not be finished within 0\.2 s; what was"):
        writer.close()


def test_bag_opens_with_rosbags_and_keeps_types_counts_and_qos(tmp_path, kit):
    bag = tmp_path / "bag"
    with BagWriter(bag, custom_data={"task": "small"}) as writer:
        kit.add_topic(writer, ARM_STATUS)
        found = kit.definition("bid_msgs/msg/EpisodeEvent")
        latched = Qos(durability="transient_local", depth=1)
        writer.add_topic(EPISODE_EVENT, found, latched)
        for number in range(4):
            writer.write(ARM_STATUS, 1000 + number, serialize_message(ArmStatus(sequence=number, reason="née")))
    with Reader(bag) as reader:
        assert (reader.start_time, reader.end_time, reader.message_count) == (1000, 1004, 4)
        assert reader.ros_distro == "jazzy"
        offered = {item.topic: item.ext.offered_qos_profiles[0] for item in reader.connections}
        assert offered[EPISODE_EVENT].durability.name == "TRANSIENT_LOCAL"
        assert offered[ARM_STATUS].reliability.name == "RELIABLE"
    with AnyReader([bag]) as reader:
        messages = [reader.deserialize(data, item.msgtype) for item, _, data in reader.messages()]
    assert [(item.sequence, item.reason) for item in messages] == [(n, "née") for n in range(4)]
    information = yaml.safe_load((bag / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert information["version"] == 9
    assert information["relative_file_paths"] == ["bag_0.mcap"]
    assert information["custom_data"] == {"task": "small"}


def test_messages_received_out_of_order_are_read_in_order(tmp_path, kit):
    with BagWriter(tmp_path / "bag") as writer:
        kit.add_topic(writer, ARM_STATUS)
        for stamps in ((5, 3), (4, 1)):
            for stamp in stamps:
                writer.write(ARM_STATUS, stamp, serialize_message(ArmStatus(sequence=stamp)))
            writer.flush()
        # A recorder that is killed leaves the same file without its index.
        with BagReader(tmp_path / "bag") as reader:
            assert [item.stamp_ns for item in reader.messages()] == [1, 3, 4, 5]
    with BagReader(tmp_path / "bag") as reader:
        assert [item.message.sequence for item in reader.messages()] == [1, 3, 4, 5]


def test_dropped_messages_are_counted_by_topic(tmp_path, kit):
    with BagWriter(tmp_path / "bag", WriterConfig(queue_bytes=1 << 16)) as writer:
        kit.add_topic(writer, "/camera/wrist/image")
        kit.add_topic(writer, ARM_STATUS)
        assert not writer.write("/camera/wrist/image", 1, bytes(40_000))
        assert writer.write(ARM_STATUS, 2, serialize_message(ArmStatus()))
        assert writer.dropped == {"/camera/wrist/image": 1}
    assert writer.counts == {"/camera/wrist/image": 0, ARM_STATUS: 1}


def test_misuse_is_refused(tmp_path, kit):
    writer = BagWriter(tmp_path / "bag")
    kit.add_topic(writer, ARM_STATUS)
    with pytest.raises(RecordingError, match="exists already; valid is a new folder"):
        BagWriter(tmp_path / "bag")
    with pytest.raises(RecordingError, match="recorded already"):
        kit.add_topic(writer, ARM_STATUS)
    with pytest.raises(RecordingError, match=f"/other was not added to the bag; valid are {ARM_STATUS}"):
        writer.write("/other", 0, b"")
    with pytest.raises(RecordingError, match="stamp -1 ns; valid is 0 or later"):
        writer.write(ARM_STATUS, -1, b"")
    writer.close()
    writer.close()
    with pytest.raises(RecordingError, match="is closed"):
        writer.write(ARM_STATUS, 0, b"")
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingError, match="cannot be created: Not a directory"):
        BagWriter(tmp_path / "file" / "bag")


@pytest.mark.parametrize(
    "values",
    [{"flush_period_s": 0.0}, {"metadata_period_s": 100.0}, {"queue_bytes": 10}, {"compression": "zip"}],
)
def test_config_names_the_value_and_the_valid_range(values):
    ((name, value),) = values.items()
    with pytest.raises(RecordingError, match=rf"{name} is '?{value}'?; valid is "):
        WriterConfig(**values)
