"""Goals of an action without an executor: its services are asked and looked at where somebody wants to know.

Source: ROS 2 design, "Actions" (design.ros2.org/articles/actions.html): the services of an action and their names.
"""

import uuid
from typing import Any, Final, Literal

from rclpy.node import Node
from rclpy.qos import qos_profile_action_status_default

from bid_ros.core.errors import ArmError
from bid_ros.nodes.fields import fill
from bid_ros.nodes.ros_service import ServiceClient, channel_type, taken_request, unspun
from bid_ros.robots.bus import Channel, Ended, Judge, Values

Status = Literal["succeeded", "canceled", "aborted"]
UNKNOWN: Final = 0
STATUSES: Final[dict[Status, int]] = {"succeeded": 4, "canceled": 5, "aborted": 6}  # of action_msgs/GoalStatus
NAMES: Final = {number: name for name, number in STATUSES.items()}


class SentGoal:
    """A :class:`bid_ros.robots.bus.Goal`.

    Args:
        client: sent it.
        number: of the request.
        goal_id: ``unique_identifier_msgs`` UUID of the goal.
    """

    def __init__(self, client: "GoalClient", number: int, goal_id: Any) -> None:
        self._client, self._number, self._id = client, number, goal_id
        self._result, self._refused = -1, False
        self._ended: Ended | None = None

    def done(self) -> bool:
        """Return whether the action has ended, without waiting; ArmError if the server refused the goal."""
        if self._ended is not None:
            return True
        if self._result < 0:
            accepted = None if self._refused else self._client.goals.answer(self._number)
            self._refused = self._refused or (accepted is not None and not accepted.accepted)
            if self._refused:
                raise ArmError(f"action {self._client.name} refused a goal: look at its controller")
            if accepted is None:
                return False
            self._result = self._client.results.ask(goal_id=self._id)
        answer = self._client.results.answer(self._result)
        if answer is not None:
            self._ended = Ended(NAMES.get(answer.status, "unknown"), answer.result)
        return answer is not None

    def ended(self) -> Ended | None:
        """Return how it ended; None before :meth:`done` has said that it did."""
        return self._ended

    def cancel(self) -> None:
        """Ask the server to end it. Does not wait."""
        if self._ended is None:
            self._client.cancel(self._id)


class GoalClient:
    """Sends goals of one action.

    Args:
        node: owns the clients.
        channel: names the action.

    Attributes:
        name: of the action.
        goals, results, cancels: its services.

    Raises:
        ArmError: the type of the action does not import.
    """

    def __init__(self, node: Node, channel: Channel) -> None:
        self.name, self._action = channel.name, channel_type(channel, "action")
        kinds = self._action.Impl
        self.goals = ServiceClient(node, kinds.SendGoalService, f"{channel.name}/_action/send_goal")
        self.results = ServiceClient(node, kinds.GetResultService, f"{channel.name}/_action/get_result")
        self.cancels = ServiceClient(node, kinds.CancelGoalService, f"{channel.name}/_action/cancel_goal")

    def servers(self) -> int:
        """Return 1 if a server takes goals, 0 if none is known."""
        return int(self.goals.client.service_is_ready())

    def send(self, values: Values) -> SentGoal:
        """Send a goal."""
        kind = self._action.Impl.SendGoalService.Request()
        kind.goal_id.uuid = list(uuid.uuid4().bytes)
        fill(kind.goal, values)
        return SentGoal(self, self.goals.ask(goal_id=kind.goal_id, goal=kind.goal), kind.goal_id)

    def cancel(self, goal_id: Any) -> None:
        """Ask to end a goal. Does not wait."""
        request = self._action.Impl.CancelGoalService.Request()
        request.goal_info.goal_id = goal_id
        self.cancels.ask(goal_info=request.goal_info)


class TakenGoal:
    """A :class:`bid_ros.robots.bus.ServedGoal`.

    Args:
        server: took it.
        message: object with the fields of the goal.
    """

    def __init__(self, server: "GoalServer", message: Any) -> None:
        self._server, self.message = server, message
        self.canceled = False
        self.result: Any = None
        self.status: Status = "succeeded"

    def finish(self, values: Values, status: Status = "succeeded") -> None:
        """End the goal with the fields of its result."""
        self.result, self.status = self._server.result(values), status
        self._server.answer()


class GoalServer:
    """Takes the goals of one action. It publishes neither their status nor feedback.

    Args:
        node: owns the services.
        channel: names the action.
        judge: says which goals are refused; None: none.

    Raises:
        ArmError: the type of the action does not import.
    """

    def __init__(self, node: Node, channel: Channel, judge: Judge | None = None) -> None:
        self._action, self._judge = channel_type(channel, "action"), judge
        kinds, names = self._action.Impl, f"{channel.name}/_action"
        self._goals = node.create_service(kinds.SendGoalService, f"{names}/send_goal", unspun)
        self._results = node.create_service(kinds.GetResultService, f"{names}/get_result", unspun)
        self._cancels = node.create_service(kinds.CancelGoalService, f"{names}/cancel_goal", unspun)
        # ROS's own client takes a server for one when it has these topics too.
        node.create_publisher(kinds.GoalStatusMessage, f"{names}/status", qos_profile_action_status_default)
        node.create_publisher(kinds.FeedbackMessage, f"{names}/feedback", 10)
        self._taken: dict[bytes, TakenGoal] = {}
        self._asked: list[tuple[Any, bytes]] = []

    def take(self) -> list[TakenGoal]:
        """Return the goals that have come, and answer who asks for results or wants to cancel."""
        found = []
        while (asked := taken_request(self._goals)) is not None:
            request, header = asked
            accepted = self._judge is None or not self._judge(request.goal)
            if accepted:
                goal = TakenGoal(self, request.goal)
                self._taken[bytes(request.goal_id.uuid)] = goal
                found.append(goal)
            self._goals.send_response(self._goals.srv_type.Response(accepted=accepted), header)
        while (asked := taken_request(self._cancels)) is not None:
            request, header = asked
            self._cancels.send_response(self._cancel(request.goal_info), header)
        while (asked := taken_request(self._results)) is not None:
            request, header = asked
            self._asked.append((header, bytes(request.goal_id.uuid)))
        self.answer()
        return found

    def _cancel(self, wanted: Any) -> Any:
        """Mark the goal that is to end, or without an id all of them. Return the response."""
        key = bytes(wanted.goal_id.uuid)
        goals = [(own, goal) for own, goal in self._taken.items() if goal.result is None and key in (own, bytes(16))]
        response = self._cancels.srv_type.Response()
        for own, goal in goals:
            goal.canceled = True
            info = type(wanted)()
            info.goal_id.uuid = list(own)
            response.goals_canceling.append(info)
        response.return_code = response.ERROR_NONE if goals else response.ERROR_UNKNOWN_GOAL_ID
        return response

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
            response = self._results.srv_type.Response(status=UNKNOWN)
            if goal is not None:
                response.status, response.result = STATUSES[goal.status], goal.result
                del self._taken[key]
            self._results.send_response(response, header)
        self._asked = waiting
