"""The hardware under the controllers: position servos that follow with a lag, and a gripper."""

from typing import Final, Protocol

import numpy as np

from bid_ros.core.rotation import Array

FREQUENCY: Final = 60.0  # rad/s of the servo, critically damped: it lags by 2 / FREQUENCY s


class ArmPlant(Protocol):
    """The arm itself, see :class:`bid_ros.robots.ur.twin.plant.Plant`."""

    @property
    def joint_positions(self) -> Array:
        """Actual joint angles ``(n,)`` rad."""

    @property
    def joint_velocities(self) -> Array:
        """Actual joint speeds ``(n,)`` rad/s."""

    def step(self, target_q: Array, target_qd: Array, dt: float) -> None:
        """Pass ``dt`` s, at whose end the arm should be at ``target_q`` with ``target_qd``."""


class TwinFingers(Protocol):
    """A gripper, see :class:`bid_ros.robots.robotiq.model.FingerDrive`."""

    @property
    def opening(self) -> float:
        """Distance between the pads, m."""

    @property
    def status(self) -> int:
        """0 while they move, 3 at the target, otherwise blocked before it."""

    def command(self, opening: float, speed: float, force: float) -> None:
        """Go to ``opening`` m at ``speed`` m/s and press with up to ``force`` N."""


class PositionServo:
    """Joints that take positions, as the hardware interface of most arms does.

    Args:
        plant: what it moves.
    """

    def __init__(self, plant: ArmPlant) -> None:
        self._plant = plant
        self._target, self._rate = plant.joint_positions.copy(), np.zeros(len(plant.joint_positions))
        self.command = self._target.copy()
        """``(n,)`` rad, the command interface: what a controller has written last."""

    @property
    def joints(self) -> Array:
        """Measured joints ``(n,)`` rad."""
        return self._plant.joint_positions

    @property
    def speeds(self) -> Array:
        """Measured speeds ``(n,)`` rad/s."""
        return self._plant.joint_velocities

    def step(self, dt: float) -> None:
        """Pass ``dt`` s."""
        pull = FREQUENCY**2 * (self.command - self._target) - 2 * FREQUENCY * self._rate
        self._rate = self._rate + dt * pull
        self._target = self._target + dt * self._rate
        self._plant.step(self._target, self._rate, dt)
