"""Which places an arm reaches at all, with any tilt of the tool that a task allows."""

import math
from typing import Final

import numpy as np
from scipy.optimize import least_squares

from bid_ros.control.arm_model import ArmModel
from bid_ros.core.rotation import Array

NEAR_M: Final = 0.002  # m, and rad of tilt: what counts as there
SEEDS: Final = 6  # postures beside the arm's rest that the search begins at
SPREAD: Final = 0.5  # rad, of these postures
_MOST_STEPS: Final = 100


def unreached(arm: ArmModel, points: Array, max_tilt: float) -> int | None:
    """Return the row of the first point that the tool does not come to with any posture of the arm; None: all are.

    Args:
        arm: its kinematics and the limits of its joints.
        points: ``(n, 3)`` m, base frame.
        max_tilt: rad that the tool may be tilted from straight down.
    """
    low, high = np.array(arm.limits.low), np.array(arm.limits.high)
    random, rest = np.random.default_rng(0), np.array(arm.rest)
    # Strictly inside, as the solver wants it.
    spread = random.normal(0.0, SPREAD, (SEEDS, arm.joints))
    seeds = np.clip(np.vstack([rest, rest + spread]), low + 1e-3, high - 1e-3)
    return next((row for row, point in enumerate(points) if not _is_reached(arm, point, max_tilt, seeds)), None)


def _is_reached(arm: ArmModel, point: Array, max_tilt: float, seeds: Array) -> bool:
    def off(joints: Array) -> Array:
        place, turn = arm.forward(joints)
        tilt = math.acos(min(1.0, max(-1.0, -float(turn[2, 2]))))
        return np.append(place - point, max(0.0, tilt - max_tilt))

    bounds = np.array(arm.limits.low), np.array(arm.limits.high)
    for seed in seeds:
        found = least_squares(off, seed, bounds=bounds, max_nfev=_MOST_STEPS)
        if np.abs(found.fun).max() < NEAR_M:
            return True
    return False
