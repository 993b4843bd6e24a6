"""Robot mode, safety mode and program state of the controller, and the bits RTDE reports of them.

Names and numbers are those of Universal Robots' RTDE guide.
"""

from __future__ import annotations

import logging
from enum import IntEnum
from typing import Final

POWER_ON_S: Final = 0.4  # a real arm takes some seconds; the order of modes is the same
BRAKE_RELEASE_S: Final = 0.4
LOG = logging.getLogger(__name__)


class RobotMode(IntEnum):
    """What the arm's power and brakes do."""

    BOOTING = 2
    POWER_OFF = 3
    POWER_ON = 4
    IDLE = 5
    RUNNING = 7


class SafetyMode(IntEnum):
    """What the safety system allows."""

    NORMAL = 1
    PROTECTIVE_STOP = 3
    ROBOT_EMERGENCY_STOP = 7


class RuntimeState(IntEnum):
    """What the program does."""

    STOPPING = 0
    STOPPED = 1
    PLAYING = 2
    PAUSING = 3
    PAUSED = 4
    RESUMING = 5


# Bits of safety_status_bits.
SAFETY_BITS: Final = {
    SafetyMode.NORMAL: 1 << 0,
    SafetyMode.PROTECTIVE_STOP: 1 << 2 | 1 << 10,  # protective stopped, and stopped due to safety
    SafetyMode.ROBOT_EMERGENCY_STOP: 1 << 6 | 1 << 7 | 1 << 10,  # robot emergency stopped, emergency stopped, and that
}
# Bits of robot_status_bits.
POWER_ON_BIT: Final = 1 << 0
PROGRAM_RUNNING_BIT: Final = 1 << 1
# joint_mode of the RTDE guide.
JOINT_POWER_OFF: Final = 239
JOINT_IDLE: Final = 255
JOINT_RUNNING: Final = 253
# tool_mode of the same guide.
TOOL_RUNNING: Final = 253
TOOL_IDLE: Final = 255


class Status:
    """The modes, and how they follow each other. Times are controller times in s.

    Args:
        remote_control: whether remote control is switched on at the pendant (e-Series only).
        unlock_delay_s: s after a protective stop in which it cannot be released; 5 s on a robot.
    """

    def __init__(self, remote_control: bool, unlock_delay_s: float) -> None:
        self.remote_control = remote_control
        self.robot_mode = RobotMode.RUNNING
        self.safety_mode = SafetyMode.NORMAL
        self.stop_reason = ""
        self._unlock_delay_s = unlock_delay_s
        self._stopped_at_s = 0.0
        self._next: list[tuple[float, RobotMode]] = []

    @property
    def powered(self) -> bool:
        """Whether the motors have power."""
        return self.robot_mode in (RobotMode.POWER_ON, RobotMode.IDLE, RobotMode.RUNNING)

    @property
    def ready(self) -> bool:
        """Whether a program may move the arm."""
        return self.robot_mode is RobotMode.RUNNING and self.safety_mode is SafetyMode.NORMAL

    @property
    def safety_bits(self) -> int:
        """``safety_status_bits`` of RTDE."""
        return SAFETY_BITS[self.safety_mode]

    @property
    def joint_mode(self) -> int:
        """``joint_mode`` of RTDE, the same for every joint."""
        if self.robot_mode is RobotMode.RUNNING:
            return JOINT_RUNNING
        return JOINT_IDLE if self.powered else JOINT_POWER_OFF

    @property
    def tool_mode(self) -> int:
        """``tool_mode`` of RTDE."""
        return TOOL_RUNNING if self.powered else TOOL_IDLE

    def advance(self, now_s: float) -> None:
        """Go on with switching on or releasing the brakes."""
        while self._next and now_s >= self._next[0][0]:
            self.robot_mode = self._next.pop(0)[1]

    def power_on(self, now_s: float) -> None:
        """Switch the motors on; the brakes stay closed."""
        if self.robot_mode is RobotMode.POWER_OFF and self.safety_mode is not SafetyMode.ROBOT_EMERGENCY_STOP:
            self.robot_mode = RobotMode.BOOTING
            self._next = [(now_s + POWER_ON_S / 2, RobotMode.POWER_ON), (now_s + POWER_ON_S, RobotMode.IDLE)]

    def brake_release(self, now_s: float) -> None:
        """Open the brakes, switching the motors on first if they are off, as the robot does."""
        self.power_on(now_s)
        if self.robot_mode in (RobotMode.BOOTING, RobotMode.POWER_ON, RobotMode.IDLE):
            start = self._next[-1][0] if self._next else now_s
            self._next.append((start + BRAKE_RELEASE_S, RobotMode.RUNNING))

    def power_off(self) -> None:
        """Close the brakes and switch the motors off."""
        self._next.clear()
        self.robot_mode = RobotMode.POWER_OFF

    def protective_stop(self, reason: str, now_s: float) -> None:
        """Latch a protective stop; a stop that is latched already keeps its reason and its time."""
        if self.safety_mode is SafetyMode.NORMAL:
            self.safety_mode = SafetyMode.PROTECTIVE_STOP
            self.stop_reason = reason
            self._stopped_at_s = now_s
            LOG.warning("UR twin: protective stop: %s", reason)

    def unlock(self, now_s: float) -> bool:
        """Release a protective stop; return False while it is too fresh. Without one there is nothing to refuse."""
        if self.safety_mode is SafetyMode.PROTECTIVE_STOP:
            if now_s - self._stopped_at_s < self._unlock_delay_s:
                return False
            self._normal()
        return True

    def emergency_stop(self) -> None:
        """Press the emergency stop: the power goes off and stays off."""
        self.safety_mode = SafetyMode.ROBOT_EMERGENCY_STOP
        self.stop_reason = "emergency stop"
        self.power_off()

    def release_emergency_stop(self) -> None:
        """Turn the emergency stop's button back; the power stays off until it is switched on."""
        if self.safety_mode is SafetyMode.ROBOT_EMERGENCY_STOP:
            self._normal()

    def _normal(self) -> None:
        self.safety_mode = SafetyMode.NORMAL
        self.stop_reason = ""
