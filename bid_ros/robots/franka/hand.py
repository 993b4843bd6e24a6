"""The Franka Hand as a :class:`bid_ros.robots.gripper.GripperDevice`."""

from contextlib import suppress
from functools import partial

import franky

from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.gripper import HasEnded

MAX_WIDTH = 0.08


class FrankaHand:
    """Reads and commands a Franka Hand.

    libfranka's commands block until they end, and its stop waits for them too. So a command is never cut short.

    Args:
        config: configuration of the arm. The hand has the same address.

    Raises:
        franky.NetworkException: no hand answers.
    """

    def __init__(self, config: FrankaConfig) -> None:
        self._config = config
        self._hand = franky.Gripper(config.address)

    def width(self) -> float:
        """Return the measured opening in m. Waits for the next state, about a millisecond."""
        return float(self._hand.width)

    def begin_open(self) -> HasEnded:
        """Begin to open to the configured width."""
        return partial(_ended, self._hand.move_async(self._config.gripper_open_width, self._config.gripper_speed))

    def begin_close(self) -> HasEnded:
        """Begin to close with force. Width 0 with the widest tolerance squeezes an object of any size."""
        command = self._hand.grasp_async(
            0.0,
            self._config.gripper_speed,
            self._config.gripper_force,
            epsilon_inner=MAX_WIDTH,
            epsilon_outer=MAX_WIDTH,
        )
        return partial(_ended, command)


def _ended(command: franky.BoolFuture) -> bool:
    """See :data:`HasEnded`. A refusal is an answer, not an error: the thread looks at the fingers and asks again."""
    if not command.wait(0.0):
        return False
    with suppress(franky.CommandException):
        command.get()
    return True
