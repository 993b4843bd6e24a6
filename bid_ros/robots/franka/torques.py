"""Whether a Franka reports the torques that were sent to it, and how old they are."""

from typing import Final

import numpy as np

from bid_ros.core.margins import Margins

# A torque may be this far from the one that was sent, Nm, for this long, ms: twice and more of the 21 ms for which a
# busy computer sent it too late. A lost command leaves a difference of at most 1 Nm, which the next one takes away.
SENT_TORQUE: Final = 2.0
SENT_MS: Final = 50
# Torques may be those of so long ago, ms. A robot that has lost 20 commands stops by itself.
OLD_MS: Final = 30
# They are old if they are that far, Nm, from what was sent for the state, and that near to what was sent before.
MOVED: Final = 0.5
SAME: Final = 0.05
# So many torques are kept: at 500 Hz those of a second.
KEPT: Final = 512
JOINTS: Final = 7
SENT: Final = "sent torque"  # name of the limit


class ToldTorques:
    """Compares the torques that the robot reports with the torques sent in the last second.

    A delay that is there from the beginning shows in no time stamp: it is the same for all states. But the robot
    reports the torques that it has heard, so their age is the delay to the robot and back.

    Args:
        robot_ms: the robot's time of a first state.
        margins: where to note how near to the limits it comes.
    """

    def __init__(self, robot_ms: int, margins: Margins) -> None:
        self._margins = margins
        # When the torques were last those that were sent, and when they were last new.
        self._agreed_ms = self._new_ms = robot_ms
        self._sent = np.full((KEPT, JOINTS), np.nan)
        self._times_ms = np.zeros(KEPT, dtype=np.int64)
        self._count = 0

    def begin(self) -> None:
        """What was sent under control before is of no interest any more."""
        self._sent[:] = np.nan

    def unknown(self, robot_ms: int) -> None:
        """Take notice that nobody knows what was sent for the state of the robot's time."""
        self._agreed_ms = self._new_ms = robot_ms

    def doubt(self, robot_ms: int, told: tuple[float, ...], sent: tuple[float, ...]) -> str:
        """Return how the told torques disagree with the sent ones, with the limit; empty if they do not.

        Args:
            robot_ms: the robot's time of a state.
            told: ``(7,)`` Nm, torques that it tells.
            sent: ``(7,)`` Nm, torques that were sent for it.
        """
        place = self._count % KEPT
        self._sent[place], self._times_ms[place] = sent, robot_ms
        self._count += 1
        off = max(abs(one - other) for one, other in zip(told, sent, strict=True))
        found = self._old(robot_ms, told) if off > MOVED else self._fresh(robot_ms)
        if off <= SENT_TORQUE:
            self._agreed_ms = robot_ms
        off_ms = robot_ms - self._agreed_ms
        if self._margins.over(SENT, off_ms, SENT_MS):
            found = found or f"a torque is {off:.1f} Nm off what was sent, for {off_ms} ms; valid is up to {SENT_MS} ms"
        return found

    def _fresh(self, robot_ms: int) -> str:
        self._new_ms = robot_ms
        self._margins.over("old torque", 0.0, SENT_MS)
        return ""

    def _old(self, robot_ms: int, told: tuple[float, ...]) -> str:
        """Return for how long the told torques have been those of long ago; empty if that is short."""
        same = np.abs(self._sent - told).max(axis=1) <= SAME  # NaN is never the same
        age_ms = int(robot_ms - self._times_ms[same].max()) if same.any() else 0
        if age_ms <= OLD_MS:
            return self._fresh(robot_ms)
        old_ms = robot_ms - self._new_ms
        if self._margins.over("old torque", old_ms, SENT_MS):
            return f"its torques are those sent {age_ms} ms before; valid is up to {OLD_MS} ms"
        return ""
