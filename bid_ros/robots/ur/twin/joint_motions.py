"""The seam of a running motion command, and the commands in joint space: servo, stop and hold.

Every motion takes over from whatever moved the arm before it: it begins at the commanded angles and speeds it is
given, and no joint's commanded speed changes by more than ``MAX_ACCELERATION * dt`` in a cycle. A commanded speed
is the mean over the cycle, so that ``next q = q + next qd * dt`` holds exactly.

Not modelled: blends between moves, jerk limits, path corrections and force modes.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Final, Protocol

import numpy as np

from bid_ros.core.checks import check_positive, check_range
from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.kinematics import JOINT_LIMIT
from bid_ros.robots.ur.pose import Array, Numbers, floats

JOINTS: Final = ("base", "shoulder", "elbow", "wrist 1", "wrist 2", "wrist 3")
LOOKAHEAD: Final = (0.03, 0.2)  # s, what servoj takes
GAIN: Final = (100.0, 2000.0)
MAX_SPEED: Final = math.pi  # rad/s; the UR5e's joints turn at most 180 degrees a second
MAX_ACCELERATION: Final = 40.0  # rad/s^2, the most that URScript's moves accept


class RunningMotion(Protocol):
    """One running command."""

    @property
    def done(self) -> bool:
        """Whether the command has come to its end; a done motion may still be stepped and then goes on as it ended."""

    def step(self, q: Array, qd: Array, dt: float) -> tuple[Array, Array]:
        """Return the commanded angles and speeds after the next cycle.

        Args:
            q, qd: commanded now, ``(6,)`` rad and rad/s.
            dt: length of the cycle, s.

        Raises:
            ArmError: if the motion cannot go on. The arm is to be stopped from ``q`` and ``qd`` with :class:`StopJ`,
                and a real controller reports a protective stop.
        """


class ServoJ:
    """servoj: follow a target that is given anew many times a second; the last one is kept until the program ends it.

    The documentation says that ``gain`` is the proportional term from the current position to the target, and that
    ``lookahead`` projects the current position forward in time with the current velocity. Taken literally that is

        acceleration = gain * (target - (q + lookahead * qd)),

    a second-order follower of frequency ``sqrt(gain)`` and damping ``lookahead * sqrt(gain) / 2`` that lags a moving
    target by ``lookahead``: a high gain with a short lookahead overshoots, as the documentation warns. It is solved
    implicitly, hence stable at every cycle time. Each joint is then held to the limits of acceleration and speed.
    Not modelled: what the real controller does beyond that sentence, which is not published; the time ``t`` for which
    the call blocks; the protective stop of a target that jumps.

    Args:
        target_q: ``(6,)`` rad.
        lookahead: 0.03 to 0.2 s.
        gain: 100 to 2000, here in 1/s^2.

    Raises:
        ArmError: if a value is outside its range.
    """

    done: Final = False

    def __init__(self, target_q: Numbers, lookahead: float = 0.1, gain: float = 300.0) -> None:
        check_range("servoj", "lookahead", lookahead, *LOOKAHEAD, ArmError, "s")
        check_range("servoj", "gain", gain, *GAIN, ArmError)
        self._target = six_finite("servoj target", target_q)
        check_joints("servoj target", self._target)
        self._lookahead, self._gain = lookahead, gain

    def step(self, q: Array, qd: Array, dt: float) -> tuple[Array, Array]:
        """See :meth:`RunningMotion.step`; never raises."""
        pull = self._gain * dt
        resistance = 1.0 + pull * (self._lookahead + dt)
        change, top = MAX_ACCELERATION * dt, MAX_SPEED
        position, speed = [], []
        for target, x, v in zip(self._target, q.tolist(), qd.tolist(), strict=True):
            wanted = (v + pull * (target - x)) / resistance
            wanted = max(v - change, min(v + change, wanted))
            wanted = max(-top, min(top, wanted))
            speed.append(wanted)
            position.append(x + wanted * dt)
        return np.array(position), np.array(speed)


class StopJ:
    """stopj: bring the joints to rest, the fastest one with ``deceleration`` in rad/s^2.

    Raises:
        ArmError: if the deceleration is not positive.
    """

    def __init__(self, deceleration: float) -> None:
        check_positive("stopj", "deceleration", deceleration, ArmError, "rad/s^2")
        self._deceleration = min(deceleration, MAX_ACCELERATION)
        self.done = False

    def step(self, q: Array, qd: Array, dt: float) -> tuple[Array, Array]:
        """See :meth:`RunningMotion.step`; never raises."""
        speed = towards(qd.tolist(), REST, self._deceleration * dt)
        self.done = speed == REST
        after = np.array(speed)
        return q + after * dt, after


Hold: Final = partial(StopJ, MAX_ACCELERATION)
"""No command: the arm stays where it is, and is brought to rest at the joints' limit if it moves. Nobody waits."""

REST: Final = [0.0] * 6


def six_finite(what: str, values: Numbers) -> list[float]:
    """Return six finite values as floats; ArmError with ``what`` in it if they are something else."""
    six = floats(values)
    if len(six) != 6 or not all(map(math.isfinite, six)):
        raise ArmError(f"{what}: the values are {six}; valid are six finite numbers")
    return six


def scaled(values: list[float], top: float) -> list[float]:
    """Scale all values alike so that none exceeds ``top``."""
    largest = max(map(abs, values))
    return values if largest <= top else [value * (top / largest) for value in values]


def towards(now: list[float], wanted: list[float], change: float) -> list[float]:
    """Go from ``now`` straight towards ``wanted``, the value with the longest way by at most ``change``."""
    way = max(abs(a - b) for a, b in zip(wanted, now, strict=True))
    if way <= change:
        return wanted
    share = change / way
    return [b + share * (a - b) for a, b in zip(wanted, now, strict=True)]


def moved(q: Array, speed: list[float], dt: float) -> tuple[Array, Array]:
    """Pass one cycle at ``speed`` and return angles and speeds; ArmError if that leaves the range of a joint."""
    after = [x + v * dt for x, v in zip(q.tolist(), speed, strict=True)]
    check_joints("joint position limit", after)
    return np.array(after), np.array(speed)


def check_joints(what: str, q: Sequence[float]) -> None:
    """Raise :class:`ArmError` unless the six angles rad are finite and in the joints' range; ``what`` names them."""
    for joint, angle in zip(JOINTS, q, strict=True):
        check_range(what, joint, angle, -JOINT_LIMIT, JOINT_LIMIT, ArmError, "rad")
