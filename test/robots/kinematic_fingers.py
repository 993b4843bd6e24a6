"""Fingers for a Robotiq twin that needs no physics, and a server of such a twin without an arm."""

import time
from collections.abc import Callable

from bid_ros.robots.robotiq.registers import MAX_OPENING, PORT, SPEED_RANGE
from bid_ros.robots.robotiq.twin import GripperSession, RobotiqTwin
from bid_ros.sim.loop import StepLoop
from bid_ros.sim.net import Switchboard

MOVING, BLOCKED_CLOSING, AT_TARGET = 0, 2, 3


class KinematicFingers:
    """Fingers without mass, moved by the clock alone.

    Args:
        opening: m at the start.
        object_width: m of a rigid object between the pads, 0 for none.
        clock: steady seconds.
    """

    def __init__(
        self, opening: float = MAX_OPENING, object_width: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._from = self._target = opening
        self._since = clock()
        self._speed = SPEED_RANGE[1]
        self.object_width = object_width

    @property
    def opening(self) -> float:
        """Distance between the pads, m."""
        travel = self._speed * (self._clock() - self._since)
        if self._target < self._from:
            return max(self._from - travel, self._target, min(self.object_width, self._from))
        return min(self._from + travel, self._target)

    @property
    def status(self) -> int:
        """What the fingers do, numbered as Robotiq's gOBJ."""
        opening = self.opening
        if opening == self._target:
            return AT_TARGET
        return BLOCKED_CLOSING if opening <= self.object_width else MOVING

    def command(self, opening: float, speed: float, force: float) -> None:
        """Go to ``opening`` m at ``speed`` m/s; without mass any ``force`` N holds."""
        self._from, self._since = self.opening, self._clock()
        self._target, self._speed = opening, speed

    def stop(self) -> None:
        """Stop where the fingers are."""
        self._from = self._target = self.opening


class GripperServer:
    """Serves a gripper on a thread of its own.

    Args:
        address: loopback address.
        fingers: what it moves.
    """

    def __init__(self, address: str, fingers: KinematicFingers) -> None:
        self.gripper, self._board = RobotiqTwin(fingers), Switchboard(address)
        self._board.listen(PORT, "gripper", lambda: GripperSession(self.gripper))
        self._loop = StepLoop("the gripper", 2_000_000, self._step)
        self._loop.start()

    def stop(self) -> None:
        """Close the port and end the thread."""
        self._loop.stop()
        self._board.close()

    def _step(self) -> None:
        self._board.poll()
        self.gripper.carry_out()
