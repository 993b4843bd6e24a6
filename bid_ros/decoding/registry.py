"""Decoders by name. Add one as a file of this package with a builder in ``DECODERS``, or as an entry point."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from bid_ros.core.errors import DecodingError
from bid_ros.core.registry import Registry, collect
from bid_ros.decoding.decoder import Decoder, Needs
from bid_ros.decoding.decoder_config import DecoderConfig
from bid_ros.decoding.receding import Builder
from bid_ros.decoding.written import read_decoder, write_decoder

# The published comparison, in its order; lists of names begin with it.
_FIRST: Final = ("vanilla", "ema", "warmstart", "bid", "bid+ema", "bid+warmstart")


def merge(modules: Mapping[str, Mapping[str, Builder]]) -> Mapping[str, Builder]:
    """Return the builders of several modules, the decoders of the paper first.

    Raises:
        DecodingError: two modules have a decoder of the same name.
    """
    found: dict[str, Builder] = {}
    for module, builders in modules.items():
        if shared := sorted(found.keys() & builders.keys()):
            raise DecodingError(f"decoder '{shared[0]}' of module '{module}' is already another module's; rename one")
        found |= builders
    return {name: found[name] for name in (*_FIRST, *sorted(found.keys() - set(_FIRST)))}


DECODERS_BY_NAME: Final[Registry[Builder]] = Registry(
    "decoder", "bid_ros.decoders", lambda: merge(collect(__package__, "DECODERS")), DecodingError
)


def decoder_names() -> tuple[str, ...]:
    """Names that :func:`build_decoder` knows."""
    return DECODERS_BY_NAME.names()


def build_decoder(text: str, config: DecoderConfig | None = None) -> Decoder:
    """Build a decoder with an empty memory. Its name is ``text``, with the settings in their own order.

    Args:
        text: a name, or a name with settings: ``bid:variant=paper``; see :mod:`bid_ros.decoding.written`.
        config: settings that the text does not say.

    Raises:
        DecodingError: the name is unknown or registered twice, its package fails to import, a setting is not valid, or
            the decoder does not say what it needs.
    """
    name, settings = read_decoder(text)
    build = DECODERS_BY_NAME.find(name)
    decoder = build(write_decoder(name, settings), replace(config or DecoderConfig(), **settings))
    if not isinstance(getattr(decoder, "needs", None), Needs):
        raise DecodingError(
            f"decoder '{name}' has no attribute 'needs'; valid is a Needs of bid_ros.decoding, which took the place of "
            "warm_starts and needs_gradient"
        )
    return decoder
