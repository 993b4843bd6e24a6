"""Motion commands that end by themselves: to joint angles (movej), and the tool to rest (stopl)."""

import math
from typing import Final

import numpy as np

from bid_ros.core.checks import check_positive
from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.kinematics import ToolKinematics
from bid_ros.robots.ur.pose import Array, Numbers
from bid_ros.robots.ur.twin.joint_motions import (
    MAX_ACCELERATION,
    MAX_SPEED,
    REST,
    StopJ,
    check_joints,
    moved,
    scaled,
    six_finite,
    towards,
)

# Share of the square of a singular value, m or rad, below which a direction of the tool counts as lost. At the usual
# postures, whose smallest singular value is about 0.1, it costs a ten-thousandth of the speed.
_DAMPING: Final = 1e-6 * np.eye(6)


class TrapezoidProfile:
    """Way along a path over time from rest to rest: speed up, go on, slow down.

    Args:
        length: of the path, >= 0, in any unit.
        speed, acceleration: the most, in that unit and s.
    """

    def __init__(self, length: float, speed: float, acceleration: float) -> None:
        top = min(speed, math.sqrt(length * acceleration))
        self._length, self._top, self._acceleration = length, top, acceleration
        self._ramp = top / acceleration
        self.duration = length / top + self._ramp if top > 0 else 0.0

    def share(self, t: float) -> float:
        """Return which part of the path, 0 to 1, lies behind at ``t`` s after the start."""
        if t >= self.duration:
            return 1.0
        left = self.duration - t
        if t < self._ramp:
            way = self._acceleration * t * t / 2
        elif left < self._ramp:
            way = self._length - self._acceleration * left * left / 2
        else:
            way = self._top * (t - self._ramp / 2)
        return way / self._length


class MoveJ:
    """movej: straight in joint space, all joints in step, the one with the longest way leading.

    A real controller wants the arm at rest before it. Here residual speed is first taken away with ``acc``.

    Args:
        target: ``(6,)`` rad.
        speed, acc: of the leading joint, rad/s and rad/s^2; no more than the joints' limits are used.

    Raises:
        ArmError: if the target is outside the limits, or speed or acceleration is not positive.
    """

    def __init__(self, target: Numbers, speed: float = 1.05, acc: float = 1.4) -> None:
        check_positive("movej", "speed", speed, ArmError)
        check_positive("movej", "acceleration", acc, ArmError)
        six = six_finite("movej target", target)
        check_joints("movej target", six)
        self._target = self._start = np.array(six)
        self._speed, self._acc = min(speed, MAX_SPEED), min(acc, MAX_ACCELERATION)
        self._brake = StopJ(acc)
        self._profile: TrapezoidProfile | None = None
        self._t = 0.0
        self.done = False

    def step(self, q: Array, qd: Array, dt: float) -> tuple[Array, Array]:
        """See :meth:`RunningMotion.step`; never raises: the profile keeps the limits."""
        if self._profile is None:
            if qd.any():
                return self._brake.step(q, qd, dt)
            self._start = q
            self._profile = TrapezoidProfile(float(np.abs(self._target - q).max()), self._speed, self._acc)
        self.done = self._t >= self._profile.duration
        self._t += dt
        share = self._profile.share(self._t)
        # Exact at both ends.
        after = self._target if share >= 1.0 else self._start + share * (self._target - self._start)
        return after, (after - q) / dt


class StopL:
    """stopl: bring the tool to rest along its way, on a straight line of velocities.

    Where a singularity makes a joint too fast or too sudden, the joints are held to their limits and the tool leaves
    its way; a real controller reports a protective stop there.

    Args:
        deceleration: of the tool, m/s^2 and, for the turn, rad/s^2.
        tool: kinematics of the arm and its tool.

    Raises:
        ArmError: if the deceleration is not positive.
    """

    def __init__(self, deceleration: float, tool: ToolKinematics) -> None:
        check_positive("stopl", "deceleration", deceleration, ArmError, "m/s^2")
        self._deceleration, self._tool = deceleration, tool
        self._wanted: Array = np.zeros(6)
        self._twist: Array | None = None  # asked of the tool in the last cycle; None before the first
        self.done = False

    def step(self, q: Array, qd: Array, dt: float) -> tuple[Array, Array]:
        """See :meth:`RunningMotion.step`; raises ArmError at the end of a joint's range."""
        # In the middle of the cycle, so that a straight line does not drift off with the first order of dt.
        jacobian = self._tool.jacobian(q + qd * (dt / 2))
        before = jacobian @ qd if self._twist is None else self._twist
        self._twist = self._slower(before, self._deceleration * dt)
        solution = np.linalg.solve(jacobian @ jacobian.T + _DAMPING, self._twist)
        wanted = scaled((jacobian.T @ solution).tolist() if solution.any() else REST, MAX_SPEED)
        speed = towards(qd.tolist(), wanted, MAX_ACCELERATION * dt)
        self.done = self._twist is self._wanted and speed is wanted
        return moved(q, speed, dt)

    def _slower(self, now: Array, change: float) -> Array:
        """Go straight towards rest, neither the linear nor the turning part by more than ``change``."""
        way = self._wanted - now
        longest = max(math.hypot(*way[:3]), math.hypot(*way[3:]))
        return self._wanted if longest <= change else now + way * (change / longest)
