"""The bus of a robot that is driven through ROS, over rclpy. Message types are found by name when they are needed."""

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import rclpy
from rclpy.action import ActionClient
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, ShutdownException, SingleThreadedExecutor, TimeoutException
from rclpy.node import Node
from rclpy.publisher import Publisher

from bid_ros.core.errors import ArmError
from bid_ros.core.topics import Qos
from bid_ros.nodes.fields import fill
from bid_ros.nodes.polled_action import SentGoal, SentRequest, TakenGoal, channel_type, serve_goals
from bid_ros.nodes.topics import profile
from bid_ros.robots.bus import Channel, Goal, Heard, Judge, Request, ServedGoal, Values

SERVED_S: Final = 0.01  # between two looks of a server, which cost 0.1 ms each


class Polled(MutuallyExclusiveCallbackGroup):
    """Callbacks that no executor calls: who owns the subscription takes its messages."""

    def can_execute(self, entity: Any) -> bool:
        """Return False."""
        return False


class NodeBus:
    """A :class:`bid_ros.robots.bus.Bus` with a node of its own, which is polled.

    What has come waits in the middleware until it is asked for. So nothing interrupts the node beside it, and the
    messages of a fast topic that nobody asks for are never decoded. Actions and services are served by an executor that
    spins only while somebody looks at one of them, in that thread.

    Args:
        name: of its node.
        namespace: that relative names are in.
        context: of rclpy; None: the process's own.
    """

    def __init__(self, name: str, namespace: str = "", context: Context | None = None) -> None:
        self._name, self._namespace, self._context = name, namespace, context
        self._lock = threading.RLock()
        self._node: Node | None = None
        self._executor: SingleThreadedExecutor | None = None
        self._spun_s = 0.0  # steady time
        self._subscriptions: dict[str, Any] = {}
        self._offered: dict[str, tuple[Any, Any]] = {}  # publisher or client, and the class of what it sends
        self._goals: dict[str, list[TakenGoal]] = {}
        self._replies: dict[str, Values] = {}
        self._newest: dict[str, Heard] = {}

    def listen(self, channel: Channel) -> None:
        """Begin to take the messages of a topic; again does nothing. Raises ArmError for an unknown message type."""
        with self._lock:
            if channel.name not in self._subscriptions:
                self._subscriptions[channel.name] = self._opened().create_subscription(
                    channel_type(channel, "msg"),
                    channel.name,
                    lambda _: None,
                    profile(_qos(channel)),
                    callback_group=Polled(),
                )

    def offer(self, channel: Channel) -> None:
        """Begin to publish a topic, to send goals of an action or to ask a service; again does nothing.

        Raises:
            ArmError: its type does not import.
        """
        with self._lock:
            if channel.name in self._offered:
                return
            word = channel.type_name.split("/")[1]
            node, kind = self._opened(), channel_type(channel, word)
            if word == "srv":
                made: Any = node.create_client(kind, channel.name)
            elif word == "action":
                made = ActionClient(node, kind, channel.name)
            else:
                made = node.create_publisher(kind, channel.name, profile(_qos(channel)))
            self._offered[channel.name] = made, kind

    def latest(self, name: str) -> Heard | None:
        """Return the newest message of a topic that is listened to; None before the first."""
        with self._lock:
            self.news(name)
            return self._newest.get(name)

    def news(self, name: str) -> Sequence[Heard]:
        """Return what has come on a topic since the last look, by this or :meth:`latest`, oldest first."""
        with self._lock:
            subscription, found = self._subscriptions.get(name), deque[Heard]()
            if subscription is None:
                return found
            for _ in range(subscription.qos_profile.depth):
                with subscription.handle:
                    taken = subscription.handle.take_message(subscription.msg_type, False)
                if taken is None:
                    break
                found.append(Heard(taken[0], arrival_ns(taken[1])))
            if found:
                self._newest[name] = found[-1]
            return found

    def publish(self, name: str, values: Values) -> None:
        """Publish a message on a topic that is offered."""
        with self._lock:
            if name in self._offered:  # otherwise the bus was closed by another thread
                publisher, kind = self._offered[name]
                publisher.publish(fill(kind(), values))

    def partners(self, name: str) -> int:
        """Return how many others are known to publish what is listened to, or to listen to what is offered."""
        with self._lock:
            if name not in self._offered:
                return int(self._opened().count_publishers(name)) if name in self._subscriptions else 0
            made = self._offered[name][0]
            if isinstance(made, Publisher):
                return int(made.get_subscription_count())
            return int(made.server_is_ready() if isinstance(made, ActionClient) else made.service_is_ready())

    def send_goal(self, name: str, values: Values) -> Goal:
        """Send a goal of an action that is offered. The newest goal replaces one that runs.

        Raises:
            ArmError: the action is not offered any more.
        """
        with self._lock:
            client, kind = self._asked("action", name)
            return SentGoal(name, client.send_goal_async(fill(kind.Goal(), values)), self._spin, self._lock)

    def ask(self, name: str) -> Request:
        """Ask a service that is offered. Does not wait.

        Raises:
            ArmError: the service is not offered any more.
        """
        with self._lock:
            client, kind = self._asked("service", name)
            return SentRequest(client.call_async(kind.Request()), self._spin)

    def reply(self, name: str, values: Values) -> None:
        """Answer everyone who has asked a service that is served."""
        with self._lock:
            if name in self._replies:
                self._replies[name] = values
                self._spin(SERVED_S)

    def serve(self, channel: Channel, judge: Judge | None = None) -> None:
        """Begin to take goals of an action, or to answer a service; again does nothing. Raises as :meth:`listen`."""
        with self._lock:
            if "/srv/" in channel.type_name:
                if channel.name not in self._replies:
                    kind, self._replies[channel.name] = channel_type(channel, "srv"), {}
                    self._opened().create_service(
                        kind, channel.name, lambda _, response: fill(response, self._replies[channel.name])
                    )
                return
            if channel.name not in self._goals:
                self._goals[channel.name] = serve_goals(self._opened(), channel, judge)

    def goals(self, name: str) -> Sequence[ServedGoal]:
        """Return new goals of an action that is served, and answer who asks for results or wants to cancel."""
        with self._lock:
            self._spin(SERVED_S)
            taken = self._goals.get(name, [])
            found = taken.copy()
            taken.clear()
            return found

    def full_name(self, name: str) -> str:
        """Return the full name of a topic or action, with its namespace."""
        return name if name.startswith("/") else f"{self._namespace.rstrip('/')}/{name}"

    def close(self) -> None:
        """End everything. May be called twice."""
        with self._lock:
            node, self._node = self._node, None
            executor, self._executor = self._executor, None
            self._subscriptions, self._offered, self._newest, self._goals, self._replies = {}, {}, {}, {}, {}
            if node is not None:
                node.destroy_node()
            if executor is not None:
                executor.shutdown()

    def _asked(self, what: str, name: str) -> tuple[Any, Any]:
        if name not in self._offered:
            raise ArmError(f"{what} {name} is not connected; valid is one that is offered")
        return self._offered[name]

    def _opened(self) -> Node:
        if self._node is None:
            self._node = rclpy.create_node(
                self._name,
                context=self._context,
                namespace=self._namespace,
                use_global_arguments=False,  # a name that is given to the process is that of its main node
                enable_rosout=False,
                start_parameter_services=False,
            )
            self._executor = SingleThreadedExecutor(context=self._context)
            self._executor.add_node(self._node)
        return self._node

    def _spin(self, every_s: float = 0.0) -> None:
        """Take what has come for actions and services, unless that was done within so many s."""
        with self._lock:
            if self._executor is None or time.monotonic() - self._spun_s < every_s:
                return
            self._spun_s = time.monotonic()
            with suppress(TimeoutException, ShutdownException, ExternalShutdownException):
                while True:
                    handler, _, _ = self._executor.wait_for_ready_callbacks(timeout_sec=0)
                    handler()
                    handler.result()


def arrival_ns(info: Mapping[str, Any]) -> int:
    """Return the wall time of a message's arrival, ns. A middleware that tells none says 0: then it is now."""
    return int(info["received_timestamp"]) or time.time_ns()


def _qos(channel: Channel) -> Qos:
    return Qos(channel.depth, channel.reliability, "transient_local" if channel.latched else "volatile")
