"""A gripper behind an action or a topic of ROS.

Sources: control_msgs, actions GripperCommand and ParallelGripperCommand; ros2_controllers, "gripper_controllers".
"""

import time
from typing import Final

from bid_ros.core.errors import ArmError
from bid_ros.robots.bus import Bus, Channel, Values
from bid_ros.robots.gripper import HasEnded
from bid_ros.robots.ros.config import RosGripperConfig
from bid_ros.robots.ros.joints import JointReader

# A gripper without an answer has ended when its opening has changed by less than this in that time: m and s.
STILL_M: Final = 0.0005
STILL_S: Final = 0.3
LONGEST_S: Final = 10.0
TYPES: Final = {
    "action": "control_msgs/action/GripperCommand",
    "parallel_action": "control_msgs/action/ParallelGripperCommand",
    "topic": "std_msgs/msg/Float64MultiArray",
}


class RosGripper:
    """A :class:`bid_ros.robots.gripper.GripperDevice`.

    Args:
        config: of the gripper.
        bus: of the robot.
        joints: measures the gripper's joint.
        address: of the robot, for errors.
    """

    def __init__(self, config: RosGripperConfig, bus: Bus, joints: JointReader, address: str) -> None:
        self._config, self._bus, self._joints, self._address = config, bus, joints, address

    def begin(self) -> None:
        """Get ready to command. Raises ArmError for an unknown type."""
        self._bus.offer(Channel(self._config.name, TYPES[self._config.interface]))

    def width(self) -> float:
        """Return the measured opening in m. Raises ArmError if the joint was never measured."""
        self._joints.look()
        config, position = self._config, self._joints.of([self._config.joint])[0].position
        share = (position - config.closed_position) / (config.open_position - config.closed_position)
        return min(max(share, 0.0), 1.0) * config.open_width

    def begin_open(self) -> HasEnded:
        """Begin to open."""
        return self._begin(self._config.open_position)

    def begin_close(self) -> HasEnded:
        """Begin to close."""
        return self._begin(self._config.closed_position)

    def _begin(self, position: float) -> HasEnded:
        name, interface = self._config.name, self._config.interface
        if not self._bus.partners(name):
            raise ArmError(
                f"robot at {self._address}: nobody takes commands on {self._bus.full_name(name)}: start its gripper"
            )
        if interface == "topic":
            self._bus.publish(name, {"data": [position]})
            return _Still(self).ended
        goal, latest = self._bus.send_goal(name, self._goal(position)), time.monotonic() + LONGEST_S
        return lambda: goal.done() or time.monotonic() > latest

    def _goal(self, position: float) -> Values:
        config = self._config
        if config.interface == "action":
            return {"command": {"position": position, "max_effort": config.max_effort}}
        effort = [config.max_effort] if config.max_effort else []
        return {"command": {"name": [config.joint], "position": [position], "effort": effort}}


class _Still:
    """Waits until an opening does not change any more."""

    def __init__(self, gripper: RosGripper) -> None:
        self._gripper, self._width = gripper, gripper.width()
        self._begun = self._changed = time.monotonic()

    def ended(self) -> bool:
        """Return whether the opening stands still, or was waited for long enough."""
        width, now = self._gripper.width(), time.monotonic()
        if abs(width - self._width) > STILL_M:
            self._width, self._changed = width, now
        return now - self._changed > STILL_S or now - self._begun > LONGEST_S
