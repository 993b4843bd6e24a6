"""Tensors of checkpoints: read by name, checked, and put into networks."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bid_ros.core.errors import BidError
from bid_ros.core.extras import extra

if TYPE_CHECKING:
    import torch
    from torch import nn

COMPILED: Final = "._orig_mod"  # in the names of a network that was compiled for training
INDEX: Final = ".index.json"  # behind the name of a file whose tensors are in several
UNUSED: Final = "num_batches_tracked"  # counts of batch normalisation, which evaluation does not read


def read_safetensors(path: Path) -> "dict[str, torch.Tensor]":
    """Return all tensors of a file by name; where there is only its index, of the files that it names.

    Raises:
        BidError: a file is missing or damaged, or a package is not installed.
    """
    index = path.with_name(path.name + INDEX)
    if path.is_file() or not index.is_file():
        return _read_file(path)
    places = _places(index)
    found: dict[str, torch.Tensor] = {}
    for file in sorted(set(places.values())):
        found |= _read_file(path.with_name(file))
    for name, file in places.items():
        if name not in found:
            raise BidError(f"{path.with_name(file)} lacks the tensor '{name}', which {index} says is there")
    return found


def _places(index: Path) -> dict[str, str]:
    """Return the file of each tensor, all beside the index. Raises BidError."""
    try:
        places = json.loads(index.read_text())["weight_map"]
        good = bool(places) and all(Path(file).name == file for file in places.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BidError(f"{index} cannot be read as an index of tensors: {' '.join(str(error).split())}") from error
    if not good:
        raise BidError(f"{index} names files that are not beside it, or none; valid is a file name for each tensor")
    return dict(places)


def _read_file(path: Path) -> "dict[str, torch.Tensor]":
    with extra("train", "reading a checkpoint"):
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    if not path.is_file():
        raise BidError(f"{path} is missing; valid is a file of tensors that the training wrote")
    try:
        tensors: dict[str, torch.Tensor] = load_file(str(path))
    except (SafetensorError, OSError) as error:
        raise BidError(f"{path} cannot be read as safetensors: {' '.join(str(error).split())}") from error
    return tensors


def without_prefix(tensors: "Mapping[str, torch.Tensor]", prefix: str) -> "dict[str, torch.Tensor]":
    """Return the tensors whose name begins with ``prefix``, by the rest of their name."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def renamed(tensors: "Mapping[str, torch.Tensor]", patterns: Iterable[tuple[str, str]]) -> "dict[str, torch.Tensor]":
    """Return the tensors with each pattern in their names replaced, one pattern after the other."""
    found = {}
    for name, value in tensors.items():
        for pattern, ours in patterns:
            name = re.sub(pattern, ours, name)
        found[name] = value
    return found


def fill(network: "nn.Module", tensors: "Mapping[str, torch.Tensor]", where: str, prefix: str = "") -> None:
    """Put tensors into a network that has exactly these.

    Args:
        network: whose parameters and buffers have the tensors' names.
        tensors: by name, without the prefix.
        where: names the file.
        prefix: of the names in the file, for errors.

    Raises:
        BidError: a tensor is missing, has another shape, or holds a value that is not finite; or one is too many.
    """
    wanted = network.state_dict()
    for name, value in wanted.items():
        if name.endswith(UNUSED):
            continue
        found = tensors.get(name)
        if found is None:
            raise BidError(f"{where} lacks the tensor '{prefix}{name}'; the configuration needs it, {_shape(value)}")
        if found.shape != value.shape:
            raise BidError(
                f"{where}: tensor '{prefix}{name}' has {_shape(found)}; by the configuration valid is {_shape(value)}"
            )
        if found.is_floating_point() and not found.isfinite().all():
            raise BidError(f"{where}: tensor '{prefix}{name}' holds a value that is not finite; valid are numbers")
    extra_names = [name for name in tensors if name not in wanted and not name.endswith(UNUSED)]
    if extra_names:
        raise BidError(
            f"{where} has the tensor '{prefix}{extra_names[0]}', {_shape(tensors[extra_names[0]])}, which the "
            f"configuration has no place for (and {len(extra_names) - 1} more)"
        )
    network.load_state_dict({name: tensors.get(name, value).to(value.dtype) for name, value in wanted.items()})


def check_prefixes(tensors: "Mapping[str, torch.Tensor]", prefixes: tuple[str, ...], where: str) -> None:
    """Raise BidError if a tensor's name begins with none of the prefixes; ``where`` names the file."""
    for name in tensors:
        if not name.startswith(prefixes):
            raise BidError(f"{where} has the tensor '{name}', which the configuration has no place for")


def _shape(value: "torch.Tensor") -> str:
    return f"shape {tuple(value.shape)}"
