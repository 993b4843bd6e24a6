"""Goals of an action, and questions to a service, for a bus that is polled: rclpy's own, spun where somebody looks."""

from collections.abc import Callable
from threading import RLock
from typing import Any, Final, Literal

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.node import Node
from rclpy.task import Future

from bid_ros.core.errors import ArmError, BidError
from bid_ros.nodes.fields import fill
from bid_ros.nodes.topics import KINDS, ros_type
from bid_ros.robots.bus import Channel, GoalResult, Judge, Values

Status = Literal["succeeded", "canceled", "aborted"]
NAMES: Final[dict[int, Status]] = {4: "succeeded", 5: "canceled", 6: "aborted"}  # by action_msgs/GoalStatus
ENDS: Final = {
    "succeeded": ServerGoalHandle.succeed,
    "canceled": ServerGoalHandle.canceled,
    "aborted": ServerGoalHandle.abort,
}


class SentGoal:
    """A :class:`bid_ros.robots.bus.Goal`.

    Args:
        name: of the action.
        sent: becomes the server's handle of the goal.
        spin: takes what has come.
        lock: of the bus. While one thread asks no other may spin, since rclpy forgets an answer that is taken before it
            has noted the question.
    """

    def __init__(self, name: str, sent: Future, spin: Callable[[], None], lock: RLock) -> None:
        self._name, self._sent, self._spin, self._lock = name, sent, spin, lock
        self._result: Future | None = None

    def done(self) -> bool:
        """Return whether the action has ended, without waiting; ArmError if the server refused the goal."""
        with self._lock:
            self._spin()
            if self._result is None and self._sent.done():
                if not self._sent.result().accepted:
                    raise ArmError(f"action {self._name} refused a goal: look at its controller")
                self._result = self._sent.result().get_result_async()
            return self._result is not None and bool(self._result.done())

    def ended(self) -> GoalResult | None:
        """Return how it ended; None before :meth:`done` has said that it did."""
        if self._result is None or not self._result.done():
            return None
        answer = self._result.result()
        return GoalResult(NAMES.get(answer.status, "unknown"), answer.result)

    def cancel(self) -> None:
        """Ask the server to end it, once it has accepted it. Does not wait."""
        with self._lock:
            self._sent.add_done_callback(lambda sent: sent.result().accepted and sent.result().cancel_goal_async())


class SentRequest:
    """A :class:`bid_ros.robots.bus.Request`.

    Args:
        future: becomes the answer.
        spin: takes what has come.
    """

    def __init__(self, future: Future, spin: Callable[[], None]) -> None:
        self._future, self._spin = future, spin

    def answer(self) -> Any:
        """Return the answer; None while there is none."""
        self._spin()
        return self._future.result()


class TakenGoal:
    """A :class:`bid_ros.robots.bus.ServedGoal`.

    Args:
        handle: of rclpy.
        result: class of the action's result.
    """

    def __init__(self, handle: ServerGoalHandle, result: Any) -> None:
        self._handle, self._result, self.message = handle, result, handle.request

    @property
    def canceled(self) -> bool:
        """Whether its sender wants it to end."""
        return bool(self._handle.is_cancel_requested)

    def finish(self, values: Values, status: Status = "succeeded") -> None:
        """End the goal with the fields of its result."""
        result = fill(self._result(), values)

        def end(handle: ServerGoalHandle) -> Any:
            ENDS[status](handle)
            return result

        self._handle.execute(end)


def serve_goals(node: Node, channel: Channel, judge: Judge | None = None) -> list[TakenGoal]:
    """Serve an action. Return a list to which its goals are added; whoever wants to cancel one may.

    Args:
        node: owns the server.
        channel: names the action.
        judge: says which goals are refused; None: none.

    Raises:
        ArmError: the type of the action does not import.
    """
    kind, taken = channel_type(channel, "action"), list[TakenGoal]()
    ActionServer(
        node,
        kind,
        channel.name,
        execute_callback=lambda handle: None,  # a goal is executed when it is finished
        goal_callback=lambda goal: GoalResponse.REJECT if judge is not None and judge(goal) else GoalResponse.ACCEPT,
        handle_accepted_callback=lambda handle: taken.append(TakenGoal(handle, kind.Result)),
        cancel_callback=lambda handle: CancelResponse.ACCEPT,
    )
    return taken


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
