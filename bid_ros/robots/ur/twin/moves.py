"""Motion commands that go to a target (movej, movel), and those that give the tool's velocity (speedl, stopl)."""

import math
from abc import ABC, abstractmethod
from typing import Final

import numpy as np

from bid_ros.core.checks import check_positive
from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.kinematics import BARE, ToolKinematics
from bid_ros.robots.ur.pose import Array, Numbers, Vector, product, rotation_of, transpose, vector_of
from bid_ros.robots.ur.twin.joint_motions import (
    JOINTS,
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

_STEP_SLACK = 1.001  # of the joints' limits, for rounding and for the mean over a cycle of a path that bends
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


class _Move(ABC):
    """Come to rest, then follow a path from there on a trapezoidal profile."""

    def __init__(self, what: str, speed: float, acc: float, brake: float) -> None:
        check_positive(what, "speed", speed, ArmError)
        check_positive(what, "acceleration", acc, ArmError)
        self._brake = StopJ(brake)
        self._profile: TrapezoidProfile | None = None
        self._t = 0.0
        self.done = False

    def step(self, q: Array, qd: Array, dt: float) -> tuple[Array, Array]:
        """See :meth:`Motion.step`; raises ArmError if the path cannot be followed."""
        if self._profile is None:
            if qd.any():
                return self._brake.step(q, qd, dt)
            self._profile = self._plan(q)
        self.done = self._t >= self._profile.duration
        self._t += dt
        after = self._at(self._profile.share(self._t), q)
        speed = (after - q) / dt
        self._check(qd, speed, dt)
        return after, speed

    @abstractmethod
    def _plan(self, q: Array) -> TrapezoidProfile:
        """Lay the path from the angles ``q`` at rest."""

    @abstractmethod
    def _at(self, share: float, q: Array) -> Array:
        """Return the angles at a part of the path; ``q`` are those of the cycle before."""

    @abstractmethod
    def _check(self, before: Array, speed: Array, dt: float) -> None:
        """Raise ArmError if the joints cannot do this cycle."""


class MoveJ(_Move):
    """movej: straight in joint space, all joints in step, the one with the longest way leading.

    A real controller wants the arm at rest before it. Here residual speed is first taken away with ``acc``.

    Args:
        target: ``(6,)`` rad.
        speed, acc: of the leading joint, rad/s and rad/s^2; no more than the joints' limits are used.

    Raises:
        ArmError: if the target is outside the limits, or speed or acceleration is not positive.
    """

    def __init__(self, target: Numbers, speed: float = 1.05, acc: float = 1.4) -> None:
        super().__init__("movej", speed, acc, acc)
        six = six_finite("movej target", target)
        check_joints("movej target", six)
        self._target = np.array(six)
        self._start = self._target
        self._speed, self._acc = min(speed, MAX_SPEED), min(acc, MAX_ACCELERATION)

    def _plan(self, q: Array) -> TrapezoidProfile:
        self._start = q
        return TrapezoidProfile(float(np.abs(self._target - q).max()), self._speed, self._acc)

    def _at(self, share: float, q: Array) -> Array:
        # Exact at both ends.
        return self._target if share >= 1.0 else self._start + share * (self._target - self._start)

    def _check(self, before: Array, speed: Array, dt: float) -> None:
        """Nothing: the profile keeps the limits."""


class MoveL(_Move):
    """movel: the tool goes straight, and its orientation turns about one axis (slerp) in step with the way.

    The longer of the way in m and the turn in rad follows the profile, so ``speed`` bounds the turn in rad/s too.
    A real controller wants the arm at rest before it. Here residual speed is first taken away in joint space.

    Args:
        target: pose ``(6,)`` of the tool.
        speed, acc: of the tool, m/s and m/s^2.
        tool: kinematics of the arm and its tool.

    Raises:
        ArmError: if a value is not finite or not positive. A path out of reach, or one that the joints cannot follow
            at this speed, as near a singularity, raises in :meth:`step`.
    """

    def __init__(self, target: Numbers, speed: float = 0.25, acc: float = 1.2, tool: ToolKinematics = BARE) -> None:
        super().__init__("movel", speed, acc, MAX_ACCELERATION)
        self._target = six_finite("movel target", target)
        self._speed, self._acc = speed, acc
        self._tool = tool
        self._start = self._target
        self._turn: Vector = (0.0, 0.0, 0.0)

    def _plan(self, q: Array) -> TrapezoidProfile:
        self._start = self._tool.forward(q).tolist()
        back = transpose(rotation_of(*self._start[3:]))
        self._turn = vector_of(product(rotation_of(*self._target[3:]), back))
        length = max(math.dist(self._start[:3], self._target[:3]), math.hypot(*self._turn))
        return TrapezoidProfile(length, self._speed, self._acc)

    def _at(self, share: float, q: Array) -> Array:
        place = [a + share * (b - a) for a, b in zip(self._start[:3], self._target[:3], strict=True)]
        turn = rotation_of(*(share * angle for angle in self._turn))
        pose = [*place, *vector_of(product(turn, rotation_of(*self._start[3:])))]
        return self._tool.inverse(pose, q)

    def _check(self, before: Array, speed: Array, dt: float) -> None:
        change = speed - before
        for what, values, limit, unit in (
            ("speed", speed, MAX_SPEED, "rad/s"),
            ("acceleration", change / dt, MAX_ACCELERATION, "rad/s^2"),
        ):
            joint = int(np.argmax(np.abs(values)))
            if abs(values[joint]) > limit * _STEP_SLACK:
                raise ArmError(
                    f"movel: {JOINTS[joint]} would need {abs(values[joint]):.1f} {unit} of {what} to keep the tool "
                    f"on its line, as near a singularity; valid is up to {limit:.2f}"
                )


class SpeedL:
    """speedl: bring the tool to a velocity along a straight line of velocities and keep it.

    Where a singularity makes a joint too fast or too sudden, the joints are held to their limits and the tool leaves
    its velocity; a real controller reports a protective stop there.

    Args:
        xd: ``(6,)`` m/s and rad/s, base frame.
        acc: of the tool, m/s^2, and for the turn, as URScript does it without ``aRot``, in rad/s^2.
        tool: kinematics of the arm and its tool.

    Raises:
        ArmError: if a value is not finite or not positive.
    """

    def __init__(self, xd: Numbers, acc: float, tool: ToolKinematics = BARE) -> None:
        check_positive("speedl", "acceleration", acc, ArmError, "m/s^2")
        self._wanted = np.array(six_finite("speedl", xd))
        self._acc = acc
        self._tool = tool
        self._twist: Array | None = None  # asked of the tool in the last cycle; None before the first
        self.done = False

    def step(self, q: Array, qd: Array, dt: float) -> tuple[Array, Array]:
        """See :meth:`Motion.step`; raises ArmError at the end of a joint's range."""
        return moved(q, self._joint_speeds(q, qd, dt), dt)

    def _joint_speeds(self, q: Array, qd: Array, dt: float) -> list[float]:
        # In the middle of the cycle, so that a straight line does not drift off with the first order of dt.
        jacobian = self._tool.jacobian(q + qd * (dt / 2))
        before = jacobian @ qd if self._twist is None else self._twist
        self._twist = _tool_towards(before, self._wanted, self._acc * dt)
        solution = np.linalg.solve(jacobian @ jacobian.T + _DAMPING, self._twist)
        wanted = scaled((jacobian.T @ solution).tolist() if solution.any() else REST, MAX_SPEED)
        speed = towards(qd.tolist(), wanted, MAX_ACCELERATION * dt)
        self.done = self._twist is self._wanted and speed is wanted
        return speed


class StopL(SpeedL):
    """stopl: bring the tool to rest along its way, with ``deceleration`` in m/s^2 and rad/s^2.

    Args:
        deceleration: of the tool.
        tool: kinematics of the arm and its tool.

    Raises:
        ArmError: if the deceleration is not positive.
    """

    def __init__(self, deceleration: float, tool: ToolKinematics = BARE) -> None:
        check_positive("stopl", "deceleration", deceleration, ArmError, "m/s^2")
        super().__init__(REST, deceleration, tool)


def _tool_towards(now: Array, wanted: Array, change: float) -> Array:
    """Go straight towards a velocity, neither its linear nor its turning part by more than ``change``."""
    way = wanted - now
    longest = max(math.hypot(*way[:3]), math.hypot(*way[3:]))
    return wanted if longest <= change else now + way * (change / longest)
