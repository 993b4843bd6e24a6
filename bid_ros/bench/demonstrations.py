"""Reads the files of demonstrations that people have published."""

import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import RecordingError


def read_arrays(path: Path, what: str, names: Collection[str]) -> dict[str, NDArray[Any]]:
    """Return the arrays of these names in an npz file; shapes are not checked. No pickle is read.

    Args:
        path: of the file.
        what: it holds, the subject of each sentence, such as ``Push-T data``.
        names: of the arrays that are needed.

    Raises:
        RecordingError: the file is missing or damaged, or lacks an array.
    """
    if not path.is_file():
        raise RecordingError(f"{what} {path} does not exist")
    try:
        with np.load(path, allow_pickle=False) as content:
            arrays = {name: content[name] for name in names if name in content.files}
    except (OSError, ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise RecordingError(f"{what} {path} is damaged or of another kind: {error}") from error
    if missing := next((name for name in names if name not in arrays), ""):
        raise RecordingError(f"{what} {path} lacks '{missing}'; needed are {', '.join(names)}")
    return arrays
