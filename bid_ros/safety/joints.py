"""Checks the joints of many motions at once: position, speed, acceleration; and the way to the measured joints."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.control.arm_model import JointLimits
from bid_ros.core.limits import Limits
from bid_ros.core.rotation import Array
from bid_ros.safety.bound import Bound, all_kept
from bid_ros.safety.verdict import Verdict, refused


class JointEnvelope:
    """Checks joint positions against the limits of robot and task, the smaller of both.

    A refusal names the joint, its value and its limit: the one that is furthest over its limit, as a share of it.
    Derivatives are finite differences at the chunk's own ``dt``, as in :class:`bid_ros.safety.envelope.Envelope`.

    Args:
        robot: limits of the robot.
        limits: of the task.
        commanded: the task commands joints. False: they follow poses, and the robot's own limits count alone.
    """

    def __init__(self, robot: JointLimits, limits: Limits, commanded: bool = True) -> None:
        kept = robot.within(limits) if commanded else robot
        self._names, self._max_jump = kept.names, limits.max_joint_jump
        self._low, self._high = np.array(kept.low), np.array(kept.high)
        self._speed, self._acceleration = np.array(kept.speed), np.array(kept.acceleration)

    def bounds(self, joints: Array, dt_s: float, first: int = 0) -> Iterator[Bound]:
        """Yield the bounds of joints: position, speed and acceleration.

        Args:
            joints: ``(N, n, joints)`` rad, the rows of each motion that can still be executed.
            dt_s: s between two rows.
            first: number of the first of these rows in its chunk, for the sentence.
        """
        outside = np.maximum(self._low - joints, joints - self._high)
        yield Bound(
            (outside <= 0).all(axis=(1, 2)), lambda number: self._outside(joints[number], outside[number], first)
        )
        rates = np.diff(joints, axis=1) / dt_s
        yield self._at_most("joint_speed", "turns at", rates, self._speed, "rad/s", first)
        changes = np.diff(rates, axis=1) / dt_s
        yield self._at_most("joint_acceleration", "accelerates at", changes, self._acceleration, "rad/s^2", first)

    def keeps(self, joints: Array, dt_s: float) -> NDArray[np.bool_]:
        """Return which of the motions ``(N, n, joints)`` keep every bound, ``(N,)``."""
        return all_kept(len(joints), self.bounds(joints, dt_s))

    def jump(self, action: Array, measured: ArrayLike | None) -> Iterator[Verdict]:
        """Yield a refusal if the action for now ``(joints,)`` is far from the measured joints, or these are unknown."""
        if measured is None:
            yield refused("measurement", "the joints are not known, so the jump to the chunk cannot be judged")
            return
        here = np.asarray(measured, dtype=np.float64)
        if here.shape != action.shape:
            yield refused(
                "measurement",
                f"{here.size} joints are measured; the task commands {action.size}",
                here.size,
                action.size,
            )
            return
        with np.errstate(over="ignore"):
            away = np.abs(action - here)
        number = int(np.argmax(np.where(np.isnan(away), np.inf, away)))
        if not away[number] <= self._max_jump:
            what = f"{self._name(number)} is {away[number]:.3f} rad from its action for now"
            yield refused("joint_jump", f"{what}; the limit is {self._max_jump:.3f} rad", away[number], self._max_jump)

    def _outside(self, joints: Array, outside: Array, first: int) -> Verdict:
        """Return the refusal of a motion ``(n, joints)`` rad, by how far each joint is outside its limits."""
        row, joint = np.unravel_index(int(outside.argmax()), outside.shape)
        value, low, high = float(joints[row, joint]), self._low[joint], self._high[joint]
        what = f"{self._name(int(joint))} is {value:.3f} rad in action {first + row}"
        reason = f"{what}; the limits are {low:.3f} to {high:.3f} rad"
        return refused("joint_position", reason, value, low if value < low else high, first + int(row))

    def _at_most(self, rule: str, verb: str, rates: Array, most: Array, unit: str, first: int) -> Bound:
        """Return the bound of rates ``(N, n, joints)``."""
        shares = np.abs(rates) / most

        def refusal(number: int) -> Verdict:
            row, joint = np.unravel_index(int(shares[number].argmax()), shares.shape[1:])
            value, limit = float(abs(rates[number, row, joint])), float(most[joint])
            what = f"{self._name(int(joint))} {verb} {value:.3f} {unit} from action {first + row} on"
            return refused(rule, f"{what}; the limit is {limit:.3f} {unit}", value, limit, first + int(row))

        return Bound(np.asarray((shares <= 1).all(axis=(1, 2))), refusal)

    def _name(self, number: int) -> str:
        return f"joint {number + 1} ({self._names[number]})"
