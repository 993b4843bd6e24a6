"""Decoders by name. A new one is a file with a builder and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from bid_ros.decoding.bidirectional import bid, bid_ema, bid_warmstart
from bid_ros.decoding.decoder import Decoder
from bid_ros.decoding.decoder_config import DecoderConfig
from bid_ros.decoding.ema import ema
from bid_ros.decoding.vanilla import vanilla
from bid_ros.decoding.warmstart import warmstart
from bid_ros.errors import DecodingError

_BUILDERS: Final[Mapping[str, Callable[[str, DecoderConfig], Decoder]]] = {
    "vanilla": vanilla,
    "ema": ema,
    "warmstart": warmstart,
    "bid": bid,
    "bid+ema": bid_ema,
    "bid+warmstart": bid_warmstart,
}


def decoder_names() -> tuple[str, ...]:
    """Names that :func:`build_decoder` knows."""
    return tuple(_BUILDERS)


def build_decoder(name: str, config: DecoderConfig | None = None) -> Decoder:
    """Build a decoder with an empty memory.

    Raises:
        DecodingError: for an unknown name.
    """
    if name not in _BUILDERS:
        raise DecodingError(f"decoder '{name}' is unknown; valid are {', '.join(decoder_names())}")
    return _BUILDERS[name](name, config or DecoderConfig())
