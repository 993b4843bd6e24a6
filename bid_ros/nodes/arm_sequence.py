"""The sequence of one arm of several, which the episode node of all of them runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.duration import Duration

from bid_msgs.msg import EpisodeEvent
from bid_ros.core.outcome import EpisodeOutcome
from bid_ros.core.topics import DIAGNOSTICS, EPISODE_EVENT
from bid_ros.episodes.causes import PACE, outcome_of_end
from bid_ros.episodes.stops import EpisodeStopped, Stops
from bid_ros.nodes.arms import OF_ARM, placed_at
from bid_ros.nodes.base import BidNode
from bid_ros.nodes.heartbeat import RARE_S
from bid_ros.nodes.operator import TwinOperator
from bid_ros.nodes.recovery import RunRecovery
from bid_ros.nodes.ros_messages import header
from bid_ros.nodes.sequence import SequenceNode
from bid_ros.safety.watchdog import PARTNER
from bid_ros.system.ended import read_end

ACKNOWLEDGED_S: Final = 0.5


class ArmSequence(SequenceNode):
    """The episode node as one arm knows it. Its host runs the sequence, one thread an arm at a time.

    Attributes:
        arm: its name.
        operator: prepares and judges its part of an episode.
        recovery: brings it back after a stop.
        halted: why the arms cannot go on, which stops every wait of this one; None: they can.
    """

    heartbeat_s = RARE_S

    def __init__(self, host: BidNode, arm: str, values: Mapping[str, Any], stops: Stops) -> None:
        self.placed = placed_at(host, arm, values)
        super().__init__("episode", OF_ARM)
        self.arm, self._host = arm, host
        self.halted: EpisodeStopped | None = None
        self.operator = TwinOperator(self, self.task)
        self._events = self.advertise(EPISODE_EVENT)
        self.recovery = RunRecovery(self, stops, True, lambda service: None)
        self.slow = host.value("slow")
        self.subscribe(DIAGNOSTICS, self._on_diagnostics, patient=True)

    def diagnose(self) -> tuple[bool, str, Mapping[str, object]]:
        """Return what the host says."""
        return self._host.diagnose()

    def stop(self) -> EpisodeStopped | None:
        """Return why the sequence cannot go on now: for what this arm's nodes say, or because another arm stopped."""
        return super().stop() or self.halted

    def own_stop(self) -> EpisodeStopped | None:
        """Return the stop that this arm's nodes say; None if there is none, or it only follows another arm's."""
        found = super().stop()
        return None if found is None or found.rule == PARTNER else found

    def end_outcome(self) -> EpisodeOutcome:
        """Return the outcome of an episode during which the run ends."""
        return outcome_of_end(read_end(Path(out))) if (out := self._host.value("out")) else super().end_outcome()

    def tell_event(self, event: EpisodeEvent, kind: int) -> None:
        """Publish a phase of the episode for the arm's own nodes, and wait a moment for who hears of its end."""
        event.robot, event.kind, event.header = self.robot, kind, header(self.now_ns())
        self._events.publish(event)
        if kind == EpisodeEvent.END:
            self._events.wait_for_all_acked(Duration(seconds=ACKNOWLEDGED_S))

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in (item for item in message.status if item.hardware_id == self.hardware_id):
            self.pace = next((float(item.value) for item in status.values if item.key == PACE), self.pace)
