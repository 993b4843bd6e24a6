"""The gripper's action controller of ros2_control over the fingers of a Robotiq 2F-85.

Source: ros2_controllers, "gripper_controllers" (control.ros.org): a goal ends when the joint arrives, stalls, or
is cancelled: then it is held where it is.
"""

from typing import Final, Literal

from bid_ros.robots.bus import Bus, Channel, ServedGoal
from bid_ros.robots.robotiq.registers import MAX_OPENING
from bid_ros.robots.robotiq.twin import Fingers

CLOSED: Final = 0.8  # rad of the knuckle joint at the closed gripper; 0 is open
SPEED: Final = 0.1  # m/s
FORCE: Final = 40.0  # N
MOVING: Final = 0
AT_TARGET: Final = 3


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
