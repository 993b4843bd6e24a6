"""Two scripted operators bring the hammer of Transport from bin to bin, hand to hand."""

from typing import Final

from bid_ros.bench.robomimic.handing_over import Talk, draw_agreement
from bid_ros.bench.robomimic.payload_giving import give
from bid_ros.bench.robomimic.payload_taking import take
from bid_ros.bench.robomimic.scripted_operator import Motion
from bid_ros.bench.robomimic.two_arms import OperatorPair

PRACTICE: Final = 0.6  # least level of skill; 35 s are too short for beginners


def transport(pair: OperatorPair) -> Motion:
    """Let the first operator hand the hammer over, and the second put it into the bin that it has cleared."""
    talk, agreed = Talk(), draw_agreement(pair.random)
    yield from pair.together(give(pair.first, talk, agreed), take(pair.second, talk, agreed))
