"""Two scripted operators bring the hammer of Transport from bin to bin, hand to hand."""

from typing import Final

import numpy as np

from bid_ros.bench.robomimic.payload_giving import Offer, give
from bid_ros.bench.robomimic.payload_taking import take
from bid_ros.bench.robomimic.scripted_operator import Motion
from bid_ros.bench.robomimic.transport_parts import Talk
from bid_ros.bench.robomimic.two_arms import OperatorPair

PRACTICE: Final = 0.4  # least level of skill; 35 s are too short for beginners


def transport(pair: OperatorPair) -> Motion:
    """Let the first operator hand the hammer over, and the second put it into the bin that it has cleared."""
    talk, random = Talk(), pair.random
    place = np.array([random.uniform(-0.1, 0.1), random.uniform(-0.03, 0.03), random.uniform(1.02, 1.12)])
    offer = Offer(place, random.uniform(-0.6, 0.6))
    yield from pair.together(give(pair.first, talk, offer), take(pair.second, talk))
