"""Whether the controller that takes our commands is active, as the controller manager of ros2_control tells it.

Source: ros2_control, "controller_manager", topic ``~/activity`` (controller_manager_msgs/ControllerManagerActivity).
"""

from bid_ros.robots.bus import Bus, Channel

ACTIVE = "active"


class Activity:
    """Looks at the newest message of the controller manager.

    Args:
        bus: of the robot.
        topic: of the controller manager.
        controller: name of the controller; empty: nobody is asked.
    """

    def __init__(self, bus: Bus, topic: str, controller: str) -> None:
        self._bus, self._topic, self._controller = bus, topic, controller

    def begin(self) -> None:
        """Begin to listen."""
        if self._controller:
            kind = "controller_manager_msgs/msg/ControllerManagerActivity"
            self._bus.listen(Channel(self._topic, kind, latched=True))

    def problem(self) -> str:
        """Return one sentence if the controller is not known to be active; otherwise an empty text."""
        if not self._controller:
            return ""
        heard, where = self._bus.latest(self._topic), self._bus.full_name(self._topic)
        if heard is None:
            return f"nothing came on {where}, which tells whether controller '{self._controller}' is active"
        states = {item.name: item.state.label for item in heard.message.controllers}
        if self._controller not in states:
            valid = ", ".join(states) or "none"
            return f"the controller manager has no controller '{self._controller}'; valid are {valid}"
        label = states[self._controller]
        if label == ACTIVE:
            return ""
        active = ", ".join(name for name, state in states.items() if state == ACTIVE) or "none"
        advice = f"activate it with: ros2 control switch_controllers --activate {self._controller}"
        return f"controller '{self._controller}' is {label}, active are {active}; {advice}"
