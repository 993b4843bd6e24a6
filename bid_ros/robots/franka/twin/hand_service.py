"""The service of the Franka Hand: its commands last until the fingers have come to rest."""

from dataclasses import dataclass
from typing import Any, Final

from franky_sim.constants import FRANKA_HAND_MAX_WIDTH, FRANKA_HAND_VELOCITY_LIMIT
from franky_sim.franka_gripper_protocol import GripperCommand, GripperCommandStatus, GripperState

from bid_ros.robots.franka.fast_franky_sim import FastFrankaRobot
from bid_ros.robots.franka.twin.messages import HAND
from bid_ros.robots.franka.twin.service import FciService

STILL: Final = 1e-5  # m per cycle: the fingers rest below this
REST_CYCLES: Final = 100  # at rest in a row which end a command
FULL_FORCE: Final = 70.0  # N
STOP_SPEED: Final = 0.05  # m/s


@dataclass
class HandCommand:
    """What the fingers do: the command and its number, the widths in m between which it is a success.

    ``returning`` says that homing has opened the fingers, and closes them to where they were.
    """

    command: GripperCommand
    number: int
    least: float = 0.0
    most: float = float("inf")
    returning: bool = False


class HandService(FciService):
    """Serves the Hand of a robot.

    Args:
        robot: it is on.
    """

    def __init__(self, robot: FastFrankaRobot) -> None:
        super().__init__(HAND)
        self._robot = robot
        self._now: HandCommand | None = None
        self._resting = 0
        self._last_width = self._homed_from = float(robot.hand_width)
        self._max_width = FRANKA_HAND_MAX_WIDTH
        self._grasping = False

    def cycle(self) -> None:
        """Serve the client, and end its command if the fingers are at rest."""
        self.serve()
        for _ in self.received():
            pass  # the Hand takes no datagrams
        if self._now is not None:
            self._watch(self._now)

    def state_bytes(self) -> bytes:
        """Return the Hand's state."""
        state = GripperState(self._robot.hand_width, self._max_width, self._grasping)
        packed: bytes = state.pack()
        return packed

    def left(self) -> None:
        """Forget whom to answer; the fingers go on, as those of a Hand do."""
        self._now = None

    def forget_homing(self) -> None:
        """Be as a Hand that was switched on and not homed: it opens 0 m, and refuses to move."""
        self._max_width = 0.0

    def take(self, command: int, number: int, values: tuple[Any, ...]) -> None:
        """Begin a command, which replaces the one before."""
        if command == GripperCommand.kStop:
            self._robot.set_hand_goal(self._robot.hand_width, STOP_SPEED, FULL_FORCE)
            self._now, self._grasping = None, False
            self.reply(command, number, GripperCommandStatus.kSuccess)
            return
        begun = HandCommand(GripperCommand(command), number)
        if self._max_width == 0.0 and begun.command is not GripperCommand.kHoming:
            self.reply(command, number, GripperCommandStatus.kFail)
            return
        if command == GripperCommand.kGrasp:
            width, inner, outer, speed, force = values
            begun.least, begun.most = width - inner, width + outer
            self._robot.set_hand_goal(width, speed, force)
        elif command == GripperCommand.kMove:
            width, speed = values
            self._robot.set_hand_goal(width, speed, FULL_FORCE)
        else:
            self._homed_from = self._robot.hand_width
            self._robot.set_hand_goal(FRANKA_HAND_MAX_WIDTH, FRANKA_HAND_VELOCITY_LIMIT, FULL_FORCE)
        self._now, self._resting, self._grasping = begun, 0, False

    def _watch(self, now: HandCommand) -> None:
        width = float(self._robot.hand_width)
        self._resting = self._resting + 1 if abs(width - self._last_width) < STILL else 0
        self._last_width = width
        if self._resting < REST_CYCLES:
            return
        if now.command is GripperCommand.kHoming and not now.returning:
            self._max_width, self._resting, now.returning = width, 0, True
            self._robot.set_hand_goal(self._homed_from, FRANKA_HAND_VELOCITY_LIMIT, FULL_FORCE)
            return
        success = now.least <= width <= now.most
        self._grasping = success and now.command is GripperCommand.kGrasp
        self._now = None
        self.reply(now.command, now.number, GripperCommandStatus.kSuccess if success else GripperCommandStatus.kFail)
