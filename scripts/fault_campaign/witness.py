"""Listens to a running system from outside: what its nodes say, and when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import rclpy
from rclpy.context import Context
from rclpy.node import Node

from bid_msgs.msg import ArmStatus, EpisodeEvent, SafetyState
from bid_ros.core.topics import ARM_STATUS, EPISODE_EVENT, SAFETY_CHUNK, SAFETY_STATE, TOPICS
from bid_ros.nodes.executor import FastExecutor
from bid_ros.nodes.topics import message_type, profile

TURN_S: Final = 0.02


@dataclass(frozen=True)
class Said:
    """A reason that a node gave.

    Attributes:
        at: steady time at which it was heard first, s.
        where: topic.
        text: of the reason; empty: the node had no reason any more.
        stopped: the node says that it has latched a stop, or a fault.
    """

    at: float
    where: str
    text: str
    stopped: bool


class Witness:
    """A node in a thread of its own, in a ROS domain.

    Attributes:
        node: of this process, to publish as a stranger. Its publishers belong to whoever makes them.
        said: every change of a reason, in order.
        events: kinds of ``EpisodeEvent`` with the steady time, in order.
        status, chunk: newest message, None before the first.
    """

    def __init__(self, domain: int, name: str = "witness") -> None:
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        self.node = Node(name, context=self._context)
        self.said: list[Said] = []
        self.events: list[tuple[float, int]] = []
        self.status: Any = None
        self.chunk: Any = None
        self._newest: dict[str, tuple[str, bool]] = {}
        self._executor = FastExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._ended = threading.Event()
        for topic, take in (
            (ARM_STATUS, self._on_status),
            (SAFETY_STATE, self._on_safety),
            (EPISODE_EVENT, self._on_event),
            (SAFETY_CHUNK, self._on_chunk),
        ):
            self._listen(topic, take)
        self._thread = threading.Thread(target=self._spin, name="witness", daemon=True)
        self._thread.start()

    @property
    def tracks(self) -> bool:
        """Whether an episode runs, and the arm follows the policy."""
        runs = bool(self.events) and self.events[-1][1] == EpisodeEvent.START
        status = self.status
        return runs and status is not None and status.mode == ArmStatus.TRACKING and status.source == "policy"

    def close(self) -> None:
        """Leave the graph."""
        self._ended.set()
        self._thread.join()
        self.node.destroy_node()
        rclpy.shutdown(context=self._context)

    def _listen(self, topic: str, take: Callable[[Any], None]) -> None:
        kind = TOPICS[topic]
        self.node.create_subscription(message_type(kind.type_name), topic, take, profile(kind.qos, 50))

    def _spin(self) -> None:
        while not self._ended.is_set():
            self._executor.spin_once(timeout_sec=TURN_S)
        self._executor.shutdown()

    def _on_status(self, message: Any) -> None:
        self.status = message
        self._say("arm/status", message.reason, message.mode in (ArmStatus.STOPPED, ArmStatus.FAULT))

    def _on_safety(self, message: Any) -> None:
        self._say("safety/state", message.reason, message.state == SafetyState.STOPPED)

    def _on_event(self, message: Any) -> None:
        self.events.append((time.monotonic(), int(message.kind)))
        # Where arm node and safety node are both frozen, the episode node is left to say why.
        if message.kind == EpisodeEvent.END and message.outcome.startswith("stopped"):
            self._say("episode/event", message.outcome, True)

    def _on_chunk(self, message: Any) -> None:
        self.chunk = message

    def _say(self, where: str, text: str, stopped: bool) -> None:
        if self._newest.get(where, ("", False)) != (text, stopped):
            self._newest[where] = (text, stopped)
            self.said.append(Said(time.monotonic(), where, text, stopped))
