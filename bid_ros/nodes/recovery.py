"""Brings a stopped system back between two episodes: by itself in a twin, by a person's reset at a robot."""

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from std_srvs.srv import Trigger

from bid_msgs.msg import ArmStatus, SafetyState
from bid_ros.core.outcome import EpisodeOutcome
from bid_ros.core.topics import ARM_RESET, SAFETY_RESET
from bid_ros.episodes.stops import EpisodeStopped, Stops
from bid_ros.nodes.sequence import SequenceNode

# The arm is first, because safety stays stopped while the robot reports a fault. It is reset once more at the end,
# because the safety node, still stopped, has latched it again.
RESETS: Final = (ARM_RESET, SAFETY_RESET, ARM_RESET)
RESET_S: Final = 30.0  # s in which a twin runs again after a stop; a robot's recovery may take 20 s of them
STARTING_S: Final = 90.0  # s for the same while the nodes still load: the arm is not reset before it hears the policy
ANSWER_S: Final = 25.0  # s for one answer
REST_S: Final = 2.0  # s in which the arm comes to rest, and in which both nodes say that they run again
STEADY_S: Final = 0.3  # s without a stop, after which the system counts as ready
AGAIN_S: Final = 0.2  # s between two tries
TELL_S: Final = 30.0  # s between two lines that ask the person


class RunRecovery:
    """Waits until nothing is latched any more, in the thread of the sequence.

    Args:
        node: whose sequence a stop held up.
        stops: of its run.
        twin: the system runs in its twin, which this resets. A robot is reset by a person who has looked at it.
        calls: told the service of each reset that this calls.

    Attributes:
        started: every node was ready once; before that the safety node may still wait for some of them.
    """

    def __init__(self, node: SequenceNode, stops: Stops, twin: bool, calls: Callable[[str], None]) -> None:
        self._node, self._stops, self._twin, self._calls = node, stops, twin, calls
        self.started = False
        self._clients = {name: node.create_client(Trigger, name) for name in RESETS} if twin else {}

    def after(self, stop: EpisodeStopped, episode: int, begun: bool) -> None:
        """Note a stop and return when the system is ready again.

        Args:
            stop: what stopped.
            episode: index of the episode.
            begun: it had begun; what stops in its preparation is prepared again.

        Raises:
            EpisodeStopped: it is one too many, the node is closing, or the twin does not run again in time.
        """
        noted = self._stops.add(stop, episode, begun)
        if problem := self._stops.too_many():
            outcome = EpisodeOutcome(f"the run ends after {problem}", stop.outcome.kind, stop.outcome.code)
            raise EpisodeStopped(outcome, stop.rule) from stop
        if not begun:
            print(f"episode {episode + 1}: {stop} in its preparation; it is prepared again", flush=True)
        if not stop.latched:
            return
        since = time.monotonic()
        if self._twin:
            self._reset(stop)
        else:
            self._await_person(stop)
        noted.reset_by, noted.reset_s = "run" if self._twin else "person", time.monotonic() - since
        print(f"reset by the {noted.reset_by} after {noted.reset_s:.1f} s", flush=True)

    def _reset(self, stop: EpisodeStopped) -> None:
        limit_s = RESET_S if self.started else STARTING_S
        end = time.monotonic() + limit_s
        self._until(self._at_rest, REST_S)
        while problem := self._once():
            if time.monotonic() > end:
                text = f"{stop}; no reset within {limit_s:g} s: {problem}"
                raise EpisodeStopped(EpisodeOutcome(text, stop.outcome.kind, stop.outcome.code), stop.rule)
            self._until(lambda: False, AGAIN_S)

    def _once(self) -> str:
        """Reset everything once. Return why the system is not ready, or an empty text."""
        for name in RESETS:
            problem = self._call(name)
            if problem:
                return problem
        since = [time.monotonic()]

        def ready() -> bool:
            if not self._runs():
                since[0] = time.monotonic()
            return time.monotonic() - since[0] >= STEADY_S

        return "" if self._until(ready, REST_S) else self._latched()

    def _call(self, name: str) -> str:
        """Call a reset; return why it was refused, or an empty text."""
        client, done = self._clients[name], threading.Event()
        if not self._until(client.service_is_ready, REST_S):
            return f"no node offers {name}"
        self._calls(name)
        future = client.call_async(Trigger.Request())
        future.add_done_callback(lambda _: done.set())
        if not self._until(done.is_set, ANSWER_S):
            client.remove_pending_request(future)
            return f"{name} did not answer within {ANSWER_S:g} s"
        response: Any = future.result()
        return "" if response.success else str(response.message)

    def _await_person(self, stop: EpisodeStopped) -> None:
        command = "bid reset" + (f" --namespace {space}" if (space := self._node.get_namespace()) != "/" else "")
        asked = f"{stop}; the run waits: look at the robot, then: {command}"
        while True:
            print(asked, flush=True)
            if self._until(lambda: self._runs() and self._held(STEADY_S), TELL_S):
                return

    def _held(self, steady_s: float) -> bool:
        """Whether the system still runs after ``steady_s``: a person resets one node after the other."""
        return not self._until(lambda: not self._runs(), steady_s)

    def _runs(self) -> bool:
        """Whether safety and arm say that they run."""
        node = self._node
        if node.stop() is not None or node.safety is None or node.status is None or node.silent_s():
            return False
        ready = (SafetyState.RUNNING,) if self.started else (SafetyState.RUNNING, SafetyState.WAITING)
        return node.safety.state in ready and node.status.mode in (ArmStatus.HOLDING, ArmStatus.TRACKING)

    def _at_rest(self) -> bool:
        status = self._node.status
        return status is not None and status.mode in (ArmStatus.HOLDING, ArmStatus.STOPPED, ArmStatus.FAULT)

    def _latched(self) -> str:
        stop = self._node.stop()
        return str(stop) if stop is not None else "safety and arm do not say that they run"

    def _until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait through a stop until a condition holds; return whether it did.

        Raises:
            EpisodeStopped: the node is closing.
        """
        end = time.monotonic() + timeout_s
        while not condition():
            if self._node.closing.wait(0.02):
                raise EpisodeStopped(self._node.end_outcome())
            if time.monotonic() > end:
                return False
        return True
