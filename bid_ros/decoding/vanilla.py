"""The decoders that draw one sample and execute ``action_horizon`` of its actions.

``vanilla`` executes it as it is. ``ema`` is the exponential moving average over decisions, the temporal ensembling of
Zhao et al. (ACT, RSS 2023). A warm start denoises from the previous decision, not from noise (Janner et al., Diffuser,
ICML 2022).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bid_ros.decoding.decoder import Decoder, DecodeRequest
from bid_ros.decoding.decoder_config import DecoderConfig
from bid_ros.decoding.memory import Overlap
from bid_ros.decoding.receding import Array, Builder, RecedingDecoder


def vanilla(name: str, config: DecoderConfig) -> Decoder:
    """Execute one sample as it is: closed loop with an action horizon of 1, open loop with ``all``."""
    return RecedingDecoder(name, config)


def moving_average(new: Array, overlap: Overlap, request: DecodeRequest, config: DecoderConfig) -> Array:
    """Blend ``new[i] = weight new[i] + (1 - weight) previous[i]`` on the overlap. Later rows stay as they are.

    All columns are blended linearly, rotations too. Their six-number form is made orthogonal again before it is
    executed. The decoder remembers the blend.
    """
    blended, rows = new.copy(), overlap.previous.shape[0]
    blended[:rows] = config.ema_weight * new[:rows] + (1.0 - config.ema_weight) * overlap.previous
    return blended


def ema(name: str, config: DecoderConfig) -> Decoder:
    """One sample, blended with the previous decision."""
    return RecedingDecoder(name, config, blend=moving_average)


def warmstart(name: str, config: DecoderConfig) -> Decoder:
    """One sample, started from the previous decision shifted by the steps that passed, its last row repeated."""
    return RecedingDecoder(name, config, start_mode=config.warm_start)


def warmstart_clean(name: str, config: DecoderConfig) -> Decoder:
    """Warm start as published: the previous decision stands in for a sample at full noise. Ignores ``warm_start``."""
    return RecedingDecoder(name, config, start_mode="clean")


DECODERS: Final[Mapping[str, Builder]] = {
    "vanilla": vanilla,
    "receding": vanilla,
    "ema": ema,
    "warmstart": warmstart,
    "warmstart-clean": warmstart_clean,
}
