"""What a person does from a terminal: calls of services, and the node for it."""

import math
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import rclpy
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from bid_msgs.msg import ArmStatus
from bid_ros.core.errors import BidError
from bid_ros.core.topics import (
    ARM_RESET,
    ARM_STATUS,
    EPISODE_DISCARD,
    EPISODE_NOTE,
    EPISODE_OUTCOME,
    EPISODE_START,
    EPISODE_UNDO,
    SAFETY_RESET,
    TOPICS,
    TWIN_HARMS,
)
from bid_ros.episodes.stops import LEFT
from bid_ros.nodes.interrupt import interrupt_after
from bid_ros.nodes.topics import profile, publisher
from bid_ros.system.security import check_security, enclave_arguments, enclave_of

WAIT_S = 5.0
READY = (
    "nobody within the arm's reach, and all as the run asks? [enter] starts, u takes the last episode back, t TEXT "
    "leaves a note, q ends: "
)
AWAY = "keep away until the arm rests: it may go to the start of the next episode by itself"
JUDGE = "how did it end? y = success, n = failure, d = discard: "
OUTCOMES = ("y", "n", "d")
ANSWER_S = 30.0  # a robot may take 20 s to recover
MOVING = 0.02  # m/s of the set-point


@contextmanager
def visiting(name: str, namespace: str, last_word: bool = False) -> Iterator[Node]:
    """Give a node of this process in a namespace, until the end of the block.

    Args:
        name, namespace: of the node.
        last_word: after Ctrl-C the node can still publish; otherwise rclpy has ended it.

    Raises:
        BidError: as check_security.
    """
    check_security([enclave_of(name, namespace)])
    handlers = SignalHandlerOptions.NO if last_word else None
    words = enclave_arguments(name, namespace)
    rclpy.init(args=["--ros-args", *words] if words else None, signal_handler_options=handlers)
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

    Between two episodes the person may also take the last one back, or leave a note with it.

    Args:
        namespace: namespace of the system.
    """
    with visiting("bid_operator", namespace) as node, suppress(EOFError):
        notes = publisher(node, EPISODE_NOTE, TOPICS[EPISODE_NOTE])
        while (answer := input(READY).strip()) != "q":
            command, _, text = answer.partition(" ")
            if command == "t" and text:
                _note(node, notes, text)
            elif command == "u":
                _say(_call(node, Trigger, EPISODE_UNDO, Trigger.Request()))
            elif command:
                print(f"'{answer}' is unknown; valid are [enter], u, t TEXT and q")
            else:
                response = _call(node, Trigger, EPISODE_START, Trigger.Request())
                if _say(response) and response.message != LEFT:
                    _judge(node)
    return 0


def _judge(node: Node) -> None:
    while (answer := input(JUDGE).strip().lower()) not in OUTCOMES:
        print(f"'{answer}' is unknown; valid are {', '.join(OUTCOMES)}")
    print(AWAY)  # first: once the answer is sent, it moves
    if answer == "d":
        _say(_call(node, Trigger, EPISODE_DISCARD, Trigger.Request()))
    else:
        _say(_call(node, SetBool, EPISODE_OUTCOME, SetBool.Request(data=answer == "y")))


def _say(response: Any) -> bool:
    """Print what a system answered beside a plain yes; return whether it took the command."""
    if not response.success:
        print(f"not taken: {response.message}")
    elif response.message:
        print(response.message)
    return bool(response.success)


def _note(node: Node, notes: Any, text: str) -> None:
    """Send a note to the recorder, and wait until it has it."""
    end = time.monotonic() + WAIT_S
    while not notes.get_subscription_count():
        if time.monotonic() > end:
            print("not taken: nothing records notes here; start with: bid record")
            return
        rclpy.spin_once(node, timeout_sec=0.05)
    notes.publish(String(data=text))
    notes.wait_for_all_acked(Duration(seconds=WAIT_S))


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


def harm_moving(namespace: str, harm: str | int, limit_s: float) -> int:
    """Wait until the arm of a system moves, and harm it. Return the wall time in ns just before.

    Args:
        namespace: of the system.
        harm: of its twin, one of :data:`bid_ros.core.topics.TWIN_HARMS`; or the id of a process, which is killed.
        limit_s: s in which the arm must move.

    Raises:
        BidError: it does not move in time, or the twin cannot do that.
    """
    speeds = [0.0]
    with visiting("bid_accept", namespace, last_word=True) as node:
        client = node.create_client(Trigger, TWIN_HARMS[harm]) if isinstance(harm, str) else None
        hear = partial(_note_speed, speeds)
        node.create_subscription(ArmStatus, ARM_STATUS, hear, profile(TOPICS[ARM_STATUS].qos))
        end = time.monotonic() + limit_s
        while not (offered := client is None or client.service_is_ready()) or speeds[-1] < MOVING:
            if time.monotonic() > end:
                why = "the arm does not move" if offered else f"no twin offers {TWIN_HARMS[str(harm)]}"
                raise BidError(f"{why} within {limit_s:g} s; see the logs of the run")
            with interrupt_after():
                rclpy.spin_once(node, timeout_sec=0.05)
        done_ns = time.time_ns()
        if client is None:
            os.kill(int(harm), signal.SIGKILL)
        else:
            future = client.call_async(Trigger.Request())
            rclpy.spin_until_future_complete(node, future, timeout_sec=ANSWER_S)
            if not future.done() or not future.result().success:
                raise BidError(f"the twin did not do it: {future.result().message if future.done() else 'no answer'}")
    return done_ns


def _note_speed(speeds: list[float], status: ArmStatus) -> None:
    speeds[-1] = math.hypot(*status.reference_twist[:3]) if status.mode == ArmStatus.TRACKING else 0.0
