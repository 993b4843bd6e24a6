"""BID with one setting fixed by the name: ablations of the terms, and variants. Other settings stay free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from bid_ros.decoding.bidirectional import bid
from bid_ros.decoding.config import Terms, Trim, Variant
from bid_ros.decoding.decoder import Decoder
from bid_ros.decoding.decoder_config import DecoderConfig
from bid_ros.decoding.receding import Builder


def only(terms: Terms) -> Builder:
    """Return a builder of BID with only these terms of the criterion."""

    def build(name: str, config: DecoderConfig) -> Decoder:
        return bid(name, replace(config, terms=terms))

    return build


def variant(which: Variant, trim: Trim = "previous") -> Builder:
    """Return a builder of BID in this variant."""

    def build(name: str, config: DecoderConfig) -> Decoder:
        return bid(name, replace(config, variant=which, trim=trim))

    return build


DECODERS: Final[Mapping[str, Builder]] = {
    "bid-backward": only("backward"),
    "bid-positive": only("positive"),
    "bid-negative": only("negative"),
    "bid-contrast": only("contrast"),
    "bid-paper": variant("paper"),
    "bid-paper-nearest": variant("paper", trim="nearest"),
    "bid-reference-v1": variant("reference_v1"),
    "bid-reference-v2": variant("reference_v2"),
    "bid-corrected": variant("corrected"),
}
