"""Decoding: from the samples of a policy to the chunk that is executed. NumPy only.

:func:`select` is Bidirectional Decoding itself, a pure function. :class:`Decoder` is the seam with two hooks that
policy node, evaluation and replay share; :func:`build_decoder` makes one by name. Everything is aligned by time
through :class:`DecisionMemory`. Formulas, symbols and when to use which: ``docs/decoding.md``.
"""

from bid_ros.decoding.bid import Selection, select
from bid_ros.decoding.config import METRICS, TERMS, TRIMS, VARIANTS, BidConfig, Metric, Terms, Trim, Variant
from bid_ros.decoding.decoder import Choice, Decoder, DecodeRequest, Proposal, StartMode
from bid_ros.decoding.decoder_config import DecoderConfig, WarmStart, feature_weights
from bid_ros.decoding.memory import DecisionMemory, Overlap
from bid_ros.decoding.registry import build_decoder, decoder_names
from bid_ros.errors import DecodingError

__all__ = [
    "METRICS",
    "TERMS",
    "TRIMS",
    "VARIANTS",
    "BidConfig",
    "Choice",
    "DecisionMemory",
    "DecodeRequest",
    "Decoder",
    "DecoderConfig",
    "DecodingError",
    "Metric",
    "Overlap",
    "Proposal",
    "Selection",
    "StartMode",
    "Terms",
    "Trim",
    "Variant",
    "WarmStart",
    "build_decoder",
    "decoder_names",
    "feature_weights",
    "select",
]
