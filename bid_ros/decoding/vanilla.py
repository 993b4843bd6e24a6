"""Vanilla receding horizon: draw one sample, execute ``action_horizon`` of its actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bid_ros.decoding.decoder import Decoder
from bid_ros.decoding.decoder_config import DecoderConfig
from bid_ros.decoding.receding import Builder, RecedingDecoder


def vanilla(name: str, config: DecoderConfig) -> Decoder:
    """Execute one sample as it is: closed loop with an action horizon of 1, open loop with ``all``."""
    return RecedingDecoder(name, config.action_horizon)


DECODERS: Final[Mapping[str, Builder]] = {"vanilla": vanilla, "receding": vanilla}
