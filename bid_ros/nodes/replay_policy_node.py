"""Policy node of a replay: decides where a recording did, on the same samples and with the same noise."""

import threading
import time
from collections import deque
from typing import Any, Final

from bid_msgs.msg import Decision
from bid_ros.core.errors import BidError, ObservationError
from bid_ros.core.observation import Observation
from bid_ros.core.topics import RECORDED_DECISION, REPLAY_DECIDED, REPLAY_QOS, Topic
from bid_ros.nodes.instruction import PARAMETER
from bid_ros.nodes.parameters import Parameter
from bid_ros.nodes.policy_node import PolicyNode
from bid_ros.nodes.policy_parameters import PARAMETERS as LIVE
from bid_ros.nodes.ros_messages import header
from bid_ros.replay.cue import Cue, RecordedDecision, recorded_from
from bid_ros.replay.lockstep import CHANGEABLE, Changes, Decider

PARAMETERS = (
    *(item for item in LIVE if item.name != "budget_ms"),
    Parameter("budget_ms", 0.0, "N stays as it was recorded", 0.0, 0.0),
    Parameter(
        "changed", [""], f"of {', '.join(CHANGEABLE)}: those whose value replaces the recorded one; [''] for none"
    ),
)
KEPT: Final = "kept"
"""In the answer to a recorded decision: the decoder goes on with its last one."""
DISCOVERY_S: Final = 0.02
SAMPLES_S: Final = 5.0  # in which the samples of a recorded decision arrive


class ReplayPolicyNode(PolicyNode):
    """The policy node, with a recording in the place of the clock. It needs no grant, as nothing moves an arm here."""

    changeable = ()
    lossless = REPLAY_QOS

    def __init__(self) -> None:
        super().__init__(PARAMETERS, sim_time=True)
        self._cues: deque[tuple[RecordedDecision, str]] = deque()  # with the text that was asked with
        self._closing = False
        self._stream: int | None = None
        changed = [name for name in self.value("changed") if name]
        if unknown := set(changed) - set(CHANGEABLE):
            raise BidError(f"changed names '{min(unknown)}'; valid are {', '.join(CHANGEABLE)}")
        given = tuple(self.value(name) for name in CHANGEABLE)
        changes = Changes(**{name: self.value(name) for name in changed})
        self._decider = Decider(self._maker, self._bundle, self._task, given, changes)
        self._answers = self.advertise(REPLAY_DECIDED, Topic("std_msgs/msg/Header", REPLAY_QOS))
        self.subscribe(RECORDED_DECISION, self._on_cue, Topic("bid_msgs/msg/Decision", REPLAY_QOS))

    def diagnose(self) -> tuple[bool, str, dict[str, object]]:
        """Return what waits for a decision."""
        return True, "replaying", {"decisions": self._report.decided, "waiting": len(self._cues)}

    def _decision_thread(self) -> Any:
        self._deciding = threading.Thread(target=self._run_cues, name="decide", daemon=True)
        return self._deciding

    def close(self) -> None:
        """End the decision thread."""
        with self._lock:
            self._closing = True
            self._lock.notify_all()
        if self._deciding.is_alive():
            self._deciding.join(2.0)

    def _on_cue(self, message: Decision) -> None:
        with self._lock:
            self._cues.append((recorded_from(message), message.header.frame_id))
            self._lock.notify_all()

    def _observe(self, name: str, stamp_ns: int, value: Any) -> None:
        super()._observe(name, stamp_ns, value)
        with self._lock:
            self._lock.notify_all()

    def _setting(self) -> dict[str, Any]:
        return {**super()._setting(), **self._decider.setting}

    def _next(self) -> tuple[RecordedDecision, Observation, str] | None:
        """Wait for the next recorded decision, its samples and its text. None: the node ends.

        Raises:
            ObservationError: a sample did not arrive.
        """
        with self._lock:
            self._lock.wait_for(lambda: self._cues or self._closing)
            if self._closing:
                return None
            recorded, text = self._cues.popleft()
            # Whoever asks must hear the answers, and may discover this node later than it is discovered.
            while not (
                self._closing or all(item.get_subscription_count() for item in (self._answers, self._report.decisions))
            ):
                self._lock.wait(DISCOVERY_S)
            self._lock.wait_for(lambda: self._closing or self._found(recorded), SAMPLES_S)
            return recorded, self._buffer.assemble_from(recorded.stamp_ns, recorded.samples_ns), text

    def _found(self, recorded: RecordedDecision) -> bool:
        try:
            self._buffer.assemble_from(recorded.stamp_ns, recorded.samples_ns)
        except ObservationError:
            return False
        return True

    def _run_cues(self) -> None:
        try:
            self._decide_cues()
        except BaseException as error:
            self.thread_ended("the decision thread", error)

    def _decide_cues(self) -> None:
        while (found := self._next()) is not None:
            recorded, observation, text = found
            self._instruction.take({PARAMETER: text or self.value(PARAMETER)})
            self._instruction.tell()
            begun = time.monotonic_ns()
            self._begin_motion(recorded)
            known = recorded if recorded.setting.samples else None  # a bag of another recorder says no more
            record = self._decider.decide(
                Cue(recorded.stamp_ns, observation, "", recorded.setting.stream, known), observation
            )
            self.worked()
            if record is not None:
                self._report.publish(record, observation, begun, self._maker.delay, self._setting())
            self._answers.publish(header(recorded.stamp_ns, KEPT if record is None else ""))

    def _begin_motion(self, recorded: RecordedDecision) -> None:
        """Begin a motion of joints with the first decision of an episode, where poses become joints."""
        if self._site.joints.newest is not None and recorded.setting.stream != self._stream:
            self._stream = recorded.setting.stream
            self._site.chunks.begin(self._site.joints.newest, recorded.stamp_ns)


main = ReplayPolicyNode.main
