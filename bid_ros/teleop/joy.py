"""Teleoperation by a gamepad whose state arrives on a ROS topic, and the motion that any gamepad's state means."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Final

import numpy as np
from pydantic import Field

from bid_ros.core.errors import BidError
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
        buttons: number of each of its buttons (``BUTTONS``), of a gamepad that is not known.
        axes: number of each of its axes (``AXES``); those that are not named are where they usually are.
    """

    buttons: dict[str, Annotated[int, Field(ge=0)]] = field(default_factory=dict)
    axes: dict[str, Annotated[int, Field(ge=0)]] = field(default_factory=dict)
    deadzone: Annotated[float, Field(ge=0, le=0.5)] = 0.12
    expo: Annotated[float, Field(ge=0, le=1)] = 0.5

    def __post_init__(self) -> None:
        for what, given, valid in (("button", self.buttons, BUTTONS), ("axis", self.axes, AXES)):
            for name in given:
                if name not in valid:
                    raise BidError(f"{what} '{name}' does not exist; valid are {', '.join(valid)}")
        if self.buttons and self.buttons.keys() != BUTTONS.keys():
            raise BidError(f"buttons are {', '.join(self.buttons)}; valid are all of {', '.join(BUTTONS)}")


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


# Places in sensor_msgs/Joy of joy_node's gamepads, as the kernel's driver xpad has them; forward and left are positive.
AXES: Final = {"left_x": 0, "left_y": 1, "right_x": 3, "right_y": 4, "hat_x": 6, "hat_y": 7}
BUTTONS: Final = {"south": 0, "east": 1, "north": 3, "left_bumper": 4, "select": 6, "start": 7}
# By the number of buttons: xpad's, those of the kernel's PlayStation driver, those of joy's game_controller_node (SDL).
PLAYSTATION: Final = {"south": 0, "east": 1, "north": 2, "left_bumper": 4, "select": 8, "start": 9}
SDL: Final = {"south": 0, "east": 1, "north": 3, "left_bumper": 9, "select": 4, "start": 6}
LAYOUTS: Final = {**dict.fromkeys(range(8, 12), BUTTONS), 13: PLAYSTATION, **dict.fromkeys((15, 16, 20, 21), SDL)}
SDL_AXES: Final = {**AXES, "right_x": 2, "right_y": 3}


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
    """A gamepad on a topic. Silence opens the dead man's switch. No buttons, or too few axes, count as at rest."""

    def __init__(self, options: JoySettings) -> None:
        super().__init__(options.silence_s)
        self._options, self._topic, self._pad = options, options.topic, Pad(options)

    def poll(self, now_ns: int) -> Command:
        """Return what the newest ``sensor_msgs/Joy`` asks for. Raises BidError if nobody knows its buttons."""
        message = self.newest(self._topic, now_ns)
        if message is None:
            return Command(heard=False)
        axes, buttons = message.axes, message.buttons
        places = self._options.buttons or LAYOUTS.get(len(buttons), {})
        if len(buttons) and not places:
            down = ", ".join(str(at) for at, is_down in enumerate(buttons) if is_down) or "none"
            raise BidError(
                f"the gamepad on {self._topic} has {len(buttons)} buttons, and nobody knows which is which (pressed "
                f"now: {down}); valid are 8 to 11 (Xbox), 13 (PlayStation), 15 to 21 (game_controller_node), or the "
                f"setting `buttons` with {', '.join(BUTTONS)}: bid teleop --learn --device joy asks for them"
            )
        pressed = {name: at < len(buttons) and bool(buttons[at]) for name, at in places.items()}
        usual = SDL_AXES if places is SDL else AXES
        moved = {name: _value(axes, self._options.axes.get(name, at)) for name, at in usual.items()}
        return self._pad.command(moved, {"left_bumper": False, **pressed})


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
