"""Motion commands that go to a target and end there: movej and movel."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from bid_ros.core.checks import check_positive
from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.kinematics import UR5E, Kinematics
from bid_ros.robots.ur.pose import Array, Numbers, Vector, product, rotation_of, transpose, vector_of
from bid_ros.robots.ur.twin.joint_motions import JOINTS, LIMITS, JointLimits, StopJ, six_finite

_STEP_SLACK = 1.001  # of the joints' limits, for rounding and for the mean over a cycle of a path that bends


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

    def __init__(self, what: str, speed: float, acc: float, brake: float, limits: JointLimits) -> None:
        check_positive(what, "speed", speed, ArmError)
        check_positive(what, "acceleration", acc, ArmError)
        self._brake = StopJ(brake, limits)
        self._profile: TrapezoidProfile | None = None
        self._t = 0.0
        self._done = False

    @property
    def done(self) -> bool:
        """Whether the arm is at the target and at rest."""
        return self._done

    def step(self, q: Array, qd: Array, dt: float) -> tuple[Array, Array]:
        """See :meth:`Motion.step`; raises ArmError if the path cannot be followed."""
        if self._profile is None:
            if qd.any():
                return self._brake.step(q, qd, dt)
            self._profile = self._plan(q)
        self._done = self._t >= self._profile.duration
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
        limits: of the joints.

    Raises:
        ArmError: if the target is outside the limits, or speed or acceleration is not positive.
    """

    def __init__(self, target: Numbers, speed: float = 1.05, acc: float = 1.4, limits: JointLimits = LIMITS) -> None:
        super().__init__("movej", speed, acc, acc, limits)
        six = six_finite("movej target", target)
        limits.check("movej target", six)
        self._target = np.array(six)
        self._start = self._target
        self._speed, self._acc = min(speed, limits.speed), min(acc, limits.acceleration)

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
        kinematics, tcp: of the arm and its tool.
        limits: of the joints.

    Raises:
        ArmError: if a value is not finite or not positive. A path out of reach, or one that the joints cannot follow
            at this speed, as near a singularity, raises in :meth:`step`.
    """

    def __init__(
        self,
        target: Numbers,
        speed: float = 0.25,
        acc: float = 1.2,
        kinematics: Kinematics = UR5E,
        tcp: Numbers | None = None,
        limits: JointLimits = LIMITS,
    ) -> None:
        super().__init__("movel", speed, acc, limits.acceleration, limits)
        self._target = six_finite("movel target", target)
        self._speed, self._acc, self._limits = speed, acc, limits
        self._kinematics, self._tcp = kinematics, tcp
        self._start = self._target
        self._turn: Vector = (0.0, 0.0, 0.0)

    def _plan(self, q: Array) -> TrapezoidProfile:
        self._start = self._kinematics.forward(q, self._tcp).tolist()
        back = transpose(rotation_of(*self._start[3:]))
        self._turn = vector_of(product(rotation_of(*self._target[3:]), back))
        length = max(math.dist(self._start[:3], self._target[:3]), math.hypot(*self._turn))
        return TrapezoidProfile(length, self._speed, self._acc)

    def _at(self, share: float, q: Array) -> Array:
        place = [a + share * (b - a) for a, b in zip(self._start[:3], self._target[:3], strict=True)]
        turn = rotation_of(*(share * angle for angle in self._turn))
        pose = [*place, *vector_of(product(turn, rotation_of(*self._start[3:])))]
        return self._kinematics.inverse(pose, q, self._tcp)

    def _check(self, before: Array, speed: Array, dt: float) -> None:
        change = speed - before
        for what, values, limit, unit in (
            ("speed", speed, self._limits.speed, "rad/s"),
            ("acceleration", change / dt, self._limits.acceleration, "rad/s^2"),
        ):
            joint = int(np.argmax(np.abs(values)))
            if abs(values[joint]) > limit * _STEP_SLACK:
                raise ArmError(
                    f"movel: {JOINTS[joint]} would need {abs(values[joint]):.1f} {unit} of {what} to keep the tool "
                    f"on its line, as near a singularity; valid is up to {limit:.2f}"
                )
