"""The Franka Hand as a :class:`bid_ros.robots.gripper.GripperDevice`."""

from contextlib import suppress
from functools import partial

import franky

from bid_ros.core.errors import ArmError
from bid_ros.robots.franka.config import FrankaConfig
from bid_ros.robots.franka.errors import FRANKY_ERRORS, sentence
from bid_ros.robots.gripper import HasEnded

MAX_WIDTH = 0.08
UNHOMED = 0.005  # m: a hand that was not homed since it was switched on says that it opens less than this


class FrankaHand:
    """Reads and commands a Franka Hand.

    libfranka's commands block until they end, and its stop waits for them too. So a command is never cut short. A hand
    that was not homed since it was switched on refuses to move. The first command homes it, if a person has let it.

    Args:
        config: configuration of the arm. The hand has the same address.
        may_home: a person has let the fingers run to both ends.

    Raises:
        franky.NetworkException: no hand answers.
    """

    def __init__(self, config: FrankaConfig, may_home: bool = False) -> None:
        self._config, self._may_home = config, may_home
        self._hand = franky.Gripper(config.address)

    def width(self) -> float:
        """Return the measured opening in m. Waits for the next state, about a millisecond."""
        return float(self._hand.width)

    def begin_open(self) -> HasEnded:
        """Begin to open to the configured width, or as far as the fingers go. Raises ArmError for a hand not homed."""
        self._home()
        width = min(self._config.gripper_open_width, float(self._hand.max_width))
        return partial(_ended, self._hand.move_async(width, self._config.gripper_speed))

    def begin_close(self) -> HasEnded:
        """Begin to close with force. Width 0 with the widest tolerance squeezes an object of any size.

        Raises:
            ArmError: the hand was not homed.
        """
        self._home()
        command = self._hand.grasp_async(
            0.0,
            self._config.gripper_speed,
            self._config.gripper_force,
            epsilon_inner=MAX_WIDTH,
            epsilon_outer=MAX_WIDTH,
        )
        return partial(_ended, command)

    def _home(self) -> None:
        """Home a hand that needs it, and wait for that. Raises ArmError if it may not, or cannot."""
        if self._hand.max_width > UNHOMED:
            return
        if not self._may_home:
            raise ArmError(unhomed(self._config.address))
        if not self._hand.homing() or self._hand.max_width <= UNHOMED:
            raise ArmError(f"hand of the robot at {self._config.address} cannot be homed: look what blocks its fingers")


def unhomed(address: str) -> str:
    """Return the sentence about a hand that was not homed."""
    return (
        f"hand of the robot at {address} is not homed, so it does not move: take out what it holds, then reset: it "
        "opens and closes once"
    )


def unready(config: FrankaConfig) -> str:
    """Return one sentence on why the hand of a robot will not move; empty if it will, or there is none."""
    try:
        return unhomed(config.address) if config.gripper and franky.Gripper(config.address).max_width <= UNHOMED else ""
    except FRANKY_ERRORS as error:
        return f"hand of the {sentence(config.address, error)}"


def _ended(command: franky.BoolFuture) -> bool:
    """See :data:`HasEnded`. A refusal is an answer, not an error: the thread looks at the fingers and asks again."""
    if not command.wait(0.0):
        return False
    with suppress(franky.CommandException):
        command.get()
    return True
