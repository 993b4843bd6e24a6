"""Small files of data sets: damaged ones become one sentence, written ones appear whole or not at all."""

import json
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bid_ros.core.errors import RecordingError

DAMAGE: Final = (
    OSError, ValueError, KeyError, TypeError, IndexError, EOFError, AttributeError, RuntimeError, zipfile.BadZipFile,
    zlib.error,
)  # fmt: skip


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Around reading a file of a data set: what a damaged one raises becomes one sentence.

    Raises:
        RecordingError: the file is missing, damaged or of another kind.
    """
    try:
        yield
    except DAMAGE as error:
        # Libraries also say "not found" of what should be inside the file.
        if isinstance(error, FileNotFoundError) and (error.filename or not path.exists()):
            raise RecordingError(f"data set file {error.filename or path} does not exist") from error
        said = " ".join(str(error).split()) or type(error).__name__
        raise RecordingError(f"data set file {path} is damaged or of another kind: {said}") from error


def read_json(path: Path) -> Any:
    """Return the content of a JSON file. Raises RecordingError if it is missing or damaged."""
    with readable(path):
        return json.loads(path.read_text())


def read_json_lines(path: Path) -> list[Any]:
    """Return the lines of a JSON lines file. Raises RecordingError if it is missing or damaged."""
    with readable(path):
        return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file, indented as the LeRobot package does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=4, ensure_ascii=False))


def remove(path: Path) -> None:
    """Remove a file or a folder, if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
