"""Bags that rosbag2 compressed outside the storage format: whole files, or each message."""

import shutil

import pytest
import zstandard
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

from bid_ros.core.errors import RecordingError
from bid_ros.curation.catalog import find_bags
from bid_ros.curation.copying import RawBag
from bid_ros.recording.reader import BagReader


@pytest.fixture
def bag(make_run, tmp_path):
    return make_run(seconds=0.2).write(tmp_path / "runs" / "bag")


def read(path):
    with BagReader(path) as reader:
        assert reader.was_complete
        return [(item.topic, item.stamp_ns, item.header_ns, bytes(item.data)) for item in reader.raw()]


def zipped(file, target):
    target.write_bytes(zstandard.ZstdCompressor().compress(file.read_bytes()))
    return target


def compressed(bag, target, storage):
    """Write a bag with each message compressed, as ``ros2 bag record --compression-mode message`` does."""
    with AnyReader([bag]) as source, Writer(target, version=9, storage_plugin=storage) as writer:
        names = {
            item.topic: writer.add_connection(item.topic, item.msgtype, typestore=source.typestore)
            for item in source.connections
        }
        for item, stamp, data in source.messages():
            writer.write(names[item.topic], stamp, data)
    return target


class MessageMode(Writer):
    def open(self):
        self.set_compression(CompressionMode.MESSAGE, CompressionFormat.ZSTD)
        super().open()


def test_a_file_packed_by_zstd_is_read_alone_and_in_its_folder(bag, tmp_path):
    plain = read(bag)
    assert read(zipped(bag / "bag_0.mcap", tmp_path / "alone.mcap.zstd")) == plain
    (zipped(bag / "bag_0.mcap", bag / "bag_0.mcap.zstd"), (bag / "bag_0.mcap").unlink())
    assert read(bag) == plain
    copied = RawBag(bag)
    with copied:
        assert sum(1 for _ in copied.messages()) == len(plain)
    (bag / "metadata.yaml").unlink()
    assert find_bags([bag.parent]) == [bag] and read(bag) == plain


def test_a_packed_copy_beside_its_file_is_not_a_second_bag(bag, tmp_path):
    folder = tmp_path / "loose"
    folder.mkdir()
    shutil.copy(bag / "bag_0.mcap", folder / "one.mcap")
    zipped(folder / "one.mcap", folder / "one.mcap.zstd")
    zipped(folder / "one.mcap", folder / "two.mcap.zstd")
    assert find_bags([folder]) == [folder / "one.mcap", folder / "two.mcap.zstd"]


@pytest.mark.parametrize("storage", [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_compressed_messages_are_read_with_and_without_the_folder(bag, tmp_path, storage, monkeypatch):
    monkeypatch.setitem(globals(), "Writer", MessageMode)
    packed = compressed(bag, tmp_path / "packed", storage)
    (file,) = packed.glob("packed.*")
    plain = read(bag)
    assert b"arm/status" in file.read_bytes() and plain[0][3] not in file.read_bytes()
    assert read(packed) == read(file) == plain


def test_a_damaged_bag_that_cannot_be_repaired_is_not_sent_to_the_repair(bag, tmp_path):
    packed = zipped(bag / "bag_0.mcap", tmp_path / "bad.mcap.zstd")
    packed.write_bytes(packed.read_bytes()[:4] + b"\xff" * 400)
    (tmp_path / "bad.db3").write_bytes(b"SQLite format 3\0" + bytes(200))
    for path in (packed, tmp_path / "bad.db3"):
        with pytest.raises(
            RecordingError, match=r"bad\.\w+.* is damaged .*; valid is a whole one: only a bag of one \.mcap"
        ):
            read(path)
    other = tmp_path / "text.zstd"
    shutil.copy(packed, other)
    with pytest.raises(RecordingError, match=r"text\.zstd is no bag; valid is .* \(or either with \.zstd\)"):
        read(other)
