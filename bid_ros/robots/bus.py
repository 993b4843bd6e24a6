"""The bus: topics and actions for a robot that is itself driven through ROS. The nodes fill it; nothing here knows ROS.

A driver names its channels, publishes plain values, and looks at the newest message of what it listens to. It is never
called back, so no thread of ROS runs in it. A message is any object with the message's fields.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from bid_ros.core.chunk import NANOSECONDS

Values = Mapping[str, Any]
"""Fields of a message by name. A nested message is again a mapping; a list of messages is a list of mappings."""


@dataclass(frozen=True)
class Channel:
    """A topic, or with the type of an action or of a service one of those.

    Attributes:
        name: as ROS takes it: without a leading slash it is relative to the namespace of the system.
        type_name: for example ``sensor_msgs/msg/JointState``.
        reliability: what a listener asks for; a best-effort listener takes messages of every publisher.
        latched: its newest message also reaches who listens later.
        depth: messages that wait for a listener; older ones are dropped.
    """

    name: str
    type_name: str
    reliability: Literal["reliable", "best_effort"] = "reliable"
    latched: bool = False
    depth: int = 1


@dataclass(frozen=True)
class Heard:
    """A message.

    Attributes:
        message: object with the message's fields.
        arrived_ns: wall time of its arrival, nanoseconds since 1970.
    """

    message: Any
    arrived_ns: int


@dataclass(frozen=True)
class GoalResult:
    """How a goal ended.

    Attributes:
        status: as the server says; ``unknown`` if it does not know the goal any more.
        result: object with the fields of the action's result.
    """

    status: Literal["succeeded", "canceled", "aborted", "unknown"]
    result: Any


class Goal(Protocol):
    """A goal that an action server has got."""

    def done(self) -> bool:
        """Return whether the action has ended, without waiting.

        Raises:
            ArmError: the server refused the goal.
        """

    def ended(self) -> GoalResult | None:
        """Return how it ended; None before :meth:`done` has said that it did."""

    def cancel(self) -> None:
        """Ask the server to end it. Does not wait; without effect on a goal that has ended."""


class ServedGoal(Protocol):
    """A goal that a twin has got.

    Attributes:
        message: object with the fields of the goal.
    """

    message: Any

    @property
    def canceled(self) -> bool:
        """Whether its sender wants it to end."""

    def finish(self, values: Values, status: Literal["succeeded", "canceled", "aborted"] = "succeeded") -> None:
        """End the goal with the fields of its result."""


class Request(Protocol):
    """A question to a service."""

    def answer(self) -> Any:
        """Return the answer, an object with the fields of the response; None while there is none."""


Judge = Callable[[Any], str]
"""Takes a goal's message and returns why it is refused; empty: it is accepted."""


class Bus(Protocol):
    """Topics and actions of one process. Any thread may call it. Nothing waits, unless it is said."""

    def listen(self, channel: Channel) -> None:
        """Begin to take the messages of a topic; again does nothing. Raises ArmError for an unknown message type."""

    def offer(self, channel: Channel) -> None:
        """Begin to publish a topic, to send goals of an action or to ask a service; again does nothing.

        Raises:
            ArmError: its type does not import.
        """

    def latest(self, name: str) -> Heard | None:
        """Return the newest message of a topic that is listened to; None before the first."""

    def news(self, name: str) -> Sequence[Heard]:
        """Return what has come on a topic since the last look, by this or :meth:`latest`, oldest first."""

    def publish(self, name: str, values: Values) -> None:
        """Publish a message on a topic that is offered."""

    def partners(self, name: str) -> int:
        """Return how many others are known to publish what is listened to, or to take what is offered."""

    def send_goal(self, name: str, values: Values) -> Goal:
        """Send a goal of an action that is offered. The newest goal replaces one that runs."""

    def ask(self, name: str) -> Request:
        """Ask a service that is offered, without fields. Does not wait. Raises ArmError if it is not offered."""

    def reply(self, name: str, values: Values) -> None:
        """Answer everyone who has asked a service that is served, with the fields of its response."""

    def serve(self, channel: Channel, judge: Judge | None = None) -> None:
        """Begin to take goals of an action, or to answer a service, as a twin does; again does nothing.

        Args:
            channel: names the action or service.
            judge: says which goals are refused, within :meth:`goals`; None: none.

        Raises:
            ArmError: its type does not import.
        """

    def goals(self, name: str) -> Sequence[ServedGoal]:
        """Return new goals of an action that is served, and answer who asks for results or wants to cancel."""

    def full_name(self, name: str) -> str:
        """Return the full name of a topic or action, with its namespace."""

    def close(self) -> None:
        """End everything. May be called twice; what was listened to is listened to anew by :meth:`listen`."""


def stamp(time_ns: int) -> Values:
    """Return the values of a ``builtin_interfaces`` Time or Duration of so many ns."""
    return {"sec": time_ns // NANOSECONDS, "nanosec": time_ns % NANOSECONDS}
