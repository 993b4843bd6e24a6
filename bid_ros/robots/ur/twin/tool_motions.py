"""Motion commands that give the tool's velocity: speedl and stopl."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from bid_ros.core.checks import check_positive
from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.kinematics import UR5E, Kinematics
from bid_ros.robots.ur.pose import Array, Numbers
from bid_ros.robots.ur.twin.joint_motions import (
    LIMITS,
    REST,
    Countdown,
    JointLimits,
    moved,
    scaled,
    six_finite,
    towards,
)

# Share of the square of a singular value, m or rad, below which a direction of the tool counts as lost. At the usual
# postures, whose smallest singular value is about 0.1, it costs a ten-thousandth of the speed.
_DAMPING: Final = 1e-6 * np.eye(6)


class SpeedL:
    """speedl: bring the tool to a velocity along a straight line of velocities and keep it.

    Where a singularity makes a joint too fast or too sudden, the joints are held to their limits and the tool leaves
    its velocity; a real controller reports a protective stop there.

    Args:
        xd: ``(6,)`` m/s and rad/s, base frame.
        acc: of the tool, m/s^2, and for the turn, as URScript does it without ``aRot``, in rad/s^2.
        time: s after which the command is done, whatever was reached; None: once the velocity is reached.
        kinematics, tcp: of the arm and its tool.
        limits: of the joints.

    Raises:
        ArmError: if a value is not finite or not positive.
    """

    def __init__(
        self,
        xd: Numbers,
        acc: float,
        time: float | None = None,
        kinematics: Kinematics = UR5E,
        tcp: Numbers | None = None,
        limits: JointLimits = LIMITS,
    ) -> None:
        check_positive("speedl", "acceleration", acc, ArmError, "m/s^2")
        self._wanted = np.array(six_finite("speedl", xd))
        self._acc, self._limits = acc, limits
        self._kinematics, self._tcp = kinematics, tcp
        self._clock = Countdown("speedl", time)
        self._twist: Array | None = None  # asked of the tool in the last cycle; None before the first
        self._reached = False

    @property
    def done(self) -> bool:
        """Whether the time is over, or without a time the velocity is reached."""
        return self._clock.over(self._reached)

    def step(self, q: Array, qd: Array, dt: float) -> tuple[Array, Array]:
        """See :meth:`Motion.step`; raises ArmError at the end of a joint's range."""
        self._clock.tick(dt)
        return moved(q, self._joint_speeds(q, qd, dt), dt, self._limits)

    def _joint_speeds(self, q: Array, qd: Array, dt: float) -> list[float]:
        # In the middle of the cycle, so that a straight line does not drift off with the first order of dt.
        jacobian = self._kinematics.jacobian(q + qd * (dt / 2), self._tcp)
        before = jacobian @ qd if self._twist is None else self._twist
        self._twist = _tool_towards(before, self._wanted, self._acc * dt)
        solution = np.linalg.solve(jacobian @ jacobian.T + _DAMPING, self._twist)
        wanted = scaled((jacobian.T @ solution).tolist() if solution.any() else REST, self._limits.speed)
        speed = towards(qd.tolist(), wanted, self._limits.acceleration * dt)
        self._reached = self._twist is self._wanted and speed is wanted
        return speed


class StopL(SpeedL):
    """stopl: bring the tool to rest along its way, with ``deceleration`` in m/s^2 and rad/s^2.

    Args:
        deceleration: of the tool.
        kinematics, tcp: of the arm and its tool.
        limits: of the joints.

    Raises:
        ArmError: if the deceleration is not positive.
    """

    def __init__(
        self,
        deceleration: float,
        kinematics: Kinematics = UR5E,
        tcp: Numbers | None = None,
        limits: JointLimits = LIMITS,
    ) -> None:
        check_positive("stopl", "deceleration", deceleration, ArmError, "m/s^2")
        super().__init__(REST, deceleration, None, kinematics, tcp, limits)


def _tool_towards(now: Array, wanted: Array, change: float) -> Array:
    """Go straight towards a velocity, neither its linear nor its turning part by more than ``change``."""
    way = wanted - now
    longest = max(math.hypot(*way[:3]), math.hypot(*way[3:]))
    return wanted if longest <= change else now + way * (change / longest)
