"""How the twin of a UR would follow as a robot did."""

from collections.abc import Mapping
from typing import Any

from bid_ros.robots.descriptor import TrackedMotion

DIGITS = 3
LEAST_S, MOST_S = 0.03, 0.2  # that servoj takes


def alike(robot: TrackedMotion, twin: TrackedMotion) -> Mapping[str, Any]:
    """Return the lookahead of the twin's ``servoj``: the tool lags by about that and a constant.

    The twin's joints have no friction that its servo does not take out, so there is none to change.
    """
    lookahead_s = float(twin.config["lookahead_time_s"]) + robot.lag_s - twin.lag_s
    return {"lookahead_time_s": round(min(max(lookahead_s, LEAST_S), MOST_S), DIGITS)}
