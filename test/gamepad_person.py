"""A person before the screens of the Franka twin, a virtual gamepad in both hands: a node that publishes `joy`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import rclpy
from gamepad_pilot import Pilot
from geometry_msgs.msg import PoseStamped
from rclpy.context import Context
from rclpy.node import Node
from sensor_msgs.msg import Joy

from bid_msgs.msg import ArmStatus, EpisodeEvent
from bid_ros.core.poses import pose_arrays
from bid_ros.core.topics import ARM_STATUS, BODIES, EPISODE_EVENT, TOPICS, Qos, body_topic
from bid_ros.nodes.executor import FastExecutor
from bid_ros.nodes.topics import profile
from bid_ros.teleop.joy import BUTTONS

RATE_HZ, PULSE_S, PRESSED_S = 30.0, 2.0, 0.2


class Person(Node):
    """Drives each episode that begins.

    Args:
        context: of ROS.
        starts: it also presses the button that starts an episode, while none runs.
        pilot: from seed and begin of an episode in s to who moves the thumbs in it, as :class:`Pilot`.
        looks_at: bodies whose places the pilot sees.
    """

    def __init__(
        self,
        context: Context | None = None,
        starts: bool = False,
        pilot: Callable[[int, float], Any] = Pilot,
        looks_at: tuple[str, ...] = ("object", "cup"),
    ) -> None:
        super().__init__("person", context=context)
        self._starts, self._made, self._looks_at = starts, pilot, looks_at
        self._pilot: Any = None
        self._places: dict[str, np.ndarray] = {}
        self._arm: ArmStatus | None = None
        self._pad = self.create_publisher(Joy, "joy", profile(Qos()))
        self.create_subscription(ArmStatus, ARM_STATUS, self._on_status, profile(TOPICS[ARM_STATUS].qos))
        self.create_subscription(EpisodeEvent, EPISODE_EVENT, self._on_event, profile(TOPICS[EPISODE_EVENT].qos))
        for name in looks_at:
            keep = lambda message, name=name: self._places.update({name: pose_arrays(message.pose)[0]})  # noqa: E731
            self.create_subscription(PoseStamped, body_topic(name), keep, profile(BODIES.qos))
        self.create_timer(1.0 / RATE_HZ, self._move)

    def _on_status(self, status: ArmStatus) -> None:
        self._arm = status

    def _on_event(self, event: EpisodeEvent) -> None:
        started = event.kind == EpisodeEvent.START
        self._pilot = self._made(int(event.seed), time.monotonic()) if started else None

    def _move(self) -> None:
        now_s, message = time.monotonic(), Joy(axes=[0.0] * 8, buttons=[0] * 8)
        if self._pilot is not None and self._arm is not None and len(self._places) == len(self._looks_at):
            tool = pose_arrays(self._arm.tool)[0]
            seen = (self._places[name] for name in self._looks_at)
            self._pilot.look(now_s, *seen, tool, self._arm.gripper_width)
            message.axes, message.buttons = self._pilot.joy(now_s)
        elif self._starts and now_s % PULSE_S < PRESSED_S:
            message.buttons[BUTTONS["start"]] = 1
        self._pad.publish(message)


@contextmanager
def sitting(starts: bool = False, **about: Any) -> Iterator[None]:
    """Let a person drive in a thread, until the end of the block; ``about`` as of :class:`Person`."""
    with spinning(lambda context: Person(context, starts, **about)):
        yield


@contextmanager
def spinning(made: Callable[[Context], Node]) -> Iterator[None]:
    """Let a node that is made for a context work in a thread, until the end of the block."""
    context, done = Context(), threading.Event()
    rclpy.init(context=context)
    person, executor = made(context), FastExecutor(context=context)
    executor.add_node(person)

    def spin() -> None:
        while not done.is_set():
            executor.spin_once(timeout_sec=0.05)

    thread = threading.Thread(target=spin, name="person")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        executor.shutdown()
        person.destroy_node()
        rclpy.shutdown(context=context)
