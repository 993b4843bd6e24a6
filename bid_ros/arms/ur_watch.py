"""Watches an open UR: keeps its newest state, and finds out that it cannot go on or is lost, and why."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Final

from bid_ros.arms.ur_config import UrConfig
from bid_ros.arms.ur_open import in_local_mode
from bid_ros.arms.ur_robot import UrRobot
from bid_ros.arms.ur_status import PLAYING, possible, trouble

EXPLAIN_S: Final = 0.1


@dataclass(frozen=True)
class Finding:
    """Why a robot cannot go on.

    Attributes:
        reason: one sentence.
        lost: nothing more can be heard or said, so that the connection must be given up.
        silent: it is lost because it said nothing, and may still hear us.
    """

    reason: str
    lost: bool = False
    silent: bool = False


class UrWatch:
    """Reads the robot once a period.

    Args:
        config: of the arm.
        robot: open.
        now_ns: steady time.
    """

    def __init__(self, config: UrConfig, robot: UrRobot, now_ns: int) -> None:
        self._config = config
        self._robot = robot
        self.reading = robot.read()
        self.stamp_ns = time.time_ns()
        self.steady_ns = now_ns

    def look(self, now_ns: int) -> Finding | None:
        """Read the robot at ``now_ns`` of a steady clock; return why it cannot go on, None if it can."""
        address, reading = self._config.address, self._robot.read()
        if reading.robot_s != self.reading.robot_s:
            if not possible(reading, self.reading):
                return Finding(
                    f"robot at {address} sent a state that cannot be: check what damages its data on the network, then "
                    "reset"
                )
            self.reading = reading
            self.stamp_ns, self.steady_ns = time.time_ns(), now_ns
        if not self._robot.connected():
            return Finding(
                f"robot at {address} closed the connection: check its network and that it is on, then reset", lost=True
            )
        silence = (now_ns - self.steady_ns) / 1e9
        if silence > self._config.state_timeout_s:
            reason = f"robot at {address} has been silent for {silence:.2f} s: check cable and power, then reset"
            return Finding(reason, lost=True, silent=True)
        reason = trouble(address, self.reading)
        return Finding(reason) if reason else None

    def why_stopped(self) -> str:
        """Return one sentence on why our program does not run, empty if it does; waits up to 0.1 s for a reason."""
        if self.reading.runtime == PLAYING:
            return ""
        address, local = self._config.address, list[bool]()
        asking = threading.Thread(target=lambda: local.append(in_local_mode(address)), daemon=True)
        asking.start()
        asking.join(EXPLAIN_S)
        if local and local[0]:
            return f"robot at {address} is in local mode: switch it to remote control, then reset"
        return (
            f"robot at {address} stopped our program: look at the pendant, and check that nothing delays the network "
            "or this computer, then reset"
        )
