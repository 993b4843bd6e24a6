"""What every node shares: checked parameters, topics, heartbeat, diagnostics."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from bid_msgs.msg import Heartbeat
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import BidError
from bid_ros.core.task import Task, load_task
from bid_ros.core.topics import DIAGNOSTICS, HEARTBEAT, TOPICS, Topic
from bid_ros.nodes.executor import FastExecutor
from bid_ros.nodes.heartbeat import PERIOD_S, HeartbeatThread
from bid_ros.nodes.parameters import Parameter, check_parameters
from bid_ros.nodes.ros_messages import header, set_time
from bid_ros.nodes.run import run_node
from bid_ros.nodes.topics import message_type, overridable, profile, publisher
from bid_ros.system.parameters import QOS, check_override

WORK_PERIOD_S, WORK_LIMIT_S = 0.05, 0.2  # of the executor, which is the work of most nodes
PATIENT_DEPTH = 50  # messages of a topic that may wait for a timer
# Steps of niceness. Nodes on the way of a set-point to the robot must not wait for nodes that compute, and must not
# mistake their own delay for the silence of others. A decision that waits for other programs is missed. A twin and its
# cameras stand for hardware, which no load slows down. The physics need a turn every millisecond, an image can wait.
COMMAND_PRIORITY, TWIN_PRIORITY, DECISION_PRIORITY, HARDWARE_PRIORITY = 10, 10, 7, 5


class BidNode(Node):
    """Base of the nodes. :meth:`begin` opens what must be closed again; the constructor does not.

    Attributes:
        outlives: topics. When asked to end, the node waits until nobody publishes them any more, 3.5 s at most.
        heartbeat_s: s between two heartbeats. No other node can have a short deadline for a node whose period is long.
        changeable: names of the parameters that may be set while the node runs; :meth:`change` takes them.
        ended: whether the node was asked to end, or ends by itself.
        worked: call it at each step of the node's work, as :class:`bid_ros.nodes.heartbeat.HeartbeatThread` expects.
        robot: name of the robot of this node's system.
        frame_prefix: prefix of the name of every frame.
        hardware_id: whose diagnostics these are: ``robot``, or without a namespace the task's robot, such as franka.

    Args:
        name: default node name, also the name in heartbeats.
        parameters: every parameter of the node.
        work_limit_s: the heartbeat pauses while the node's work has made no step for this long, s. None: its work is
            that of the executor. Other nodes call :meth:`worked` where they work.
        sim_time: whether the node works with the time of /clock. The others compare stamps with this computer's clock.

    Raises:
        BidError: a parameter is unknown, has the wrong type or lies outside its range.
    """

    outlives: Sequence[str] = ()
    heartbeat_s: float = PERIOD_S
    changeable: Sequence[str] = ()
    placed: Mapping[str, Any] = {}  # what rclpy is told of one of several nodes of a process

    def __init__(
        self,
        name: str,
        parameters: Sequence[Parameter],
        work_limit_s: float | None = None,
        sim_time: bool = False,
    ) -> None:
        # A heartbeat must go on when the wall clock is set or simulated time stands still.
        self._pace = Clock(clock_type=ClockType.STEADY_TIME)
        super().__init__(name, **self.placed)
        self._role = name
        self.ended = False
        self.exit_status = 0
        self._wake = self.create_guard_condition(lambda: None)
        name = self.get_namespace().strip("/")
        parameters = (
            *parameters,
            Parameter("robot", name, "whose system this is; messages of another are refused"),
            Parameter("frame_prefix", f"{name}/" if name else "", "precedes the name of every frame"),
        )
        self._listened: Counter[str] = Counter()
        given = {name: parameter.value for name, parameter in self._parameter_overrides.items()}
        self._overrides = {name: value for name, value in given.items() if name.startswith(f"{QOS}.")}
        for override, value in self._overrides.items():
            check_override(f"node '{self._role}'", override, value)
        own = [name for name in given if self.has_parameter(name) or name in self._overrides]  # of ROS itself
        check_parameters(self._role, parameters, {name: given[name] for name in given if name not in own})
        for parameter in parameters:
            descriptor = parameter.descriptor(parameter.name in self.changeable)
            self.declare_parameter(parameter.name, parameter.default, descriptor)
        self._sim_time = sim_time
        BidNode.change(self, {"use_sim_time": self.value("use_sim_time")})  # of a subclass, nothing is there yet
        self.add_on_set_parameters_callback(self._on_set)
        self.robot, self.frame_prefix = str(self.value("robot")), str(self.value("frame_prefix"))
        if self.frame_prefix.startswith("/"):
            raise BidError(f"frame_prefix is '{self.frame_prefix}'; valid is a text that does not begin with /")
        self.hardware_id = self.robot or self._role  # until the task says more
        self._heartbeat = Heartbeat(robot=self.robot, node=self._role)
        self._heartbeat_publisher = self.advertise(HEARTBEAT)
        self._diagnostics_publisher = self.advertise(DIAGNOSTICS)
        limit_s = WORK_LIMIT_S if work_limit_s is None else work_limit_s
        self.heartbeat = HeartbeatThread(self._send_heartbeat, limit_s, self.heartbeat_s)
        self.worked = self.heartbeat.worked
        if work_limit_s is None:
            self.create_timer(WORK_PERIOD_S, self.worked)
        self.create_timer(1.0, self._publish_diagnostics)

    def create_timer(self, *arguments: Any, **options: Any) -> Any:
        """Create a timer that keeps the pace of a steady clock."""
        return super().create_timer(*arguments, **{"clock": self._pace, **options})

    def value(self, name: str) -> Any:
        """Value of a declared parameter."""
        return self.get_parameter(name).value

    def load_task(self) -> Task:
        """Return the task of the parameter ``task``, with this system's frame prefix. Raises TaskError."""
        task = load_task(self.value("task"))
        self.hardware_id = self.robot or task.robot
        return task.with_frame_prefix(self.frame_prefix)

    def now_ns(self) -> int:
        """ROS time in integer nanoseconds."""
        return int(self.get_clock().now().nanoseconds)

    def _send_heartbeat(self, work_age_s: float) -> None:
        set_time(self._heartbeat.header.stamp, self.now_ns())
        self._heartbeat.work_age = work_age_s
        self._heartbeat_publisher.publish(self._heartbeat)
        self._heartbeat.sequence += 1

    def advertise(self, name: str, topic: Topic | None = None) -> Any:
        """Return a publisher. Type and quality of service are those of ``topic``, by default the one of this name."""
        return publisher(self, name, topic or TOPICS[name])

    def subscribe(
        self,
        name: str,
        callback: Callable[[Any], None],
        topic: Topic | None = None,
        patient: bool = False,
        newest: bool = False,
    ) -> Any:
        """Subscribe as :meth:`advertise`. Messages of another robot are refused with a warning, without a callback.

        Args:
            name, topic: as :meth:`advertise`.
            callback: takes each message.
            patient: its messages may wait until a timer or another message wakes this node.
            newest: it is patient, and only the newest of those that wait counts.

        Returns:
            The subscription.
        """
        topic = topic or TOPICS[name]

        def refuse_foreign(message: Any) -> None:
            robot = getattr(message, "robot", self.robot)  # ROS's own messages name no robot
            if robot == self.robot:
                callback(message)
                return
            problem = f"refused messages on {name} of robot '{robot}'; valid is '{self.robot}', the one of this system"
            self.get_logger().warning(problem, throttle_duration_sec=5.0)

        return self.listen(name, refuse_foreign, topic, patient or newest, depth=1 if newest else None)

    def listen(
        self,
        name: str,
        callback: Callable[[Any], None],
        topic: Topic,
        patient: bool = False,
        raw: bool = False,
        depth: int | None = None,
    ) -> Any:
        """Subscribe as :meth:`subscribe`, to messages of every robot.

        Args:
            name, callback, topic, patient: as :meth:`subscribe`.
            raw: the callback gets serialised messages.
            depth: how many may wait; by default enough for the pauses of a busy computer.
        """
        if patient and depth is None:
            depth = max(PATIENT_DEPTH, topic.qos.depth)
        kind, qos = message_type(topic.type_name), profile(topic.qos, depth)
        self._listened[name] += 1
        options = {"qos_overriding_options": overridable(self, name, "subscription", self._listened[name])}
        subscription = self.create_subscription(kind, name, callback, qos, raw=raw, **options)
        subscription.patient = patient
        return subscription

    def arrived_ns(self) -> int:
        """Steady time in ns at which the message arrived whose callback runs, in the executor's thread."""
        executor = self.executor
        return executor.arrived_ns if isinstance(executor, FastExecutor) else time.monotonic_ns()

    def serve(self, kind: Any, name: str, work: Callable[[Any], tuple[bool, str]]) -> None:
        """Offer a service. ``work`` takes a request and returns ``success`` and ``message`` of the response."""

        def answer(request: Any, response: Any) -> Any:
            response.success, response.message = work(request)
            return response

        self.create_service(kind, name, answer)

    def diagnose(self) -> tuple[bool, str, Mapping[str, object]]:
        """Return (healthy, summary, values) for ``/diagnostics``. Nodes override it."""
        return True, "running", {}

    def end(self, status: int = 0) -> None:
        """End this node with an exit status. The first call counts. Any thread may call it."""
        if not self.ended:
            self.exit_status = status
            self.ended = True
            self._wake.trigger()

    def thread_ended(self, thread: str, error: BaseException) -> None:
        """Log that ``error`` ended one of this node's threads, and end the node with status 1. Call it in that thread.

        While the node is ending, the end of a thread is expected.

        Raises:
            BaseException: ``error`` again, unless it is a BidError or the node is ending.
        """
        if self.ended:
            return
        self.get_logger().fatal(f"{thread} ended: {error}")
        self.end(1)
        if not isinstance(error, BidError):
            raise error

    def refuse(self, error: BidError) -> None:
        """End this node as :func:`run_node` does for bad input: one sentence, status 2. Any thread may call it."""
        if not self.ended:
            print(f"error: {error}", file=sys.stderr, flush=True)
            self.end(2)

    def change(self, values: Mapping[str, Any]) -> None:
        """Take new values of parameters while the node runs, at once or with the next step of its work.

        Raises:
            BidError: a value is not possible. Then no parameter changes.
        """
        if values.get("use_sim_time") and not self._sim_time:
            why = "it compares stamps with this computer's clock"
            raise BidError(f"use_sim_time is true; valid for node '{self._role}' is false: {why}")

    def check_overrides(self) -> None:
        """Raise BidError for an override of the quality of service of a topic that this node does not have."""
        for name in self._overrides:
            if not self.has_parameter(name):
                topic = name.split(".")[1]
                raise BidError(f"node '{self._role}': {name} has no effect: the node has no such end of {topic}")

    @classmethod
    def main(cls) -> NoReturn:
        """Run a node of this class, as :func:`run_node`."""
        run_node(cls)

    def begin(self) -> None:
        """Open devices and files, and start threads. :meth:`close` follows, even if this raises. Nodes override it."""

    def close(self) -> None:
        """Release devices, files and threads. It is called once, after the executor has ended. Nodes override it."""

    def _on_set(self, parameters: Sequence[Any]) -> SetParametersResult:
        try:
            self.change({parameter.name: parameter.value for parameter in parameters})
        except BidError as error:
            return SetParametersResult(successful=False, reason=str(error))
        except Exception as error:  # of another package's decoder, say: it must not end a node that moves an arm
            return SetParametersResult(successful=False, reason=f"{type(error).__name__}: {error}")
        return SetParametersResult(successful=True)

    def tell(self) -> None:
        """Publish the diagnostics at once, as something has gone wrong, or right again. Any thread may call it."""
        self._publish_diagnostics(counted=False)

    def _publish_diagnostics(self, counted: bool = True) -> None:
        healthy, summary, values = self.diagnose()
        values = {**values, **(self._counted() if counted else {})}
        status = DiagnosticStatus(
            level=DiagnosticStatus.OK if healthy else DiagnosticStatus.ERROR,
            name=f"bid_ros: {self.get_fully_qualified_name()[1:]}",
            message=summary,
            hardware_id=self.hardware_id,
            values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
        )
        self._diagnostics_publisher.publish(DiagnosticArray(header=header(self.now_ns()), status=[status]))

    def _counted(self) -> dict[str, object]:
        """Return messages since the start, and the CPU time in s that the executor took itself, in its thread."""
        sent = sum(getattr(publisher, "sent", 0) for publisher in self.publishers)
        if not isinstance(self.executor, FastExecutor):
            return {"messages_out": sent}
        own_s = (time.thread_time_ns() - self.executor.callbacks_ns) / NANOSECONDS
        return {"messages_in": self.executor.messages, "messages_out": sent, "executor_s": f"{own_s:.3f}"}
