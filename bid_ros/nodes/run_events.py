"""Notes in ``events.jsonl`` what happens in a run: stops, resets and by whom, changed parameters, episodes, the end.

A thread of its own writes. So a slow disk holds up neither a callback nor the thread that renews the grant.
"""

import queue
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rclpy.parameter import parameter_value_to_python

from bid_msgs.msg import ArmStatus, EpisodeEvent, SafetyState
from bid_ros.core.errors import BidError
from bid_ros.core.outcome import EpisodeOutcome
from bid_ros.core.topics import ARM_RESET, PARAMETER_EVENTS, SAFETY_RESET, Qos, Topic
from bid_ros.episodes.causes import rule_of_arm
from bid_ros.nodes.base import BidNode
from bid_ros.recording.events import EventLog

CHANGES: Final = Topic("rcl_interfaces/msg/ParameterEvent", Qos(1000))  # as every node of ROS offers them
OWN_S: Final = 30.0  # s after a call of the run itself, in which what becomes free was reset by it
WRITTEN_S: Final = 2.0  # s in which a disk takes the last lines
NOBODY: Final = "unknown"
PHASES: Final[Mapping[int, str]] = {
    EpisodeEvent.PREPARE: "prepare",
    EpisodeEvent.START: "start",
    EpisodeEvent.END: "end",
    EpisodeEvent.UNDO: "undo",
}


class RunEvents:
    """The events of a run, as its episode node sees them.

    Attributes:
        head: number of the lines that are written, and the hash of the last one; None without a file.

    Args:
        node: of the episodes.
        out: folder of the run; empty: nothing is written.
    """

    def __init__(self, node: BidNode, out: str) -> None:
        self._node, self._out = node, out
        self._queue: queue.SimpleQueue[tuple[str, dict[str, Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="events", daemon=True)
        self._stopped: dict[str, str] = {}  # rule of each latched stop, by who latched it
        self._called: dict[str, float] = {}  # steady time in s of the run's own resets, by their service
        self._log: EventLog | None = None
        self._lost = 0

    @property
    def head(self) -> tuple[int, str] | None:
        """See the class."""
        return None if self._log is None else self._log.head

    def open(self) -> None:
        """Open the file and write from now on. Raises BidError if it cannot be written."""
        if not self._out:
            return
        try:
            Path(self._out).mkdir(parents=True, exist_ok=True)
            self._log = EventLog(Path(self._out))
        except OSError as error:
            raise BidError(f"nothing can be written to {self._out}: {error.strerror or error}") from error
        self._node.listen(PARAMETER_EVENTS, self._on_parameters, CHANGES, patient=True)
        self._thread.start()

    def note(self, kind: str, **about: Any) -> None:
        """Note one event; arguments as :meth:`bid_ros.recording.events.EventLog.write`. Never blocks."""
        if self._log is not None:
            self._queue.put((kind, about))

    def end(self, status: int, ended: EpisodeOutcome | None) -> None:
        """Note the end of the run, and wait until everything is written: nothing follows.

        Args:
            status: exit status of the run.
            ended: why it was not complete; None if it was.
        """
        why = {} if ended is None else {"outcome": ended.text, "outcome_class": ended.kind, "outcome_code": ended.code}
        self.note("end", status=status, **why)
        self._queue.put(None)
        if self._thread.is_alive():
            self._thread.join(WRITTEN_S)

    def episode(self, event: EpisodeEvent, kind: int) -> None:
        """Note a phase of an episode; its end with the outcome."""
        about: dict[str, Any] = {"episode": event.episode, "seed": event.seed, "label": event.label}
        if kind in (EpisodeEvent.END, EpisodeEvent.UNDO):
            about |= {"outcome": event.outcome, "outcome_code": event.outcome_code, "duration_s": event.duration}
        self.note("episode", phase=PHASES[kind], **about)

    def calls(self, service: str) -> None:
        """Know that the run itself calls a reset now."""
        self._called[service] = time.monotonic()

    def judged(self, message: SafetyState) -> None:
        """Note a stop that the safety node latched, or its reset."""
        rule = message.rule or "unknown" if message.state == SafetyState.STOPPED else ""
        about = {"measured": message.measured, "limit": message.limit, "source": message.source}
        self._state("safety", SAFETY_RESET, rule, reason=message.reason, **about)

    def told(self, message: ArmStatus) -> None:
        """Note a stop that the arm node latched, a fault of the robot, or their reset."""
        fault = message.mode == ArmStatus.FAULT
        if message.mode == ArmStatus.STOPPING:
            return  # its reason comes with the rest
        rule = rule_of_arm(message.reason, fault) if fault or message.mode == ArmStatus.STOPPED else ""
        self._state("arm", ARM_RESET, rule, reason=message.reason, source=message.source)

    def _state(self, who: str, service: str, rule: str, **about: Any) -> None:
        before = self._stopped.get(who, "")
        if rule == before:
            return
        self._stopped[who] = rule
        if rule:
            self.note("stop", by=who, rule=rule, **about)
        else:
            self.note("reset", of=who, rule=before, by=self._who_called(service))

    def _who_called(self, service: str) -> str:
        """Return who may have called a reset: the run itself, or the nodes of the graph that can call it."""
        if time.monotonic() - self._called.get(service, -OWN_S) < OWN_S:
            return "run"
        node = self._node
        name, own = node.resolve_service_name(service), (node.get_name(), node.get_namespace())
        found = []
        for other in node.get_node_names_and_namespaces():
            try:
                clients = node.get_client_names_and_types_by_node(*other)
            except Exception:  # it has ended meanwhile; rclpy has a class of its own for that
                continue
            if other != own and any(called == name for called, _ in clients):
                found.append("/".join((other[1].rstrip("/"), other[0])))
        return ", ".join(sorted(found)) or NOBODY

    def _on_parameters(self, message: Any) -> None:
        space = self._node.get_namespace().rstrip("/")
        if not message.node.startswith(f"{space}/"):
            return  # of another system
        changed = {item.name: parameter_value_to_python(item.value) for item in message.changed_parameters}
        if changed:
            self.note("parameters", node=message.node, changed=changed)

    def _write(self) -> None:
        assert self._log is not None, "it was opened before"
        while (event := self._queue.get()) is not None:
            kind, about = event
            try:
                self._log.write(kind, **about, **({"lost_before": self._lost} if self._lost else {}))
                self._lost = 0
            except OSError as error:
                if not self._lost:
                    print(f"warning: events are not logged: {error}", file=sys.stderr, flush=True)
                self._lost += 1
