"""What a person does from a terminal: calls of services, and the node for it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import rclpy
from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from bid_ros.core.errors import BidError
from bid_ros.core.topics import ARM_RESET, EPISODE_OUTCOME, EPISODE_START, SAFETY_RESET

WAIT_S = 5.0
ANSWER_S = 30.0  # a robot may take 20 s to recover


@contextmanager
def visiting(name: str, namespace: str) -> Iterator[Node]:
    """Give a node of this process in a namespace, until the end of the block."""
    rclpy.init()
    node = rclpy.create_node(name, namespace=namespace)
    try:
        yield node
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


def reset_stop(namespace: str = "") -> int:
    """Reset the arm, then safety. Return 0 when both run again.

    The arm is first, because safety stays stopped while the robot reports a fault. The arm is reset once more at the
    end, because the safety node, still stopped, has latched it again.

    Args:
        namespace: namespace of the system.
    """
    with visiting("bid_reset", namespace) as node:
        for service in (ARM_RESET, SAFETY_RESET, ARM_RESET):
            response = _call(node, Trigger, service, Trigger.Request())
            print(f"{node.resolve_service_name(service)}: {response.message}")
            if not response.success:
                return 1
    return 0


def operate(namespace: str = "") -> int:
    """Ask the person for the start and the outcome of each episode, until they end it.

    Args:
        namespace: namespace of the system.
    """
    with visiting("bid_operator", namespace) as node, suppress(EOFError):
        while input("scene set up as the run asks? [enter] starts the episode, q ends: ").strip() != "q":
            _call(node, Trigger, EPISODE_START, Trigger.Request())
            answer = input("did it succeed? y = success, n = failure: ").strip().lower()
            response = _call(node, SetBool, EPISODE_OUTCOME, SetBool.Request(data=answer == "y"))
            if not response.success:
                print(f"not taken: {response.message}")
    return 0


def _call(node: Node, service_type: Any, name: str, request: Any) -> Any:
    client = node.create_client(service_type, name)
    name = node.resolve_service_name(name)
    if not client.wait_for_service(timeout_sec=WAIT_S):
        raise BidError(f"no running system offers {name}; start one with: bid up")
    future = client.call_async(request)
    rclpy.spin_until_future_complete(node, future, timeout_sec=ANSWER_S)
    if not future.done():
        raise BidError(f"{name} did not answer within {ANSWER_S:g} s")
    return future.result()
