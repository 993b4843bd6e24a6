"""Decoding: from the samples of a policy to the chunk that is executed. NumPy only.

:func:`select` is Bidirectional Decoding itself, a pure function. :class:`Decoder` is the interface with two hooks that
policy node, evaluation and replay share. :func:`build_decoder` makes a decoder from its name and settings.
:class:`DecisionMemory` aligns decisions by time. Formulas: ``docs/explanation/decoding.md``. Names, settings and
symbols: ``docs/reference/decoders.md``.
"""

from bid_ros.core.errors import DecodingError
from bid_ros.decoding.batch import BatchSelection, select_batch
from bid_ros.decoding.bid import Selection, select
from bid_ros.decoding.config import METRICS, TERMS, TRIMS, VARIANTS, BidConfig, Metric, Terms, Trim, Variant
from bid_ros.decoding.decoder import Choice, Decoder, DecodeRequest, Guidance, Needs, Proposal, StartMode
from bid_ros.decoding.decoder_config import DecoderConfig, LeadConfig, WarmStart, feature_weights
from bid_ros.decoding.memory import DecisionMemory, Overlap
from bid_ros.decoding.registry import build_decoder, decoder_names
from bid_ros.decoding.written import current_decoder, split_decoders

__all__ = [
    "METRICS",
    "TERMS",
    "TRIMS",
    "VARIANTS",
    "BatchSelection",
    "BidConfig",
    "Choice",
    "DecisionMemory",
    "DecodeRequest",
    "Decoder",
    "DecoderConfig",
    "DecodingError",
    "Guidance",
    "LeadConfig",
    "Metric",
    "Needs",
    "Overlap",
    "Proposal",
    "Selection",
    "StartMode",
    "Terms",
    "Trim",
    "Variant",
    "WarmStart",
    "build_decoder",
    "current_decoder",
    "decoder_names",
    "feature_weights",
    "select",
    "select_batch",
    "split_decoders",
]
