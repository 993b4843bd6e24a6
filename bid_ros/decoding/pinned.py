"""BID with one setting fixed by the name: ablations of the terms, and variants. Other settings stay free."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from bid_ros.decoding.bidirectional import bid
from bid_ros.decoding.receding import Builder


def pinned(**settings: Any) -> Builder:
    """Return a builder of BID with these settings of :class:`bid_ros.decoding.DecoderConfig`."""
    return lambda name, config: bid(name, replace(config, **settings))


DECODERS: Final[Mapping[str, Builder]] = {
    **{f"bid-{terms}": pinned(terms=terms) for terms in ("backward", "positive", "negative", "contrast")},
    "bid-paper": pinned(variant="paper", trim="previous"),
    "bid-paper-nearest": pinned(variant="paper", trim="nearest"),
    "bid-reference-v1": pinned(variant="reference_v1", trim="previous"),
    "bid-reference-v2": pinned(variant="reference_v2", trim="previous"),
    "bid-corrected": pinned(variant="corrected", trim="previous"),
}
