"""Robot mode, safety mode and program state of the controller, and the numbers that it reports of them.

Names and numbers are those of Universal Robots' RTDE guide.
"""

from enum import IntEnum
from typing import Final


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


# Bits of safety_status_bits.
SAFETY_BITS: Final = {
    SafetyMode.NORMAL: 1 << 0,
    SafetyMode.PROTECTIVE_STOP: 1 << 2 | 1 << 10,  # protective stopped, and stopped due to safety
    SafetyMode.ROBOT_EMERGENCY_STOP: 1 << 6 | 1 << 7 | 1 << 10,  # robot emergency stopped, emergency stopped, and that
}
# Bits of robot_status_bits.
POWER_ON_BIT: Final = 1 << 0
PROGRAM_RUNNING_BIT: Final = 1 << 1
# joint_mode and tool_mode.
POWER_OFF: Final = 239  # of a joint
IDLE: Final = 255
RUNNING: Final = 253
