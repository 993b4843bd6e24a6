"""The reflexes of an FR3: what its motions and commands must keep to, as Franka Robotics publishes it.

Limits: https://frankarobotics.github.io/docs/robot_specifications.html. Numbers of the reflexes: the order of the
errors in libfranka's ``franka::Errors``, which the state sends as 41 flags.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import IntEnum
from operator import sub
from typing import Final, TypeAlias

import numpy as np
import pinocchio
from franky_sim.franka_robot_protocol import StateMotionGeneratorMode, UDPCommand
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]

FLAGS: Final = 41
CYCLE_S: Final = 0.001
JOINT_SPEED: Final = (2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26)  # rad/s
JOINT_ACCELERATION: Final = 10.0  # rad/s^2
JOINT_JERK: Final = 5000.0  # rad/s^3
LOWEST: Final = (-2.9007, -1.8361, -2.9007, -3.0770, -2.8763, 0.4398, -3.0508)  # rad
HIGHEST: Final = (2.9007, 1.8361, 2.9007, -0.1169, 2.8763, 4.6216, 3.0508)
TORQUE_STEP: Final = 1.0  # Nm a cycle, of 1000 Nm/s
# Of the tool: displacement in m and rotation in rad, per s, s^2, s^3.
TOOL_SPEED: Final = (3.0, 2.5)
TOOL_ACCELERATION: Final = (9.0, 17.0)
TOOL_JERK: Final = (4500.0, 8500.0)
SETTLING: Final = 20  # commands after a gap in which a client's filter, which knows no gap, comes back to its path
SLACK: Final = 1e-9  # share of a limit that rounding may take


class Reflex(IntEnum):
    """Reasons of a reflex, by the number of their flag."""

    JOINT_VELOCITY = 3
    TOOL_VELOCITY = 4
    PATH_JOINT_POSITION = 12
    PATH_JOINT_VELOCITY = 13
    PATH_JOINT_ACCELERATION = 14
    PATH_JOINT_JERK = 15
    PATH_TOOL_VELOCITY = 18
    PATH_TOOL_ACCELERATION = 19
    PATH_TOOL_JERK = 20
    COMMUNICATION = 25
    TORQUE_STEP = 32

    @property
    def flags(self) -> tuple[bool, ...]:
        """The 41 flags of the state with this one set."""
        return tuple(number == self for number in range(FLAGS))


# How near something is to a limit, of which 1 is the share, and the reflex beyond it.
Shares: TypeAlias = Sequence[tuple[float, Reflex]]
_JOINTS: Final = (Reflex.PATH_JOINT_VELOCITY, Reflex.PATH_JOINT_ACCELERATION, Reflex.PATH_JOINT_JERK)
_TOOL: Final = (Reflex.PATH_TOOL_VELOCITY, Reflex.PATH_TOOL_ACCELERATION, Reflex.PATH_TOOL_JERK)
_OF_JOINTS: Final = (StateMotionGeneratorMode.kJointPosition, StateMotionGeneratorMode.kJointVelocity)


def share(values: Iterable[float], limits: Iterable[float]) -> float:
    """Return the largest value over its limit, without signs."""
    return max(abs(value) / limit for value, limit in zip(values, limits, strict=True))


def moving_shares(dq: Sequence[float], before: Sequence[float], tool: Sequence[float]) -> Shares:
    """Return how near the arm's motion is to its limits.

    A joint may turn the tool faster than a Cartesian path may, so only the tool's displacement is judged.

    Args:
        dq: measured speeds of the joints, rad/s.
        before, tool: measured places of the tool in the last cycle and now, m.
    """
    speed = math.dist(tool, before) / CYCLE_S
    return (share(dq, JOINT_SPEED), Reflex.JOINT_VELOCITY), (speed / TOOL_SPEED[0], Reflex.TOOL_VELOCITY)


def torque_share(before: Sequence[float], torque: Sequence[float]) -> float:
    """Return the change of the torques in Nm over what is allowed in a cycle."""
    return float(max(map(abs, map(sub, torque, before)))) / TORQUE_STEP


class CommandedPath:
    """Speed, acceleration and jerk of what a motion generator commands, by differences over a cycle.

    Args:
        generator: what is commanded.
        start: the command at rest with which the motion begins.
    """

    def __init__(self, generator: StateMotionGeneratorMode, start: UDPCommand) -> None:
        self._generator, self._last = generator, start
        self._before_gap, self._cycles, self._settling = start, 0, 0
        self._speed = np.zeros(7 if generator in _OF_JOINTS else 6)
        self._acceleration = np.zeros_like(self._speed)

    def judge(self, command: UDPCommand, cycles: int, steps: bool = True) -> Shares:
        """Take the next command; return how near it is to its limits.

        Args:
            command: the next one.
            cycles: since the one before.
            steps: whether accelerations and jerks are judged, too. If not, the speed across a gap is the mean one until
                the path has settled.
        """
        speed = self._speed_of(command, *((self._last, cycles) if steps else self._across_gap(cycles)))
        acceleration = (speed - self._speed) / (CYCLE_S * cycles)
        jerk = (acceleration - self._acceleration) / (CYCLE_S * cycles)
        self._last, self._speed, self._acceleration = command, speed, acceleration
        reasons = _JOINTS if self._generator in _OF_JOINTS else _TOOL
        found = list(zip(self._shares(speed, acceleration, jerk), reasons, strict=True))
        if not steps:
            del found[1:]
        if self._generator is StateMotionGeneratorMode.kJointPosition:
            found.append((0.0 if within(command.q_c) else math.inf, Reflex.PATH_JOINT_POSITION))
        return found

    def go_on(self) -> UDPCommand:
        """Return the command that a robot takes in place of a lost one: joints go on with the same acceleration."""
        if self._generator in _OF_JOINTS:
            self._speed = self._speed + self._acceleration * CYCLE_S
            joints = self._last.q_c + self._speed * CYCLE_S
            self._last = replace(self._last, q_c=tuple(joints.tolist()), dq_c=tuple(self._speed.tolist()))
        return self._last

    def _shares(self, *rates: Array) -> list[float]:
        if self._generator in _OF_JOINTS:
            limits = (np.array(JOINT_SPEED), np.full(7, JOINT_ACCELERATION), np.full(7, JOINT_JERK))
            return [float(np.abs(rate / limit).max()) for rate, limit in zip(rates, limits, strict=True)]
        limits_of_tool = (TOOL_SPEED, TOOL_ACCELERATION, TOOL_JERK)
        return [share(_norms(rate), limit) for rate, limit in zip(rates, limits_of_tool, strict=True)]

    def _across_gap(self, cycles: int) -> tuple[UDPCommand, int]:
        """Return the command against which the speed of the next one is judged, and the cycles since then."""
        if not self._settling:
            self._before_gap, self._cycles = self._last, 0
        self._cycles += cycles
        self._settling = SETTLING if cycles > 1 else max(0, self._settling - 1)
        return self._before_gap, self._cycles

    def _speed_of(self, command: UDPCommand, last: UDPCommand, cycles: int) -> Array:
        dt = CYCLE_S * cycles
        if self._generator is StateMotionGeneratorMode.kJointPosition:
            return np.asarray((np.array(command.q_c) - np.array(last.q_c)) / dt)
        if self._generator is StateMotionGeneratorMode.kJointVelocity:
            return np.array(command.dq_c)
        if self._generator is StateMotionGeneratorMode.kCartesianVelocity:
            return np.array(command.O_dP_EE_c)
        now, before = (np.reshape(pose.O_T_EE_c, (4, 4), order="F") for pose in (command, last))
        turn = pinocchio.log3(now[:3, :3] @ before[:3, :3].T)
        return np.concatenate([now[:3, 3] - before[:3, 3], turn]) / dt


def within(q: Sequence[float]) -> bool:
    """Whether seven joints in rad are within the limits of their positions."""
    return all(low < value < high for low, value, high in zip(LOWEST, q, HIGHEST, strict=True))


def _norms(twist: Sequence[float] | Array) -> tuple[float, float]:
    x, y, z, a, b, c = twist
    return (x * x + y * y + z * z) ** 0.5, (a * a + b * b + c * c) ** 0.5
