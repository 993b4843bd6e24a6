"""Whether the controller that takes our commands is active, as the controller manager of ros2_control tells it.

Source: ros2_control, "controller_manager": topic ``~/activity`` (controller_manager_msgs/ControllerManagerActivity) of
4.28 and later, service ``~/list_controllers`` (controller_manager_msgs/ListControllers) of all. An answer with the
fields of another release does not reach us.
"""

import contextlib
import time
from typing import Final

from bid_ros.core.errors import ArmError
from bid_ros.robots.bus import Bus, Channel, Request
from bid_ros.robots.ros.config import RosConfig

ACTIVE: Final = "active"
TOPIC_TYPE: Final = "controller_manager_msgs/msg/ControllerManagerActivity"
SERVICE_TYPE: Final = "controller_manager_msgs/srv/ListControllers"
ASK_S: Final = 0.5  # between two questions to the service
SILENT_S: Final = 3.0  # after which an answer says nothing any more

States = dict[str, str]
"""Labels of the controllers' states by name."""


class Activity:
    """Looks at the newest message of the controller manager; without any, asks its service again and again.

    Args:
        bus: of the robot.
        config: names the controller, the topic and the service. Without a controller nobody is asked.
    """

    def __init__(self, bus: Bus, config: RosConfig) -> None:
        self._bus, self._controller = bus, config.controller
        self._topic, self._service = config.activity, config.list_controllers
        self._request: Request | None = None
        self._asked_s = self._answered_s = 0.0  # steady times
        self._listed: States | None = None

    def begin(self) -> None:
        """Begin to listen, and forget what was told before. Raises ArmError if the package of the types is absent."""
        self._request, self._listed, self._asked_s = None, None, 0.0
        if not self._controller:
            return
        self._bus.offer(Channel(self._service, SERVICE_TYPE))
        with contextlib.suppress(ArmError):  # before 4.28 there is the service, but no such message
            self._bus.listen(Channel(self._topic, TOPIC_TYPE, latched=True))

    def problem(self) -> str:
        """Return one sentence if the controller is not known to be active; otherwise an empty text. Does not wait."""
        if not self._controller:
            return ""
        states = self._states()
        if states is None:
            where = f"{self._bus.full_name(self._topic)}, and {self._bus.full_name(self._service)} did not answer"
            return f"nothing came on {where}: one of them tells whether controller '{self._controller}' is active"
        if self._controller not in states:
            valid = ", ".join(states) or "none"
            return f"the controller manager has no controller '{self._controller}'; valid are {valid}"
        label = states[self._controller]
        if label == ACTIVE:
            return ""
        active = ", ".join(name for name, state in states.items() if state == ACTIVE) or "none"
        advice = f"activate it with: ros2 control switch_controllers --activate {self._controller}"
        return f"controller '{self._controller}' is {label}, active are {active}; {advice}"

    def _states(self) -> States | None:
        """Return what was told last; None if nothing was, or too long ago."""
        heard = self._bus.latest(self._topic)
        if heard is not None:
            return {item.name: item.state.label for item in heard.message.controllers}
        now_s = time.monotonic()
        answer = None if self._request is None else self._request.answer()
        if answer is not None:
            self._listed, self._answered_s, self._request = {}, now_s, None
            self._listed.update((item.name, item.state) for item in answer.controller)
        if now_s - self._asked_s > ASK_S and self._bus.partners(self._service):
            self._request, self._asked_s = self._bus.ask(self._service), now_s
        return self._listed if now_s - self._answered_s < SILENT_S else None
