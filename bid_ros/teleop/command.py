"""What a person asks for at one instant, whatever the device, and how it becomes a motion of the tool."""

from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field

from bid_ros.core.rotation import Array
from bid_ros.core.settings import settings

MARKS: Final = ("success", "failure", "discard")
AXES: Final = ("x", "y", "z", "roll", "pitch", "yaw")
Axis = Literal["x", "y", "z", "roll", "pitch", "yaw"]


@dataclass(frozen=True, eq=False)
class Offset:
    """How far a device that is moved in space has come since its clutch was closed.

    Attributes:
        position: ``(3,)`` m; rotation: ``(3, 3)``; both in base axes.
        closing: number of the clutch's closing. A new number starts from where the tool is, without a jump.
    """

    position: Array
    rotation: Array
    closing: int


@dataclass(frozen=True, eq=False)
class Command:
    """What a person asks for at one instant.

    Attributes:
        live: the dead man's switch is held. If not, the tool brakes and holds.
        heard: the device is there. One that is silent has not let go of its switch: nobody knows.
        twist: ``(6,)`` shares of the largest speeds, -1 to 1: x, y, z, then turns about x, y, z.
        offset: of a device that is moved in space; it replaces the twist.
        gripper: share of the opening, 0 closed to 1 open; None: as before.
        toggle: close an open gripper, open a closed one.
        mark: ends the episode as a success, a failure or one to discard (``MARKS``); empty: it goes on. Between two
            episodes that a person records, ``success`` starts the next one, ``discard`` takes the last one back, and
            ``failure`` makes a failure of it.
        note: what the person says about the episode; empty: nothing.
    """

    live: bool = False
    twist: Array = field(default_factory=lambda: np.zeros(6))
    offset: Offset | None = None
    gripper: float | None = None
    toggle: bool = False
    mark: str = ""
    note: str = ""
    heard: bool = True


@settings
class Steering:
    """How commands become motions. Every value may change while a person drives.

    Attributes:
        linear_speed: m/s of the tool at full deflection.
        angular_speed: rad/s at full deflection.
        scale: m of the tool for 1 m of a device that is moved in space.
        frame: whose axes a twist means: the robot's base, or the tool.
        locked: axes, in that frame, that do not move.
    """

    linear_speed: Annotated[float, Field(ge=0.005, le=0.5)] = 0.15
    angular_speed: Annotated[float, Field(ge=0.02, le=1.5)] = 0.6
    scale: Annotated[float, Field(ge=0.05, le=3)] = 1.0
    frame: Literal["base", "tool"] = "base"
    locked: tuple[Axis, ...] = ("roll", "pitch")

    @property
    def free(self) -> Array:
        """``(6,)``: 1 for an axis that moves, 0 for a locked one."""
        return np.array([float(axis not in self.locked) for axis in AXES])
