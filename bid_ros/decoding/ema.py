"""Exponential moving average over decisions, the temporal ensembling of Zhao et al. (ACT, RSS 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bid_ros.decoding.decoder import Decoder, DecodeRequest
from bid_ros.decoding.decoder_config import DecoderConfig
from bid_ros.decoding.memory import Overlap
from bid_ros.decoding.receding import Array, Blend, Builder, RecedingDecoder


def moving_average(weight: float) -> Blend:
    """Blend ``new[i] = weight new[i] + (1 - weight) previous[i]`` on the overlap. Later rows stay as they are.

    All columns are blended linearly, rotations too. Their six-number form is made orthogonal again before it is
    executed. The decoder remembers the blend.
    """

    def blend(new: Array, overlap: Overlap, request: DecodeRequest) -> Array:
        rows = overlap.previous.shape[0]
        blended = new.copy()
        blended[:rows] = weight * new[:rows] + (1.0 - weight) * overlap.previous
        return blended

    return blend


def ema(name: str, config: DecoderConfig) -> Decoder:
    """One sample, blended with the previous decision."""
    return RecedingDecoder(name, config.action_horizon, blend=moving_average(config.ema_weight))


DECODERS: Final[Mapping[str, Builder]] = {"ema": ema}
