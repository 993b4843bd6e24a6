"""How the twin of a Franka would follow as a robot did."""

from collections.abc import Mapping
from typing import Any, Final

from bid_ros.robots.descriptor import TrackedMotion

SOFTEST, STIFFEST = 10.0, 3000.0  # N/m that the driver takes
POWER: Final = 1.19  # of the ratio of two lags, which is that of the two stiffnesses
ARM_M: Final = 0.58  # Nm of compensated friction over the N that the tool then holds less at rest
DIGITS: Final = 3


def alike(robot: TrackedMotion, twin: TrackedMotion) -> Mapping[str, Any]:
    """Return stiffness and compensated friction of the twin.

    At rest the tool is off by the friction that nothing compensates, over the stiffness. Both constants are measured
    in the twin, in stage 2: lag 50 ms and 0.73 mm off with 2500 N/m, 108 ms and 1.33 mm with 1000 N/m, 76 ms and
    1.21 mm with 2500 N/m and no compensated friction. So these are estimates: try them in the twin.
    """
    before = float(twin.config["translational_stiffness"])
    stiffness = min(max(before * (twin.lag_s / robot.lag_s) ** POWER, SOFTEST), STIFFEST)
    lacking = ARM_M * (stiffness * robot.rest_m - before * twin.rest_m)  # Nm of friction
    now = [float(value) for value in twin.config["friction_coulomb"]]
    share = max(0.0, 1.0 - lacking / max(now)) if max(now) else 0.0
    friction = [round(min(1.0, value * share), DIGITS) for value in now]
    return {"translational_stiffness": round(stiffness, 0), "friction_coulomb": friction}
