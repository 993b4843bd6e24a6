"""The files of a bag: rosbag2 folders (MCAP or sqlite3), single files of them, and ROS 1 bags."""

from pathlib import Path
from typing import Final

import yaml

from bid_ros.core.errors import RecordingError
from bid_ros.recording.metadata import METADATA_NAME

MCAP: Final = ".mcap"
ROS1: Final = ".bag"
SUFFIXES: Final = (MCAP, ".db3", ".zstd")  # of the files in a folder, those of bid_ros first
KINDS: Final = "a rosbag2 folder, or a file that ends in .mcap, .db3 or .bag"


def bag_files(path: str | Path) -> tuple[Path, ...]:
    """Return the files of a bag folder in order, or the one file that ``path`` names.

    Raises:
        RecordingError: there is no such folder or file, or it is no bag.
    """
    path = Path(path)
    if path.is_file():
        if path.suffix not in (*SUFFIXES, ROS1):
            raise RecordingError(f"{path} is no bag; valid is {KINDS}")
        return (path,)
    if not path.is_dir():
        raise RecordingError(f"bag {path} does not exist")
    found = _inside(path)
    if not found:
        raise RecordingError(f"bag {path} holds no .mcap file, and no .db3 file either")
    return tuple(sorted(found, key=lambda item: (len(item.name), item.name)))


def is_bag_folder(path: Path) -> bool:
    """Whether a folder is one bag: it holds the files of a rosbag2, or their metadata."""
    return path.is_dir() and ((path / METADATA_NAME).is_file() or bool(_inside(path)))


def reads_as_folder(path: Path, files: tuple[Path, ...]) -> bool:
    """Whether a bag is opened through its metadata: one in sqlite3 files, or compressed outside the storage format."""
    if not (path / METADATA_NAME).is_file():
        return False
    try:
        about = yaml.safe_load((path / METADATA_NAME).read_text())["rosbag2_bagfile_information"]
        compressed = str(about.get("compression_mode") or "").lower() not in ("", "none")
    except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError, AttributeError):
        compressed = False
    return compressed or any(file.suffix != MCAP for file in files)


def _inside(folder: Path) -> list[Path]:
    """Return the files of the first storage format that a folder holds."""
    for suffix in SUFFIXES:
        # A hidden file is left over from an interrupted repair.
        found = [item for item in folder.glob(f"*{suffix}") if not item.name.startswith(".") and item.is_file()]
        if found:
            return found
    return []
