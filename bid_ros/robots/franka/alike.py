"""How the twin of a Franka would follow as a robot did."""

from collections.abc import Mapping
from typing import Any, Final

from bid_ros.robots.descriptor import TrackedMotion

SOFTEST, STIFFEST = 10.0, 3000.0  # N/m that the driver takes
POWER: Final = 1.19  # of the ratio of two lags, which is that of the two stiffnesses
ARM_M: Final = 0.5  # of the force at the tool about the joints that bear it
DIGITS: Final = 3


def alike(robot: TrackedMotion, twin: TrackedMotion) -> Mapping[str, Any]:
    """Return stiffness and compensated friction of the twin.

    Measured in the twin: 50 ms with 2500 N/m, 108 ms with 1000 N/m. At rest the tool is off by the friction that
    nothing compensates, over the stiffness. So what the twin compensates is less by what it lacks, spread over its
    joints as before. Both are estimates: try them in the twin.
    """
    before = float(twin.config["translational_stiffness"])
    stiffness = min(max(before * (twin.lag_s / robot.lag_s) ** POWER, SOFTEST), STIFFEST)
    lacking = ARM_M * (stiffness * robot.rest_m - before * twin.rest_m)  # Nm of friction
    now = [float(value) for value in twin.config["friction_coulomb"]]
    share = max(0.0, 1.0 - lacking / max(now)) if max(now) else 0.0
    friction = [round(min(1.0, value * share), DIGITS) for value in now]
    return {"translational_stiffness": round(stiffness, 0), "friction_coulomb": friction}
