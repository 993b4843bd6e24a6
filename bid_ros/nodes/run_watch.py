"""Watches an episode for the record of its run: decisions, the age of commands, and pauses of the arm."""

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bid_msgs.msg import ArmStatus, Decision, SafetyState
from bid_ros.core.outcome import EpisodeOutcome
from bid_ros.core.poses import pose_arrays
from bid_ros.core.task import Task
from bid_ros.episodes.causes import BEHIND, PACE, part_of_pause
from bid_ros.episodes.disturbance import Disturbance, disturbance
from bid_ros.episodes.log import RunLog
from bid_ros.nodes.base import BidNode
from bid_ros.safety.quiet import PAUSE_S

RECORDED: Final = ("decoder", "samples", "action_horizon", "decision_rate_hz", "moving", "seed")
ACTIONS: Final = (SafetyState.WARN, SafetyState.SCALE, SafetyState.STOP)


def run_log(node: BidNode, task: Task) -> RunLog:
    """Return the record of a run that begins, from the parameters of its episode node."""
    return RunLog(
        task=task.name,
        hardware="twin" if node.value("twin") else "robot",
        system=str(Path(node.value("task")).absolute().parent),
        **{name: node.value(name) for name in RECORDED},
    )


class RunWatch:
    """Fills the log of a run while an episode runs; between two episodes it notes nothing.

    Args:
        log: of the run.
        alone: a policy moves the arm, and nobody else. A person may pause without a reason.
    """

    def __init__(self, log: RunLog, alone: bool) -> None:
        self._log, self._alone = log, alone
        self._runs = False
        self._decided_s = 0.0
        self._behind_s = self._behind_before_s = 0.0
        self._disturbance: Disturbance | None = None

    def line(self, elapsed_s: float, extra: str, status: ArmStatus | None = None) -> str:
        """Return the progress of an episode.

        Args:
            elapsed_s: since its start.
            extra: what its operator adds.
            status: of the arm, which is told instead of the decisions where nobody decides.
        """
        log = self._log
        told = (
            f"decisions {len(log.decision_ms)}  missed {log.missed}  "
            f"decision p50 {log.recent_ms(50):.0f} p99 {log.recent_ms(99):.0f} ms"
        )
        if not log.decoder:
            told = "" if status is None else self.arm_line(status)
        parts = f"{elapsed_s:4.1f} s", extra, told, f"successes {log.successes}/{log.counted}"
        return "  ".join(filter(None, parts))

    @staticmethod
    def arm_line(status: ArmStatus) -> str:
        """Return where the tool is, how fast its set-point is, and how far the gripper is open."""
        (x, y, z), speed = pose_arrays(status.tool)[0], math.hypot(*status.reference_twist[:3])
        gripper = f"  gripper {1e3 * status.gripper_width:.0f} mm" if math.isfinite(status.gripper_width) else ""
        return f"tool {x:.3f} {y:.3f} {z:.3f} m  {speed:.2f} m/s{gripper}"

    def begin(self, episode: int) -> None:
        """Begin an episode."""
        self._log.start_episode()
        self._decided_s = time.monotonic()
        self._behind_before_s = self._behind_s
        if self._alone:
            self._log.pauses.begin(episode, self._decided_s)
        self._runs = True

    def end(self) -> None:
        """End the episode."""
        self._runs = False
        self._log.pauses.end(time.monotonic())

    def decided(self, message: Decision) -> None:
        """Note a decision."""
        if self._runs:
            self._decided_s = time.monotonic()
            self._log.add_decision(message.decision_time * 1e3, message.missed, message.decoder, message.samples)

    def told(self, message: ArmStatus, safety: SafetyState | None) -> None:
        """Note what the arm does, and say why it has paused; ``safety`` is the newest state of the safety node."""
        if not self._runs:
            return
        tracking = message.mode == ArmStatus.TRACKING
        if tracking and message.source == "policy":
            self._log.command_age_ms.append(message.command_age * 1e3)
        reason = "" if tracking else self._why(message, safety)
        pause = self._log.pauses.tell(tracking, reason, time.monotonic(), part_of_pause(reason))
        if pause is not None:
            print(f"episode {pause.episode + 1}: the arm pauses: {reason}", flush=True)

    def lags(self, said: Mapping[str, str], pace: float) -> float:
        """Note what the diagnostics of a node say of a twin's pace; return it, ``pace`` if it is no twin's."""
        if PACE not in said:
            return pace
        self._behind_s = float(said.get(BEHIND, 0.0))
        return float(said[PACE])

    def judged(self, outcome: EpisodeOutcome, pace: float) -> EpisodeOutcome:
        """Return how the present episode of a policy ended: what disturbed it takes it out of the rate, also a success.

        Args:
            outcome: by what the task, or the safety node, says of it.
            pace: share of real time that a twin kept lately.
        """
        self._disturbance = None
        if self._alone:
            blamed = self._log.pauses.blamed(time.monotonic())
            self._disturbance = disturbance(blamed, self._behind_s - self._behind_before_s, pace)
        return self.corrected(outcome)

    def corrected(self, outcome: EpisodeOutcome) -> EpisodeOutcome:
        """Return the outcome that a person gives the episode that ended last: what disturbed it did so all the same."""
        return outcome if self._disturbance is None else self._disturbance.applied(outcome)

    def _why(self, message: ArmStatus, safety: SafetyState | None) -> str:
        """Return why the arm follows nothing: its own reason, that of the safety node, or that no decision came."""
        if message.reason:
            return str(message.reason)
        if safety is not None and safety.reason and (safety.state != SafetyState.RUNNING or safety.action in ACTIONS):
            return str(safety.reason)
        silent_s = time.monotonic() - self._decided_s
        if silent_s > PAUSE_S:
            return f"no decision of the policy for {silent_s:.1f} s"
        return "the policy decides, and no chunk of it covers now"
