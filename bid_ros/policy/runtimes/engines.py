"""Compiled engines on disk. Each has a key file that says what it was compiled from, for and with."""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from bid_ros.core.errors import BidError

KEY: Final = "key.json"


@dataclass(frozen=True)
class EngineKey:
    """What an engine depends on.

    Attributes:
        runtime, precision: ``tensorrt``, ``fp16`` and so on.
        graph: sha256 of the ONNX file.
        inputs: shape of each input: the profile has these shapes alone.
        gpu, capability, driver: of the computer.
        versions: of the libraries, by name.
    """

    runtime: str
    precision: str
    graph: str
    inputs: Mapping[str, Sequence[int]]
    gpu: str
    capability: str
    driver: str
    versions: Mapping[str, str]


def default_cache() -> Path:
    """Return the folder of engines: ``BID_ENGINES``, or ``bid_ros/engines`` in the user's cache folder."""
    if given := os.environ.get("BID_ENGINES"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bid_ros" / "engines"


class EngineCache:
    """Engines in a folder. A folder of its own for each of them; the timing cache is shared.

    Args:
        root: the folder.
        build: whether a missing or stale engine may be built, which takes minutes.
    """

    def __init__(self, root: Path, build: bool) -> None:
        self.root, self.build = root, build

    def open(self, key: EngineKey, graph: str) -> Path:
        """Return the folder of an engine, empty if it is to be built.

        Args:
            key: the engine that is needed.
            graph: name of its ONNX file, for messages.

        Raises:
            BidError: the engine is missing, stale, foreign or damaged and may not be built, or the folder cannot be
                written.
        """
        folder, problem = self.folder(key), self._problem(key, graph)
        if not problem:
            return folder
        if not self.build:
            name = key.runtime if key.precision == "fp32" else f"{key.runtime}:{key.precision}"
            raise BidError(f"{problem}; build it with: bid policy compile BUNDLE --runtime {name}")
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            (folder / KEY).touch()
        except OSError as error:
            raise BidError(
                f"the folder of engines {self.root} cannot be written ({error.strerror}); valid is a folder of yours, "
                "given with the parameter engines or BID_ENGINES"
            ) from error
        return folder

    def seal(self, key: EngineKey) -> None:
        """Say what a built engine is, with the hash of each of its files."""
        folder = self.folder(key)
        hashes = {path.name: sha256_of(path) for path in sorted(folder.glob("*.engine"))}
        (folder / KEY).write_text(json.dumps({**_plain(key), "files": hashes}, indent=1))

    def folder(self, key: EngineKey) -> Path:
        """Return the folder of an engine. It is the same on all computers: a foreign engine is found and refused."""
        inputs = hashlib.sha256(json.dumps(_plain(key)["inputs"], sort_keys=True).encode()).hexdigest()
        return self.root / f"{key.runtime}-{key.precision}-{key.graph[:16]}-{inputs[:8]}"

    def _problem(self, key: EngineKey, graph: str) -> str:
        """Return why the engine cannot be used; empty if it can."""
        folder = self.folder(key)
        found, wanted = _read(folder), _plain(key)
        if not found:
            others = self._compiled(key)
            compiled = f"; compiled are {', '.join(others)}" if others else ""
            return (
                f"there is no {key.runtime} engine of {graph} for {_shapes(wanted['inputs'])} in {self.root}{compiled}"
            )
        for name, value in wanted.items():
            if found.get(name) != value:
                kind = "stale" if name in ("driver", "versions") else "foreign"
                return f"the engine {folder} is {kind}: its {name} is {found.get(name)}, here it is {value}"
        for name, expected in found.get("files", {}).items():
            if not (folder / name).is_file() or sha256_of(folder / name) != expected:
                return f"the engine {folder} is damaged: {name} is missing or was replaced"
        return ""

    def _compiled(self, key: EngineKey) -> list[str]:
        """Return the shapes that the same graph was compiled for."""
        keys = [_read(path) for path in sorted(self.root.glob(f"{key.runtime}-{key.precision}-{key.graph[:16]}-*"))]
        return [_shapes(found["inputs"]) for found in keys if "inputs" in found]


def _plain(key: EngineKey) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(json.dumps(asdict(key)))
    return content


def _read(folder: Path) -> dict[str, Any]:
    try:
        content = json.loads((folder / KEY).read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _shapes(inputs: Mapping[str, Sequence[int]]) -> str:
    return " and ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in inputs.items())


def sha256_of(path: Path) -> str:
    """Return the hash of a file's content, hexadecimal, without holding the file in memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
