"""What sticks and buttons of a gamepad mean, however they are read."""

from collections.abc import Mapping
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from bid_ros.core.settings import settings
from bid_ros.teleop.command import Command

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
