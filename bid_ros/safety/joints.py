"""Checks the joints of a whole chunk: position, speed, acceleration, and the way to the measured joints."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.control.arm_model import JointLimits
from bid_ros.core.limits import Limits
from bid_ros.core.rotation import Array
from bid_ros.safety.verdict import Verdict, refused


class JointEnvelope:
    """Checks joint positions against the limits of robot and task, the smaller of both.

    A refusal names the joint, its value and its limit: the one that is furthest over its limit, as a share of it.
    Derivatives are finite differences at the chunk's own ``dt``, as in :class:`bid_ros.safety.envelope.Envelope`.

    Args:
        robot: limits of the robot.
        limits: of the task.
    """

    def __init__(self, robot: JointLimits, limits: Limits) -> None:
        kept = robot.within(limits)
        self._names, self._max_jump = kept.names, limits.max_joint_jump
        self._low, self._high = np.array(kept.low), np.array(kept.high)
        self._speed, self._acceleration = np.array(kept.speed), np.array(kept.acceleration)

    def refusals(self, joints: Array, dt_s: float, first: int) -> Iterator[Verdict]:
        """Yield a refusal for each kind of limit that is broken.

        Args:
            joints: ``(n, joints)`` rad, the rows that can still be executed.
            dt_s: s between two rows.
            first: number of the first of these rows in its chunk, for the sentence.
        """
        yield from self._positions(joints, first)
        rates = np.diff(joints, axis=0) / dt_s
        yield from self._at_most("joint_speed", "turns at", rates, self._speed, "rad/s", first)
        changes = np.diff(rates, axis=0) / dt_s
        yield from self._at_most("joint_acceleration", "accelerates at", changes, self._acceleration, "rad/s^2", first)

    def jump(self, action: Array, measured: ArrayLike | None) -> Iterator[Verdict]:
        """Yield a refusal if the action for now ``(joints,)`` is far from the measured joints, or these are unknown."""
        if measured is None:
            yield refused("measurement", "the joints are not known, so the jump to the chunk is not either")
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

    def keeps(self, joints: Array, dt_s: float) -> NDArray[np.bool_]:
        """Return for each of the motions ``(N, n, joints)`` whether it keeps position, speed and acceleration."""
        rates = np.diff(joints, axis=1) / dt_s
        changes = np.diff(rates, axis=1) / dt_s
        inside = ((self._low <= joints) & (joints <= self._high)).all(axis=(1, 2))
        slow = (np.abs(rates) <= self._speed).all(axis=(1, 2)) & (np.abs(changes) <= self._acceleration).all(
            axis=(1, 2)
        )
        kept: NDArray[np.bool_] = np.logical_and(inside, slow)
        return kept

    def _positions(self, joints: Array, first: int) -> Iterator[Verdict]:
        outside = np.maximum(self._low - joints, joints - self._high)
        row, joint = np.unravel_index(int(outside.argmax()), outside.shape)
        if not outside[row, joint] <= 0:
            value, low, high = float(joints[row, joint]), self._low[joint], self._high[joint]
            what = f"{self._name(int(joint))} is {value:.3f} rad in action {first + row}"
            reason = f"{what}; the limits are {low:.3f} to {high:.3f} rad"
            yield refused("joint_position", reason, value, low if value < low else high)

    def _at_most(self, trigger: str, verb: str, rates: Array, most: Array, unit: str, first: int) -> Iterator[Verdict]:
        if not rates.size:
            return
        shares = np.abs(rates) / most
        row, joint = np.unravel_index(int(shares.argmax()), shares.shape)
        if not shares[row, joint] <= 1:
            value, limit = float(abs(rates[row, joint])), float(most[joint])
            what = f"{self._name(int(joint))} {verb} {value:.3f} {unit} from action {first + row} on"
            yield refused(trigger, f"{what}; the limit is {limit:.3f} {unit}", value, limit)

    def _name(self, number: int) -> str:
        return f"joint {number + 1} ({self._names[number]})"
