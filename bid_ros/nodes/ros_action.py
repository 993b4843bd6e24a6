"""Goals of an action without an executor: its services are asked and looked at where somebody wants to know.

Source: ROS 2 design, "Actions" (design.ros2.org/articles/actions.html): the services of an action and their names.
"""

import importlib
import uuid
from typing import Any, Final

from rclpy.node import Node

from bid_ros.core.errors import ArmError
from bid_ros.nodes.fields import fill
from bid_ros.robots.bus import Channel, Values

UNKNOWN: Final = 0
SUCCEEDED: Final = 4  # of action_msgs/GoalStatus


class SentGoal:
    """A :class:`bid_ros.robots.bus.Goal`.

    Args:
        client: sent it.
        number: of the request.
        goal_id: ``unique_identifier_msgs`` UUID of the goal.
    """

    def __init__(self, client: "GoalClient", number: int, goal_id: Any) -> None:
        self._client, self._number, self._id = client, number, goal_id
        self._result = -1
        self._done = False

    def done(self) -> bool:
        """Return whether the action has ended, without waiting; ArmError if the server refused the goal."""
        if self._done:
            return True
        if self._result < 0:
            accepted = self._client.goals.answer(self._number)
            if accepted is None:
                return False
            if not accepted.accepted:
                raise ArmError(f"action {self._client.name} refused a goal: look at its controller")
            self._result = self._client.results.ask(goal_id=self._id)
        self._done = self._client.results.answer(self._result) is not None
        return self._done


class _Service:
    """Requests of one service, and the answers that have come."""

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


class GoalClient:
    """Sends goals of one action.

    Args:
        node: owns the clients.
        channel: names the action.

    Attributes:
        name: of the action.
        goals, results: its services.

    Raises:
        ArmError: the type of the action does not import.
    """

    def __init__(self, node: Node, channel: Channel) -> None:
        self.name, self._action = channel.name, action_type(channel)
        kinds = self._action.Impl
        self.goals = _Service(node, kinds.SendGoalService, f"{channel.name}/_action/send_goal")
        self.results = _Service(node, kinds.GetResultService, f"{channel.name}/_action/get_result")

    def servers(self) -> int:
        """Return 1 if a server takes goals, 0 if none is known."""
        return int(self.goals.client.service_is_ready())

    def send(self, values: Values) -> SentGoal:
        """Send a goal."""
        kind = self._action.Impl.SendGoalService.Request()
        kind.goal_id.uuid = list(uuid.uuid4().bytes)
        fill(kind.goal, values)
        return SentGoal(self, self.goals.ask(goal_id=kind.goal_id, goal=kind.goal), kind.goal_id)


class TakenGoal:
    """A :class:`bid_ros.robots.bus.ServedGoal`.

    Args:
        server: took it.
        message: object with the fields of the goal.
    """

    def __init__(self, server: "GoalServer", message: Any) -> None:
        self._server, self.message = server, message
        self.result: Any = None

    def finish(self, values: Values) -> None:
        """End the goal with the fields of its result."""
        self.result = self._server.result(values)
        self._server.answer()


class GoalServer:
    """Takes the goals of one action. It accepts every goal, and cancels none: a newer one replaces it.

    Args:
        node: owns the services.
        channel: names the action.

    Raises:
        ArmError: the type of the action does not import.
    """

    def __init__(self, node: Node, channel: Channel) -> None:
        self._action = action_type(channel)
        kinds = self._action.Impl
        self._goals = node.create_service(kinds.SendGoalService, f"{channel.name}/_action/send_goal", _unspun)
        self._results = node.create_service(kinds.GetResultService, f"{channel.name}/_action/get_result", _unspun)
        self._taken: dict[bytes, TakenGoal] = {}
        self._asked: list[tuple[Any, bytes]] = []

    def take(self) -> list[TakenGoal]:
        """Return the goals that have come, and answer who asks for results."""
        found = []
        while (asked := _request(self._goals)) is not None:
            request, header = asked
            goal = TakenGoal(self, request.goal)
            self._taken[bytes(request.goal_id.uuid)] = goal
            found.append(goal)
            self._goals.send_response(self._goals.srv_type.Response(accepted=True), header)
        while (asked := _request(self._results)) is not None:
            request, header = asked
            self._asked.append((header, bytes(request.goal_id.uuid)))
        self.answer()
        return found

    def result(self, values: Values) -> Any:
        """Return a result message."""
        return fill(self._action.Result(), values)

    def answer(self) -> None:
        """Answer who asks for the result of a goal that has ended."""
        waiting = []
        for header, key in self._asked:
            goal = self._taken.get(key)
            if goal is not None and goal.result is None:
                waiting.append((header, key))
                continue
            response = self._results.srv_type.Response(status=UNKNOWN if goal is None else SUCCEEDED)
            if goal is not None:
                response.result = goal.result
                del self._taken[key]
            self._results.send_response(response, header)
        self._asked = waiting


def _unspun(request: Any, response: Any) -> Any:
    """Stand for the callback that rclpy wants: the services are looked at, not spun."""
    return response


def _request(service: Any) -> tuple[Any, Any] | None:
    with service.handle:
        request, header = service.handle.service_take_request(service.srv_type.Request)
    return None if request is None else (request, header)


def action_type(channel: Channel) -> Any:
    """Return the class of an action; ArmError if it does not import."""
    package, _, short = channel.type_name.split("/")
    try:
        return getattr(importlib.import_module(f"{package}.action"), short)
    except (ImportError, AttributeError) as error:
        kind = f"action type '{channel.type_name}' does not import: {error}"
        raise ArmError(f"action {channel.name}: {kind}; valid is one of a sourced package") from error
