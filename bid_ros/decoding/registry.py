"""Decoders by name. A new one is a file in this package with a builder in its ``DECODERS``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Final

from bid_ros.decoding.decoder import Decoder
from bid_ros.decoding.decoder_config import DecoderConfig
from bid_ros.decoding.receding import Builder
from bid_ros.errors import DecodingError

# The published comparison, in its order; lists of names begin with it.
_FIRST: Final = ("vanilla", "ema", "warmstart", "bid", "bid+ema", "bid+warmstart")


def _collect(folder: Path, package: str) -> Mapping[str, Builder]:
    """Return the ``DECODERS`` of every module in ``folder``; DecodingError if two of them share a name."""
    found: dict[str, Builder] = {}
    for module in sorted(info.name for info in iter_modules([str(folder)])):
        builders: Mapping[str, Builder] = getattr(import_module(f"{package}.{module}"), "DECODERS", {})
        if shared := sorted(found.keys() & builders.keys()):
            raise DecodingError(f"decoder '{shared[0]}' of module '{module}' is already another module's; rename one")
        found |= builders
    return {name: found[name] for name in (*_FIRST, *sorted(found.keys() - set(_FIRST)))}


def _builders() -> Mapping[str, Builder]:
    if not _BUILDERS:
        _BUILDERS.update(_collect(Path(__file__).parent, __package__))
    return _BUILDERS


_BUILDERS: Final[dict[str, Builder]] = {}


def decoder_names() -> tuple[str, ...]:
    """Names that :func:`build_decoder` knows."""
    return tuple(_builders())


def build_decoder(name: str, config: DecoderConfig | None = None) -> Decoder:
    """Build a decoder with an empty memory.

    Raises:
        DecodingError: for an unknown name.
    """
    builders = _builders()
    if name not in builders:
        raise DecodingError(f"decoder '{name}' is unknown; valid are {', '.join(builders)}")
    return builders[name](name, config or DecoderConfig())
