"""Service calls that a person makes from a terminal."""

from __future__ import annotations

from typing import Any

import rclpy
from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from bid_ros.errors import BidError

WAIT_S = 5.0
ANSWER_S = 30.0  # a robot may take 20 s to recover


def reset_stop() -> int:
    """Reset the arm, then safety; return 0 when both run again.

    The arm comes first, because safety stays stopped while the robot reports a fault, and once more at the end,
    because a safety node that was still stopped latched it again.
    """
    rclpy.init()
    node = rclpy.create_node("bid_reset")
    try:
        for service in ("/arm/reset", "/safety/reset", "/arm/reset"):
            response = _call(node, Trigger, service, Trigger.Request())
            print(f"{service}: {response.message}")
            if not response.success:
                return 1
        return 0
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


def operate() -> int:
    """Ask the person for the start and the outcome of each episode until they end it."""
    rclpy.init()
    node = rclpy.create_node("bid_operator")
    try:
        while True:
            if input("scene set up as the run asks? [enter] starts the episode, q ends: ").strip() == "q":
                return 0
            _call(node, Trigger, "/episode/start", Trigger.Request())
            answer = input("did it succeed? y = success, n = failure: ").strip().lower()
            _call(node, SetBool, "/episode/outcome", SetBool.Request(data=answer == "y"))
    except EOFError:
        return 0
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


def _call(node: Node, service_type: Any, name: str, request: Any) -> Any:
    client = node.create_client(service_type, name)
    if not client.wait_for_service(timeout_sec=WAIT_S):
        raise BidError(f"no running system offers {name}; start one with: bid up")
    future = client.call_async(request)
    rclpy.spin_until_future_complete(node, future, timeout_sec=ANSWER_S)
    if not future.done():
        raise BidError(f"{name} did not answer within {ANSWER_S:g} s")
    return future.result()
