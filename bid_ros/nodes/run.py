"""Runs one node in a process of its own, from its constructor to its end."""

import gc
import inspect
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

import rclpy
from rclpy.signals import SignalHandlerOptions

from bid_ros.core.errors import BidError
from bid_ros.nodes.executor import FastExecutor
from bid_ros.nodes.heartbeat import HeartbeatThread
from bid_ros.system.ending import Ending
from bid_ros.system.output import keep_printing
from bid_ros.system.priority import raise_priority
from bid_ros.system.security import check_security

# For which a node that is asked to end waits for those that it outlives. With what comes after, it must stay below the
# 5 s after which launch loses its patience with SIGINT.
LINGER_S = 3.5


class Runnable(Protocol):
    """What this module needs of a BidNode. ``rclpy`` has no types, so its own Node would be checked for nothing."""

    ended: bool
    exit_status: int
    outlives: Sequence[str]
    heartbeat: HeartbeatThread

    def begin(self) -> None:
        """Open devices and files, and start threads."""

    def check_overrides(self) -> None:
        """Raise BidError for an override of a topic's quality of service that nothing takes."""

    def end(self, status: int = 0) -> None:
        """End the node with an exit status."""

    def close(self) -> None:
        """Release what ``begin`` opened."""

    def create_timer(self, *arguments: Any, **options: Any) -> Any:
        """Create a timer: period in s, callback."""

    def count_publishers(self, topic_name: str) -> int:
        """Return how many publishers of a topic there are."""

    def destroy_node(self) -> None:
        """Release everything of ROS."""


def run_node(factory: Callable[..., Runnable]) -> NoReturn:
    """Run one BidNode and end the process: status 0, the node's own, 2 for bad input, or 1 for a defect."""
    ending = Ending()
    keep_printing()
    status = 1
    try:
        status = _run(factory, ending)
    except BidError as error:
        # Once the end was requested, failures are expected, for example because the twin is gone.
        if not ending.asked:
            print(f"error: {error}", file=sys.stderr, flush=True)
        status = 0 if ending.asked else 2
    except Exception:
        traceback.print_exc()
    ending.finish(status)


def _run(factory: Callable[..., Runnable], ending: Ending) -> int:
    raise_priority(0)
    check_security()
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    executor = FastExecutor()
    node = factory()
    ending.commit(node.end)
    node.heartbeat.start()
    try:
        executor.add_node(node)
        _spend_now_what_would_interrupt()
        node.begin()
        node.check_overrides()
        # From here on: to connect to a robot may take long, and has a limit of its own.
        node.create_timer(1.0, ending.alive)
        _spin(executor, node, ending)
    finally:
        ending.alive()  # what is released now has that limit too, also where nothing asked for the end
        try:
            node.close()
        finally:
            _leave(node, executor)
    return node.exit_status


def _leave(node: Runnable, executor: FastExecutor) -> None:
    """Leave the graph in order, whatever failed before: of who only disappears others think for 20 s that it is there.

    What fails here is told, and does not keep the rest from being left.
    """
    for step in (node.heartbeat.stop, executor.shutdown, node.destroy_node, rclpy.try_shutdown):  # each needs the next
        try:
            step()
        except Exception:
            traceback.print_exc()


def _spend_now_what_would_interrupt() -> None:
    """Do, before the node works, what would hold Python's lock for tens of milliseconds while it does."""
    # The first line that rclpy logs looks for its caller in all modules.
    inspect.getmodule(inspect.currentframe())
    # A full collection goes through all that was imported.
    gc.collect()
    gc.freeze()


def _spin(executor: FastExecutor, node: Runnable, ending: Ending) -> None:
    while not node.ended:
        executor.spin_once()
    until = time.monotonic() + LINGER_S
    while any(node.count_publishers(topic) for topic in node.outlives) and time.monotonic() < until:
        if ending.hurried:
            break
        executor.spin_once(timeout_sec=0.05)
    executor.spin_once(timeout_sec=0.0)  # what those published last may have come after the last look
