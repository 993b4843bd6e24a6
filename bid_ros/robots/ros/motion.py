"""A joint motion that is waited for."""

import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import Array
from bid_ros.robots.ros.config import JOINT_COMMANDS, RosConfig


def joint_goal(config: RosConfig, positions: Array) -> Array:
    """Return the goal ``(n,)`` rad of a joint motion. Raises ArmError if it does not fit the joints."""
    target, names = np.asarray(positions, dtype=np.float64), config.joint_names
    if target.shape != (len(names),) or not np.isfinite(target).all():
        raise ArmError(f"joint positions are {target.tolist()}; valid is {len(names)} finite numbers in rad")
    return target


def not_by_joints(config: RosConfig, purpose: str) -> ArmError:
    """Return the error for a purpose that needs an arm that is driven with joint positions."""
    what = f"robot at {config.address} is driven with a {config.command}"
    return ArmError(f"{what}; valid for {purpose} is command: {' or '.join(JOINT_COMMANDS)}")
