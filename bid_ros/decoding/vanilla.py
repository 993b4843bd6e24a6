"""Vanilla receding horizon: one sample, of which ``action_horizon`` actions are executed."""

from __future__ import annotations

from bid_ros.decoding.decoder import Decoder
from bid_ros.decoding.decoder_config import DecoderConfig
from bid_ros.decoding.receding import RecedingDecoder


def vanilla(name: str, config: DecoderConfig) -> Decoder:
    """Execute one sample as it is: closed loop with an action horizon of 1, open loop with all executable rows."""
    return RecedingDecoder(name, config.action_horizon)
