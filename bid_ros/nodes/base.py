"""What every node shares: described parameters, heartbeat, diagnostics, clean shutdown."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node

from bid_msgs.msg import Heartbeat
from bid_ros.errors import BidError
from bid_ros.nodes.qos import STATE
from bid_ros.priority import raise_priority

HEARTBEAT_PERIOD_S = 0.1
# Steps of niceness: what set-points pass through on their way to the robot must not wait for what computes, and must
# not take its own delay for the silence of others. A twin's parts stand for hardware, which no load slows down.
COMMAND_PRIORITY, HARDWARE_PRIORITY = 10, 5


@dataclass(frozen=True)
class Parameter:
    """A declared node parameter: name, default (which sets the type), description, valid range of numbers."""

    name: str
    default: Any
    description: str
    minimum: float | None = None
    maximum: float | None = None

    def descriptor(self) -> ParameterDescriptor:
        """Return the descriptor that ``ros2 param describe`` shows."""
        # Nodes read their parameters once: a change that is accepted and ignored would be a lie.
        descriptor = ParameterDescriptor(description=self.description, read_only=True)
        if self.minimum is None or self.maximum is None:
            return descriptor
        if isinstance(self.default, int):
            descriptor.integer_range = [IntegerRange(from_value=int(self.minimum), to_value=int(self.maximum), step=0)]
        else:
            descriptor.floating_point_range = [
                FloatingPointRange(from_value=float(self.minimum), to_value=float(self.maximum), step=0.0)
            ]
        return descriptor


class BidNode(Node):
    """Base of the nodes.

    Args:
        name: default node name, also the name in heartbeats.
        parameters: every parameter of the node.
        heartbeat: send a heartbeat from the executor; nodes whose life is in another thread send their own.

    Raises:
        BidError: a parameter has the wrong type or lies outside its range.
    """

    def __init__(self, name: str, parameters: Sequence[Parameter], heartbeat: bool = True) -> None:
        super().__init__(name)
        self._role = name
        self.failed = False
        for parameter in parameters:
            self._declare(parameter)
        self._beats = 0
        self._heartbeat_publisher = self.create_publisher(Heartbeat, "/heartbeat", STATE)
        self._diagnostics_publisher = self.create_publisher(DiagnosticArray, "/diagnostics", STATE)
        if heartbeat:
            self.create_timer(HEARTBEAT_PERIOD_S, self.send_heartbeat)
        self.create_timer(1.0, self._publish_diagnostics)
        self._supervisor = int(os.environ.get("BID_SUPERVISOR", "0"))
        if self._supervisor:
            self.create_timer(0.5, self._follow_supervisor)

    def value(self, name: str) -> Any:
        """Value of a declared parameter."""
        return self.get_parameter(name).value

    def now_ns(self) -> int:
        """ROS time in integer nanoseconds."""
        return int(self.get_clock().now().nanoseconds)

    def send_heartbeat(self) -> None:
        """Publish one sign of life."""
        message = Heartbeat(node=self._role, sequence=self._beats)
        message.header.stamp = self.get_clock().now().to_msg()
        self._beats += 1
        self._heartbeat_publisher.publish(message)

    def diagnose(self) -> tuple[bool, str, Mapping[str, object]]:
        """Return (healthy, summary, values) for ``/diagnostics``; nodes override it."""
        return True, "running", {}

    def fail(self, problem: str) -> None:
        """Say why this node cannot go on and end it with exit status 1; any thread may call it."""
        self.failed = True
        self.get_logger().fatal(problem)
        if self.executor is not None:
            self.executor.shutdown(timeout_sec=0)

    def thread_failed(self, problem: str) -> bool:
        """Fail because a thread of this node ended; any thread may call it.

        Returns:
            False if the node is shutting down: the publishers went first, so that the thread ended is no news.
        """
        if not self.context.ok():
            return False
        self.fail(problem)
        return True

    def thread_ended(self, thread: str, error: BaseException) -> None:
        """Fail because of ``error`` in a thread, as :meth:`thread_failed` does; call it in that thread.

        Raises:
            BaseException: ``error`` again, unless its sentence says it all or the node is shutting down.
        """
        if self.thread_failed(f"{thread} ended: {error}") and not isinstance(error, BidError):
            raise error

    def close(self) -> None:
        """Release devices and threads; called once, after the executor ended. Nodes override it."""

    def _declare(self, parameter: Parameter) -> None:
        try:
            self.declare_parameter(parameter.name, parameter.default, parameter.descriptor())
        except (InvalidParameterTypeException, InvalidParameterValueException) as error:
            valid = "" if parameter.minimum is None else f"; valid is {parameter.minimum} to {parameter.maximum}"
            kind = type(parameter.default).__name__
            raise BidError(f"parameter '{parameter.name}' of node '{self._role}' must be a {kind}{valid}") from error

    def _follow_supervisor(self) -> None:
        """End with the supervisor: if it was killed, nobody is left who would end the system."""
        try:
            os.kill(self._supervisor, 0)
        except ProcessLookupError:
            raise SystemExit(1) from None

    def _publish_diagnostics(self) -> None:
        healthy, summary, values = self.diagnose()
        status = DiagnosticStatus(
            level=DiagnosticStatus.OK if healthy else DiagnosticStatus.ERROR,
            name=f"bid_ros: {self._role}",
            message=summary,
            hardware_id=self.get_name(),
            values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics_publisher.publish(message)


def run_node(factory: Callable[[], BidNode]) -> int:
    """Run one node until it is shut down; return the exit status: 0, the node's own, or 2 for bad input."""
    raise_priority(0)
    rclpy.init()
    node: BidNode | None = None
    status = 0
    try:
        # First, and not after a node that took seconds: a shutdown before it makes rclpy print a traceback of its own.
        executor = SingleThreadedExecutor()
        node = factory()
        executor.add_node(node)
        if not node.failed:
            executor.spin()
        status = int(node.failed)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BidError as error:
        # Once a shutdown was asked for, what fails (a twin that is gone already) is no news.
        if rclpy.ok():
            print(f"error: {error}", file=sys.stderr, flush=True)
            status = 2
    except Exception:
        # A shutdown during start-up invalidates the context under whatever is being made just then.
        if rclpy.ok():
            raise
    finally:
        if node is not None:
            node.close()
            node.destroy_node()
        rclpy.try_shutdown()
    return status
