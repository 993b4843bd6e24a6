"""Warm start: the denoising starts from the previous decision, not from noise (Janner et al., Diffuser, ICML 2022)."""

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
    """Warm start as published: the previous decision stands in for a sample at full noise. Ignores ``warm_start``."""
    return RecedingDecoder(name, config.action_horizon, start_mode="clean")


DECODERS: Final[Mapping[str, Builder]] = {"warmstart": warmstart, "warmstart-clean": warmstart_clean}
