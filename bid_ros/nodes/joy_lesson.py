"""Learns the buttons and axes of a gamepad whose state arrives on a topic. Nothing is published."""

import time
from collections.abc import Callable
from typing import Any, Final

from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import Joy

from bid_ros.core.errors import BidError
from bid_ros.core.topics import Qos
from bid_ros.nodes.client import visiting
from bid_ros.nodes.interrupt import interrupt_after
from bid_ros.nodes.topics import profile
from bid_ros.teleop.joy import JoySettings
from bid_ros.teleop.learn import PadLesson, PadState

HEARD_S: Final = 10.0  # in which a gamepad's first state arrives


def learn_joy(
    options: JoySettings, namespace: str, say: Callable[[str], None], heard_s: float = HEARD_S
) -> dict[str, dict[str, int]]:
    """Ask a person for every button and axis of a gamepad on a topic; return the settings that name them.

    Args:
        options: which topic.
        namespace: of the node that listens.
        say: tells the person what to press.
        heard_s: s to wait for the first message.

    Raises:
        BidError: nothing arrives, or nobody publishes it any more.
    """
    with visiting("bid_learn", namespace) as node, SingleThreadedExecutor() as executor:
        executor.add_node(node)
        heard: list[PadState] = []

        def take(message: Joy) -> None:
            heard[:] = [pad_state(message)]  # the newest; a look follows each, for a short press is in few messages

        node.create_subscription(Joy, options.topic, take, profile(Qos(10, "best_effort")))
        topic = node.resolve_topic_name(options.topic)

        def wait(seconds: float) -> None:
            with interrupt_after():
                executor.spin_once(timeout_sec=seconds)

        def read() -> PadState:
            if not node.count_publishers(topic):
                raise BidError(f"the gamepad on {topic} is gone: nobody publishes it any more")
            return heard[0]

        say(f"gamepad on {topic}; Ctrl-C ends")
        end = time.monotonic() + heard_s
        while not heard:
            wait(0.05)
            if time.monotonic() > end:
                raise BidError(
                    f"no sensor_msgs/Joy arrived on {topic} in {heard_s:g} s; start its node, as in: ros2 run joy "
                    "joy_node, or name the topic: --device-settings '{topic: ...}'"
                )
        return PadLesson(read, say, wait).learn()


def pad_state(message: Any) -> PadState:
    """Return what a ``sensor_msgs/Joy`` says; its left and forward are positive, those of a lesson negative."""
    pressed = frozenset(number for number, is_down in enumerate(message.buttons) if is_down)
    return PadState(pressed, {number: -float(value) for number, value in enumerate(message.axes)})
