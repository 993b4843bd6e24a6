"""What a checkpoint file holds: configuration and tensors. :mod:`reader`, a process of its own, reads the pickle."""

import json
import math
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from bid_ros.core.errors import BidError

READER: Final = Path(__file__).with_name("reader.py")
TIMEOUT_S: Final = 120.0
TYPES: Final = {
    "FloatStorage": torch.float32,
    "DoubleStorage": torch.float64,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}
UNREADABLE: Final[tuple[type[Exception], ...]] = (
    *(KeyError, ValueError, TypeError, RuntimeError, OverflowError, EOFError, OSError),
    *(zipfile.BadZipFile, zlib.error),
)


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A checkpoint.

    Attributes:
        path: its file.
        config: ``cfg`` of the training.
        tensors: weights by name, of the averaged network where the training used one.
    """

    path: Path
    config: Mapping[str, Any]
    tensors: Mapping[str, torch.Tensor]


def read_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint without running anything that it asks for.

    Raises:
        BidError: the file is missing or damaged, asks for anything but data, or has no configuration or weights.
    """
    file = Path(path)
    answer = _read_pickle(file)
    config = answer.get("cfg")
    if not isinstance(config, dict) or not isinstance(config.get("policy"), dict):
        raise BidError(f"{file}: cfg has no mapping 'policy'; valid is a checkpoint of the published Diffusion Policy")
    training = config.get("training")
    averaged = isinstance(training, dict) and training.get("use_ema") is True
    group = "ema_model" if averaged else "model"
    places = answer["tensors"].get(group)
    if not places:
        raise BidError(f"{file}: state_dicts has no tensors of '{group}', which training.use_ema {averaged} asks for")
    try:
        tensors = _tensors(file, answer["root"], places)
    except UNREADABLE as error:
        reason = " ".join(str(error).split())
        raise BidError(f"{file} is damaged: the numbers of a tensor of '{group}' cannot be read: {reason}") from error
    return Checkpoint(file, config, tensors)


def read_arrays(file: Path) -> dict[str, NDArray[np.float64]]:
    """Return the arrays ``(S,)`` of numbers in a pickle's mapping, by name.

    Raises:
        BidError: as :func:`read_checkpoint`.
    """
    found = _read_pickle(file).get("arrays", {})
    return {name: np.array(values, dtype=np.float64) for name, values in found.items()}


def read_state(file: Path) -> dict[str, torch.Tensor] | None:
    """Return the tensors of a file that is a mapping of tensors alone; None: it is another kind of checkpoint.

    Raises:
        BidError: as :func:`read_checkpoint`.
    """
    answer = _read_pickle(file)
    places = answer.get("tensors", {}).get("")
    if not places:
        return None
    try:
        return _tensors(file, answer["root"], places)
    except UNREADABLE as error:
        reason = " ".join(str(error).split())
        raise BidError(f"{file} is damaged: the numbers of a tensor cannot be read: {reason}") from error


def _read_pickle(file: Path) -> dict[str, Any]:
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise BidError(f"{file} {what}; valid is a checkpoint file, such as latest.ckpt")
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(READER), str(file.resolve())],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
            env={},
        )
        answer: dict[str, Any] = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError) as error:
        raise BidError(
            f"{file} cannot be read within the limits of time and memory of a checkpoint's reader"
        ) from error
    if "refused" in answer:
        raise BidError(
            f"{file} is refused: its pickle asks for {answer['refused']}; valid are tensors, plain values and the "
            "configuration. Nothing of it was run"
        )
    if "damaged" in answer:
        raise BidError(f"{file} cannot be read as a checkpoint: {answer['damaged']}")
    return answer


def _tensors(file: Path, root: str, places: Mapping[str, list[Any]]) -> dict[str, torch.Tensor]:
    """Return tensors by name. Together they take no more memory than the file has bytes, and their storages neither."""
    storages: dict[str, bytearray] = {}
    found, left, unread = {}, file.stat().st_size, file.stat().st_size
    with zipfile.ZipFile(file) as archive:
        for name, (kind, key, count, offset, size, stride) in places.items():
            if len(size) != len(stride) or any(type(n) is not int or n < 0 for n in (*size, *stride, offset, count)):
                raise ValueError(f"size {size}, stride {stride} and offset {offset}")
            numbers, width = math.prod(size), TYPES[kind].itemsize
            left -= numbers * width
            unread -= 0 if key in storages else count * width
            if numbers > count or min(left, unread) < 0:
                raise ValueError(f"size {size} is more than the file holds")
            if key not in storages:
                storages[key] = _storage(archive, f"{root}data/{key}", count * width)
            if len(storages[key]) != count * width:
                raise ValueError(f"size {size} ends behind its numbers")
            found[name] = _tensor(storages[key], TYPES[kind], offset, size, stride)
    return found


def _storage(archive: zipfile.ZipFile, name: str, size: int) -> bytearray:
    member = archive.getinfo(name)
    if member.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{name} is compressed, which torch does not do")
    if not member.file_size == member.compress_size == size:
        raise ValueError(f"{name} has {member.file_size} bytes in place of {size}")
    return bytearray(archive.read(member))


def _tensor(data: bytearray, kind: torch.dtype, offset: int, size: list[int], stride: list[int]) -> torch.Tensor:
    """Return a tensor, after checking that it lies inside its storage."""
    values = torch.frombuffer(data, dtype=kind) if data else torch.empty(0, dtype=kind)
    last = offset + sum((extent - 1) * step for extent, step in zip(size, stride, strict=True))
    if 0 not in size and last >= len(values):
        raise ValueError(f"size {size} ends behind its {len(values)} numbers")
    return values.as_strided(size, stride, offset).clone()
