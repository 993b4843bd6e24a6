"""What a controller of ros2_control is to the twin, the forward position controller, and the gripper's.

Written from the documentation (control.ros.org, "forward_command_controller" and "gripper_controllers"):

- A forward controller passes on what it was sent last, if it has the right size and is finite.
- A controller that is not active takes nothing. Deactivated in motion, the last command stays on the hardware.
- The gripper is a Robotiq 2F-85. A goal ends when the joint arrives, stalls, or is cancelled: then it is held where it
  is.
"""

import logging
from collections.abc import Sequence
from typing import Any, Final, Literal, Protocol

import numpy as np

from bid_ros.core.rotation import Array
from bid_ros.robots.bus import Bus, Channel, ServedGoal
from bid_ros.robots.robotiq.registers import MAX_OPENING
from bid_ros.robots.robotiq.twin import Fingers

LOG = logging.getLogger(__name__)
CLOSED: Final = 0.8  # rad of the knuckle joint at the closed gripper; 0 is open
SPEED: Final = 0.1  # m/s
FORCE: Final = 40.0  # N
MOVING: Final = 0
AT_TARGET: Final = 3


class JointController(Protocol):
    """A controller of all joints.

    Attributes:
        name: of the controller.
        topic: that it listens to, relative to the robot.
        type_name: of its messages.
        refused: number of messages that it did not take.
    """

    name: str
    topic: str
    type_name: str
    refused: int

    def activate(self, joints: Array) -> None:
        """Begin at measured joints ``(n,)`` rad: hold them."""

    def take(self, message: Any, now_ns: int) -> None:
        """Take a message while active."""

    def update(self, now_ns: int, joints: Array) -> Array | None:
        """Return the joints to command ``(n,)`` rad, from measured ones; None: leave the command as it is."""


class ForwardController:
    """The forward position controller.

    Args:
        names: of its joints, whose order the numbers of a message have.
    """

    name = "forward_position_controller"
    topic = f"{name}/commands"
    type_name = "std_msgs/msg/Float64MultiArray"

    def __init__(self, names: Sequence[str]) -> None:
        self._count = len(names)
        self._command: Array | None = None
        self.refused = 0

    def activate(self, joints: Array) -> None:
        """Command nothing until a message comes."""
        self._command = None

    def take(self, message: Any, now_ns: int) -> None:
        """Take positions of all joints."""
        values = np.array(message.data, dtype=np.float64)
        if values.size != self._count or not np.isfinite(values).all():
            self.refused += 1
            LOG.warning("%s refuses %s; valid are %d finite numbers", self.name, values.tolist(), self._count)
            return
        self._command = values

    def update(self, now_ns: int, joints: Array) -> Array | None:
        """Return the positions that came last."""
        return self._command


class GripperController:
    """Takes goals of an action, one at a time: the newest one counts.

    Args:
        bus: serves the action.
        fingers: what it moves.
    """

    name = "gripper_controller"
    joint = "robotiq_85_left_knuckle_joint"
    channel = Channel(f"{name}/gripper_cmd", "control_msgs/action/GripperCommand")

    def __init__(self, bus: Bus, fingers: Fingers) -> None:
        self._bus, self._fingers = bus, fingers
        self._goal: ServedGoal | None = None

    @property
    def position(self) -> float:
        """Of the knuckle joint, rad."""
        return CLOSED * (1.0 - self._fingers.opening / MAX_OPENING)

    def start(self) -> None:
        """Serve the action. Raises ArmError if its type is not there."""
        self._bus.serve(self.channel)

    def look(self) -> None:
        """Take new goals, and end one that has arrived or stalled."""
        for goal in self._bus.goals(self.channel.name):
            self._end(reached=False)
            share = 1.0 - goal.message.command.position / CLOSED
            self._fingers.command(min(max(share, 0.0), 1.0) * MAX_OPENING, SPEED, FORCE)
            self._goal = goal
        if self._goal is not None and self._goal.canceled:
            self._fingers.command(self._fingers.opening, SPEED, FORCE)
            self._end(reached=False, status="canceled")
        if self._goal is not None and self._fingers.status != MOVING:
            self._end(reached=self._fingers.status == AT_TARGET)

    def _end(self, reached: bool, status: Literal["succeeded", "canceled"] = "succeeded") -> None:
        goal, self._goal = self._goal, None
        if goal is not None:
            values = {"position": self.position, "stalled": not reached, "reached_goal": reached}
            goal.finish(values, status)
