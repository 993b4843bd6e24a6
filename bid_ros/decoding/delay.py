"""Delay-aware BID: the steps executed while a decision is computed are fixed. Later steps must continue them.

Sources: the soft mask and the frozen steps are those of Real-Time Chunking (Black, Galliker, Levine, NeurIPS 2025). Its
published evaluation weights the backward criterion of its BID baseline by the same mask
(github.com/Physical-Intelligence/real-time-chunking-kinetix, ``bid_action``).
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from bid_ros.decoding.bidirectional import bid
from bid_ros.decoding.decoder import DecodeRequest
from bid_ros.decoding.decoder_config import DecoderConfig
from bid_ros.decoding.memory import Overlap, committed_rows
from bid_ros.decoding.receding import Array, Builder


def frozen(new: Array, overlap: Overlap, request: DecodeRequest, config: DecoderConfig) -> Array:
    """Keep the previous decision up to the row before ``To - 1 + q``, the first that this decision can change.

    When the decision arrives, the robot has executed those steps of the previous decision. The memory keeps them, so
    the next coherence is with what the robot did.
    """
    rows = committed_rows(overlap.previous, request.observation_steps, request.delay_or(config.delay))
    kept = new.copy()
    kept[: len(rows)] = rows
    return kept


# BID whose backward criterion counts the ``delay`` committed steps fully, and which keeps those steps.
DECODERS: Final[Mapping[str, Builder]] = {"bid+delay": partial(bid, blend=frozen, delayed=True)}
