"""The decoders that select with Bidirectional Decoding, alone and combined."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from bid_ros.decoding.receding import Builder, RecedingDecoder
from bid_ros.decoding.vanilla import AveragingDecoder

# Draw N strong and N weak samples, execute one of the strong ones.
bid: Final = partial(RecedingDecoder, selects=True)

DECODERS: Final[Mapping[str, Builder]] = {
    "bid": bid,
    # BID selects, then the moving average blends. The next selection continues the blend.
    "bid+ema": partial(AveragingDecoder, selects=True),
    # BID over samples that all start from the previous decision.
    "bid+warmstart": partial(bid, start_mode=None),
}
