"""Connects to a robot that is driven through ROS, for ``bid check``. Nothing moves."""

import time
from typing import Any

from bid_ros.nodes.client import visiting
from bid_ros.nodes.ros_bus import NodeBus
from bid_ros.robots.registry import build_arm


def probe_robot(name: str, config: Any, namespace: str = "") -> str:
    """Return what a robot says of itself.

    Args:
        name: of the robot.
        config: its configuration.
        namespace: of the system.

    Raises:
        ArmError: its state, URDF or controller is not there, or does not fit the configuration.
    """
    with visiting("bid_check", namespace) as node:
        arm = build_arm(name, config, NodeBus("bid_check_robot", node.get_namespace()))
        try:
            arm.connect()
            state = arm.state()
        finally:
            arm.close()
    age_ms = (time.time_ns() - state.stamp_ns) / 1e6
    place = ", ".join(f"{value:.3f}" for value in state.tool_position)
    return f"{len(state.joint_positions)} joints, state {age_ms:.0f} ms old, tool at [{place}] m"
