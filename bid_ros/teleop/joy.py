"""Teleoperation by a gamepad whose state arrives on a ROS topic, and the motion that any gamepad's state means."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import numpy as np
from pydantic import Field

from bid_ros.core.settings import Positive, settings
from bid_ros.core.task import Task
from bid_ros.teleop.base import Command, DeviceDescriptor
from bid_ros.teleop.human import HumanDevice, TopicController

HELP: Final = """\
  left bumper       dead man's switch: hold it to move
  left stick        x (forward: away from the base), y
  right stick       z (forward: up), turn about z
  d-pad             tilt (axes roll and pitch are locked unless `locked` says otherwise)
  A / cross         gripper: close, open
  start, select     end the episode: a success, one to discard
  B / circle        end the episode: a failure
  Y / triangle      a note: look at this moment"""
ENDS: Final = {"start": "success", "select": "discard", "east": "failure"}
PRESSED: Final = ("south", "north", *ENDS)
MOMENT: Final = "look at this moment"


@settings
class PadSettings:
    """Settings of every gamepad.

    Attributes:
        deadzone: share of a stick's way that counts as its rest.
        expo: 0: speed is proportional to the stick; 1: to its third power, which is finer around the rest.
    """

    deadzone: Annotated[float, Field(ge=0, le=0.5)] = 0.12
    expo: Annotated[float, Field(ge=0, le=1)] = 0.5


class Pad:
    """Turns the state of a gamepad into commands. The gripper moves when its button goes down."""

    def __init__(self, options: PadSettings) -> None:
        self._options = options
        self._was_down = dict.fromkeys(PRESSED, True)  # a button that is held at the start does not count

    def command(self, axes: Mapping[str, float], buttons: Mapping[str, bool]) -> Command:
        """Return the command.

        Args:
            axes: left_x, left_y, right_x, right_y, hat_x, hat_y, -1 to 1; forward and left are positive.
            buttons: south, east, north, left_bumper, start, select; those that are missing are not pressed.
        """
        down = {name: buttons.get(name, False) for name in PRESSED}
        pressed = {name for name in PRESSED if down[name] and not self._was_down[name]}
        self._was_down = down
        live = buttons["left_bumper"]
        shaped = {name: self._shape(axes[name]) for name in ("left_x", "left_y", "right_x", "right_y")}
        turns = (-axes["hat_x"], axes["hat_y"], shaped["right_x"])
        twist = np.array([shaped["left_y"], shaped["left_x"], shaped["right_y"], *turns])
        mark = next((ENDS[name] for name in ENDS if name in pressed), "")
        note = MOMENT if "north" in pressed else ""
        return Command(live, twist, toggle="south" in pressed and live, mark=mark, note=note)

    def _shape(self, value: float) -> float:
        """Return what a stick's position means: no motion around its rest, finer near it."""
        deadzone, expo = self._options.deadzone, self._options.expo
        beyond = max(0.0, min(abs(value), 1.0) - deadzone) / (1.0 - deadzone)
        return float(np.copysign((1.0 - expo) * beyond + expo * beyond**3, value))


# Places in sensor_msgs/Joy of joy_node's gamepads; forward and left are positive there.
AXES: Final = {"left_x": 0, "left_y": 1, "right_x": 3, "right_y": 4, "hat_x": 6, "hat_y": 7}
BUTTONS: Final = {"south": 0, "east": 1, "north": 3, "left_bumper": 4, "select": 6, "start": 7}


@settings
class JoySettings(PadSettings):
    """Settings of a gamepad on a topic.

    Attributes:
        topic: of ``sensor_msgs/msg/Joy``.
        silence_s: s without a message after which the dead man's switch counts as open.
    """

    topic: str = "joy"
    silence_s: Positive = 0.25


class Joy(TopicController):
    """A gamepad on a topic. Silence opens the dead man's switch. Too few axes or buttons count as nothing pressed."""

    def __init__(self, options: JoySettings) -> None:
        super().__init__(options.silence_s)
        self._topic, self._pad = options.topic, Pad(options)

    def poll(self, now_ns: int) -> Command:
        """Return what the newest ``sensor_msgs/Joy`` asks for."""
        message = self.newest(self._topic, now_ns)
        if message is None:
            return Command(heard=False)
        axes, buttons = message.axes, message.buttons
        pressed = {name: at < len(buttons) and bool(buttons[at]) for name, at in BUTTONS.items()}
        return self._pad.command({name: _value(axes, at) for name, at in AXES.items()}, pressed)


def _value(axes: Any, at: int) -> float:
    value = float(axes[at]) if at < len(axes) else 0.0
    return value if abs(value) <= 1.0 else 0.0  # NaN too


def _build(task: Task, options: JoySettings) -> HumanDevice:
    return HumanDevice(task, lambda: Joy(options))


DEVICE = DeviceDescriptor(
    "joy",
    _build,
    settings=JoySettings,
    topics=lambda task, options: {options.topic: "sensor_msgs/msg/Joy"},
    rate_hz=40.0,
    help=HELP,
)
