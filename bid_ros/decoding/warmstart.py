"""Warm start: the denoising starts from the previous decision instead of noise (Janner et al., Diffuser, ICML 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bid_ros.decoding.decoder import Decoder
from bid_ros.decoding.decoder_config import DecoderConfig
from bid_ros.decoding.receding import Builder, RecedingDecoder


def warmstart(name: str, config: DecoderConfig) -> Decoder:
    """One sample, started from the previous decision shifted by the steps that passed, its last row repeated."""
    return RecedingDecoder(name, config.action_horizon, start_mode=config.warm_start)


def warmstart_clean(name: str, config: DecoderConfig) -> Decoder:
    """Warm start as published, whatever ``warm_start`` says: the previous decision taken for a sample at full noise."""
    return RecedingDecoder(name, config.action_horizon, start_mode="clean")


DECODERS: Final[Mapping[str, Builder]] = {"warmstart": warmstart, "warmstart-clean": warmstart_clean}
