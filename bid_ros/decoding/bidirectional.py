"""The decoders that select with Bidirectional Decoding, alone and combined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bid_ros.decoding.bid import Selection, select
from bid_ros.decoding.decoder import Decoder, DecodeRequest, StartMode
from bid_ros.decoding.decoder_config import DecoderConfig
from bid_ros.decoding.memory import Overlap
from bid_ros.decoding.receding import Array, Blend, Builder, Pick, RecedingDecoder
from bid_ros.decoding.vanilla import moving_average


def bidirectional_pick(config: DecoderConfig, delay: int | None = None) -> Pick:
    """Pick a sample with :func:`bid_ros.decoding.select`. A single sample is picked as it is."""

    def pick(
        strong: Array, weak: Array | None, overlap: Overlap | None, request: DecodeRequest
    ) -> tuple[int, Selection | None]:
        if strong.shape[0] == 1:
            return 0, None
        previous, executed = (None, 0) if overlap is None else (overlap.previous, overlap.executed)
        selection = select(strong, weak, previous, config.bid(executed, request.observation_steps, delay))
        return selection.index, selection

    return pick


def bid(name: str, config: DecoderConfig) -> Decoder:
    """BID: draw N strong and N weak samples, execute one of the strong ones."""
    return bidirectional(name, config)


def bid_ema(name: str, config: DecoderConfig) -> Decoder:
    """BID selects, then the moving average blends. The next selection continues the blend."""
    return bidirectional(name, config, blend=moving_average(config.ema_weight))


def bid_warmstart(name: str, config: DecoderConfig) -> Decoder:
    """BID over samples that all start from the previous decision."""
    return bidirectional(name, config, start_mode=config.warm_start)


def bidirectional(
    name: str,
    config: DecoderConfig,
    start_mode: StartMode = "noise",
    blend: Blend | None = None,
    delay: int | None = None,
) -> Decoder:
    """Build a decoder that samples from ``start_mode``, selects with BID, and blends what it selected."""
    return RecedingDecoder(
        name,
        config.action_horizon,
        samples=config.samples,
        weak_samples=config.needed_weak_samples,
        pick=bidirectional_pick(config, delay),
        start_mode=start_mode,
        blend=blend,
    )


DECODERS: Final[Mapping[str, Builder]] = {"bid": bid, "bid+ema": bid_ema, "bid+warmstart": bid_warmstart}
