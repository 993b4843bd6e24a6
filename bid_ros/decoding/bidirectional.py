"""The decoders that select with Bidirectional Decoding, alone and combined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bid_ros.decoding.decoder import Decoder
from bid_ros.decoding.decoder_config import DecoderConfig
from bid_ros.decoding.receding import Builder, RecedingDecoder
from bid_ros.decoding.vanilla import moving_average


def bid(name: str, config: DecoderConfig) -> Decoder:
    """BID: draw N strong and N weak samples, execute one of the strong ones."""
    return RecedingDecoder(name, config, selects=True)


def bid_ema(name: str, config: DecoderConfig) -> Decoder:
    """BID selects, then the moving average blends. The next selection continues the blend."""
    return RecedingDecoder(name, config, selects=True, blend=moving_average)


def bid_warmstart(name: str, config: DecoderConfig) -> Decoder:
    """BID over samples that all start from the previous decision."""
    return RecedingDecoder(name, config, selects=True, start_mode=config.warm_start)


DECODERS: Final[Mapping[str, Builder]] = {"bid": bid, "bid+ema": bid_ema, "bid+warmstart": bid_warmstart}
