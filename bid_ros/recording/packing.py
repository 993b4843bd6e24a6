"""What rosbag2 compresses with zstd outside its storage format: whole files, or each message."""

from pathlib import Path
from typing import Final

from zstandard import ZstdDecompressor

from bid_ros.core.errors import RecordingError

PACKED: Final = ".zstd"  # behind the name of a file
FRAME: Final = b"\x28\xb5\x2f\xfd"  # begin of what zstd compressed; a message (CDR) begins with 0


def unpacked_name(file: Path) -> str:
    """Return the name of a file without that of its compression."""
    return file.name.removesuffix(PACKED)


def unpack_file(file: Path, folder: Path) -> Path:
    """Write a file without its compression into a folder; one that ends too early is written up to there.

    Raises:
        RecordingError: it cannot be written.
        ZstdError: it is damaged.
    """
    target = folder / unpacked_name(file)
    try:
        with file.open("rb") as packed, target.open("wb") as plain:
            ZstdDecompressor().copy_stream(packed, plain)
    except OSError as error:
        raise RecordingError(f"{file} cannot be unpacked into {folder}: {error.strerror}") from error
    return target


def unpacked(data: bytes) -> bytes:
    """Return a message of ROS 2 without its compression, if it has one. Raises ZstdError if it is damaged."""
    return ZstdDecompressor().decompressobj().decompress(data) if data[:4] == FRAME else data
