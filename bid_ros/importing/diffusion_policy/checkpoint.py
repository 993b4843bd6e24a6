"""What a checkpoint file holds: configuration and tensors. :mod:`reader`, a process of its own, reads the pickle."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

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
        with zipfile.ZipFile(file) as archive:
            tensors = {name: _tensor(archive, answer["root"], place) for name, place in places.items()}
    except (KeyError, ValueError, TypeError, RuntimeError, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split())
        raise BidError(f"{file} is damaged: the numbers of a tensor of '{group}' cannot be read: {reason}") from error
    return Checkpoint(file, config, tensors)


def _read_pickle(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise BidError(f"{file} does not exist; valid is a checkpoint file")
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


def _tensor(archive: zipfile.ZipFile, root: str, place: list[Any]) -> torch.Tensor:
    """Return a tensor, after checking that it lies inside its storage."""
    kind, key, count, offset, size, stride = place
    data = archive.read(f"{root}data/{key}")
    values = torch.frombuffer(bytearray(data), dtype=TYPES[kind]) if data else torch.empty(0, dtype=TYPES[kind])
    if len(size) != len(stride) or any(type(n) is not int or n < 0 for n in (*size, *stride, offset, count)):
        raise ValueError(f"size {size}, stride {stride} and offset {offset}")
    last = offset + sum((extent - 1) * step for extent, step in zip(size, stride, strict=True))
    if 0 not in size and last >= len(values):
        raise ValueError(f"size {size} ends behind its {len(values)} numbers")
    return values.as_strided(size, stride, offset).clone()
