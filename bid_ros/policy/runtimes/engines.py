"""Folders of compiled engines. Each has a key file that says what its engine was compiled from, for and with."""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bid_ros.core.errors import BidError

KEY: Final = "key.json"
Key = Mapping[str, Any]
"""What an engine depends on: ``runtime`` with its options, ``graph`` (sha256), ``inputs`` (shapes), ``gpu``,
``versions`` of the libraries."""


def default_cache() -> Path:
    """Return the folder of engines: ``BID_ENGINES``, or ``bid_ros/engines`` in the user's cache folder."""
    if given := os.environ.get("BID_ENGINES"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bid_ros" / "engines"


class EngineCache:
    """Engines in a folder, each in a folder of its own. The timing cache is shared.

    Args:
        root: the folder.
        build: whether a missing engine may be built, which takes minutes.
    """

    def __init__(self, root: Path, build: bool) -> None:
        self.root, self.build = root, build

    def open(self, key: Key, graph: str) -> Path:
        """Return the folder of an engine, empty if it is to be built.

        Args:
            key: the engine that is needed.
            graph: name of its ONNX file, for messages.

        Raises:
            BidError: there is no such engine and it may not be built, or the folder cannot be written.
        """
        folder = self._folder(key)
        if (folder / KEY).is_file():
            return folder
        if not self.build:
            others = sorted(f"{_described(found)}" for found in self._others(key))
            raise BidError(
                f"there is no {key['runtime']} engine of {graph} for {_described(key)} in {self.root}; "
                f"compiled are {'; '.join(others) or 'none'}; build it with: bid policy compile BUNDLE --runtime "
                f"{key['runtime']}"
            )
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        except OSError as error:
            raise BidError(
                f"the folder of engines {self.root} cannot be written ({error.strerror}); valid is a folder of yours, "
                "given with the parameter engines or BID_ENGINES"
            ) from error
        return folder

    def seal(self, key: Key) -> None:
        """Say what a built engine is. Without that it counts as missing."""
        if self.build:
            (self._folder(key) / KEY).write_text(json.dumps(key, indent=1))

    def _folder(self, key: Key) -> Path:
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        return self.root / f"{self._stem(key)}-{digest[:8]}"

    def _stem(self, key: Key) -> str:
        return f"{key['runtime'].replace(':', '-')}-{key['graph'][:16]}"

    def _others(self, key: Key) -> list[Key]:
        """Return the keys of the engines of the same graph."""
        files = self.root.glob(f"{self._stem(key)}-*/{KEY}")
        return [json.loads(path.read_text()) for path in files]


def _described(key: Key) -> str:
    shapes = " and ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in key["inputs"].items())
    versions = ", ".join(f"{name} {version}" for name, version in key["versions"].items())
    return f"{shapes} on {key['gpu']} ({versions})"


def sha256_of(path: Path) -> str:
    """Return the hash of a file's content, hexadecimal, without holding the file in memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
