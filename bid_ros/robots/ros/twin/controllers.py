"""What a controller of ros2_control is to the twin, and the forward position controller.

Written from the documentation (control.ros.org, "forward_command_controller"):

- A forward controller passes on what it was sent last, if it has the right size and is finite.
- A controller that is not active takes nothing. Deactivated in motion, the last command stays on the hardware.
"""

import logging
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from bid_ros.core.rotation import Array

LOG = logging.getLogger(__name__)


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
