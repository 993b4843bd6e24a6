"""Services without an executor: they are asked, answered and looked at where somebody wants to know."""

from collections.abc import Mapping
from typing import Any

from rclpy.node import Node

from bid_ros.core.errors import ArmError, BidError
from bid_ros.nodes.fields import fill
from bid_ros.nodes.topics import KINDS, ros_type
from bid_ros.robots.bus import Channel


class ServiceClient:
    """Requests of one service, and the answers that have come.

    Args:
        node: owns the client.
        kind: class of the service.
        name: of the service.

    Attributes:
        client: of rclpy.
    """

    def __init__(self, node: Node, kind: Any, name: str) -> None:
        self._kind, self._answers = kind, dict[int, Any]()
        self.client = node.create_client(kind, name)

    def ask(self, **fields: Any) -> int:
        """Send a request; return its number."""
        with self.client.handle:
            return int(self.client.handle.send_request(self._kind.Request(**fields)))

    def answer(self, number: int) -> Any:
        """Return the answer to a request, once; None while there is none."""
        with self.client.handle:
            header, response = self.client.handle.take_response(self._kind.Response)
        if header is not None:
            self._answers = {header.request_id.sequence_number: response}  # older ones have been replaced
        return self._answers.pop(number, None)


class SentRequest:
    """A :class:`bid_ros.robots.bus.Request`.

    Args:
        client: sends it.
    """

    def __init__(self, client: ServiceClient) -> None:
        self._client, self._number = client, client.ask()

    def answer(self) -> Any:
        """Return the answer, once; None while there is none."""
        return self._client.answer(self._number)


class ServiceServer:
    """Answers who asks a service.

    Args:
        node: owns the service.
        kind: class of the service.
        name: of the service.
    """

    def __init__(self, node: Node, kind: Any, name: str) -> None:
        self._service = node.create_service(kind, name, unspun)

    def reply(self, values: Mapping[str, Any]) -> None:
        """Answer everyone who has asked, with the fields of the response."""
        while (asked := taken_request(self._service)) is not None:
            self._service.send_response(fill(self._service.srv_type.Response(), values), asked[1])


def unspun(request: Any, response: Any) -> Any:
    """Stand for the callback that rclpy wants: the services are looked at, not spun."""
    return response


def taken_request(service: Any) -> tuple[Any, Any] | None:
    """Take a request from a service of rclpy, with its header; None if there is none."""
    with service.handle:
        request, header = service.handle.service_take_request(service.srv_type.Request)
    return None if request is None else (request, header)


def channel_type(channel: Channel, word: str) -> Any:
    """Return the class of what a channel carries, see :func:`bid_ros.nodes.topics.ros_type`.

    Raises:
        ArmError: it does not import.
    """
    try:
        return ros_type(channel.type_name, word)
    except BidError as error:
        named = "topic" if word == "msg" else KINDS[word]
        raise ArmError(f"{named} {channel.name}: {error}") from error
