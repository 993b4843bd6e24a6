"""The executor of a node: it serves topics and timers from a wait set that it keeps."""

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any, Final

from rclpy.context import Context
from rclpy.exceptions import InvalidHandle
from rclpy.executors import SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.clocks import read_clocks

EVERYTHING_S: Final = 1.0  # s between two looks at what is rare, such as a publisher whose quality of service differs
KINDS: Final = ("subscription", "timer", "service", "client")


class FastExecutor(SingleThreadedExecutor):
    """Calls back subscriptions and timers at a third of the cost, and leaves everything else to its base class.

    For every message, the base class collects all entities of its nodes, with two event handlers for each publisher and
    subscription. That costs more than most callbacks. This class keeps the collection until rclpy wakes it, as it does
    when an entity is added or removed. Services, clients and tasks are rare: the base class handles them as soon as
    they are ready, and event handlers once a second.

    A subscription with a true attribute ``patient`` wakes nobody. Its messages are taken together when a timer or
    another message wakes this class, and before those are called back, so that they judge by the newest.

    It serves nodes whose callbacks are plain functions in one callback group. A guard condition only ends the wait. It
    uses internals of Jazzy's rclpy (7.1).

    Attributes:
        messages: number of messages whose callbacks it has called.
        callbacks_ns: CPU time of those callbacks, and of the timers', ns.
        number: the publisher's number of the message whose callback runs; None: nobody knows.
    """

    def __init__(self, *, context: Context | None = None) -> None:
        super().__init__(context=context)
        self.messages = self.callbacks_ns = 0
        self.number: int | None = None
        self._patient: list[Any] = []
        self._arrived_ns: int | None = None
        self._emptied_ns: dict[int, int] = {}
        self._tasks: list[Any] = []
        self._cb_iter: Any = None  # the base class goes through what is ready with this generator
        self._changed = True
        self._everything_at = 0.0
        self._in_use = ExitStack()
        self._wait_set: Any = None
        self._found: dict[str, dict[int, Any]] = {}

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """Stop, and let go of the entities; return whether everything had ended in time.

        Only the thread that spins may call it.
        """
        ended = bool(super().shutdown(timeout_sec))
        self._in_use.close()
        return ended

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait up to ``timeout_sec`` (None: a second), and call back whatever is ready.

        Raises:
            Exception: what a callback raises.
        """
        if self._tasks or time.monotonic() >= self._everything_at:
            self._everything_at = time.monotonic() + EVERYTHING_S
            self._serve_rare()
            return
        if self._changed:
            self._collect()
        self._wait(round(NANOSECONDS * (EVERYTHING_S if timeout_sec is None else timeout_sec)))
        self._serve_patient()
        for pointer in self._wait_set.get_ready_entities("timer"):
            timer = self._found["timer"][pointer]
            if timer.handle.is_timer_ready():
                timer.handle.call_timer()
                self._call(timer.callback)
        for pointer in self._wait_set.get_ready_entities("subscription"):
            subscription = self._found["subscription"][pointer]
            taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
            if taken is not None:
                self._deliver(subscription, taken)
        if any(self._wait_set.get_ready_entities(kind) for kind in ("service", "client")):
            self._serve_rare()
        # Whoever wakes an executor may have changed something.
        self._changed = self._changed or bool(self._wait_set.get_ready_entities("guard_condition"))

    @property
    def arrived_ns(self) -> int:
        """Steady time in ns at which the message arrived whose callback runs. A patient one came some time ago."""
        return time.monotonic_ns() if self._arrived_ns is None else self._arrived_ns

    def _serve_patient(self) -> None:
        """Call back all messages of the patient subscriptions.

        The middleware stamps their arrival by the wall clock. Whatever was done to that, they came after the last time
        that nothing was left of theirs. It gives them in the order in which they were sent. One that was lost and sent
        again arrived later than those behind it, which had to wait for it: so all of them have arrived when it did.
        """
        if not self._patient:
            return
        wall_ns, steady_ns = read_clocks()
        steady_from_wall_ns = steady_ns - wall_ns
        emptied_ns: dict[int, int] = {}
        for subscription in self._patient:
            before_ns = self._emptied_ns.get(id(subscription), 0)
            for _ in range(subscription.qos_profile.depth):
                asked_ns = time.monotonic_ns()
                taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
                if taken is None:
                    before_ns = asked_ns
                    break
                came_ns = steady_from_wall_ns + taken[1]["received_timestamp"]
                before_ns = self._arrived_ns = min(max(came_ns, before_ns + 1), time.monotonic_ns())
                self._deliver(subscription, taken)
            emptied_ns[id(subscription)] = before_ns
        self._emptied_ns = emptied_ns

    def _take_subscription(self, sub: Any) -> Callable[[], Any] | None:
        """Take a message for the base class, with its number."""
        taken = None
        with suppress(InvalidHandle), sub.handle:
            taken = sub.handle.take_message(sub.msg_type, sub.raw)
        if taken is None:
            return None

        async def execute() -> None:
            self._deliver(sub, taken)

        return execute

    def _deliver(self, subscription: Any, taken: tuple[Any, dict[str, Any]]) -> None:
        """Call back for a message, which was taken with what the middleware knows of it."""
        self.messages += 1
        self.number = taken[1]["publication_sequence_number"]
        try:
            self._call(subscription.callback, taken[0])
        finally:
            self.number = self._arrived_ns = None

    def _call(self, callback: Callable[..., object], *arguments: Any) -> None:
        begun = time.thread_time_ns()
        callback(*arguments)
        self.callbacks_ns += time.thread_time_ns() - begun

    def _serve_rare(self) -> None:
        """Call back everything that is ready: a service, which comes last, does not wait until no message is left."""
        if self._changed:
            self._collect()
        self._serve_patient()
        self._changed = True  # the base class may take the news of a change
        self._cb_iter = None  # an earlier turn may have ended with an exception
        super().spin_once(timeout_sec=0)
        while getattr(self._cb_iter, "gi_frame", None) is not None:
            super().spin_once(timeout_sec=0)
        with self._tasks_lock:
            self._tasks = [item for item in self._tasks if not item[0].done()]

    def _collect(self) -> None:
        """Collect all entities. While they are in use, another thread that destroys one waits for the next time."""
        self._changed = False
        nodes = self.get_nodes()
        found = {kind: [item for node in nodes for item in getattr(node, f"{kind}s")] for kind in KINDS}
        found["guard_condition"] = [self._guard, self._sigint_gc, *(item for node in nodes for item in node.guards)]
        before, self._in_use = self._in_use, ExitStack()
        self._found, self._patient = {kind: {} for kind in found}, []
        for kind, item in ((kind, item) for kind, items in found.items() for item in items):
            with suppress(InvalidHandle):  # it was destroyed meanwhile
                self._in_use.enter_context(item.handle)
                if getattr(item, "patient", False):
                    self._patient.append(item)
                else:
                    self._found[kind][item.handle.pointer] = item
        before.close()
        sizes = (len(self._found[kind]) for kind in ("subscription", "guard_condition", "timer", "client", "service"))
        self._wait_set = rclpy_implementation.WaitSet(*sizes, 0, self._context.handle)

    def _wait(self, timeout_ns: int) -> None:
        ready = self._wait_set
        ready.clear_entities()
        for kind, items in self._found.items():
            add = getattr(ready, f"add_{kind}")
            for item in items.values():
                add(item.handle)
        ready.wait(timeout_ns)
