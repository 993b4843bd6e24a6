"""A scripted operator assembles the frame of Tool Hang, and hangs the tool on it."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from bid_ros.bench.robomimic.frame_assembly import assemble
from bid_ros.bench.robomimic.hang_parts import ASSEMBLED, done
from bid_ros.bench.robomimic.scripted_operator import Motion, ScriptedOperator
from bid_ros.bench.robomimic.tool_hanging import hang


@dataclass(frozen=True)
class HangingWay:
    """One way to do it.

    Attributes:
        hook: where the frame's bar points, degrees about the vertical; 0 is away from the robot.
        skews: smallest and largest turn of the tool from the bar, degrees.
        last: degrees, by which the tool's far end hangs as the fingers let go.
        share: of the operators who choose it.
    """

    hook: float
    skews: tuple[float, float]
    last: float
    share: float


WAYS: Final = {
    "right": HangingWay(-90.0, (-20.0, 20.0), 65.0, 0.5),
    "away": HangingWay(0.0, (-65.0, -40.0), 45.0, 0.25),
    "near": HangingWay(180.0, (55.0, 65.0), 65.0, 0.25),
}
LOOSE: Final = 8.0  # degrees, by which the frame may be turned in its hole


def tool_hang(operator: ScriptedOperator) -> Motion:
    """Put the frame into its stand on one of several ways, and hang the tool on it."""
    random = operator.random
    way = WAYS[str(random.choice(list(WAYS), p=[item.share for item in WAYS.values()]))]
    hook, skew = way.hook + random.uniform(-LOOSE, LOOSE), random.uniform(*way.skews)
    yield from operator.wait(random.uniform(0.5, 0.8))  # frame and tool fall onto the table at first
    yield from assemble(operator, float(np.deg2rad(hook)))
    yield from operator.hesitate()
    if done(operator, ASSEMBLED):
        yield from hang(operator, float(np.deg2rad(skew)), float(np.deg2rad(way.last)))
