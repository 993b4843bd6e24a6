"""How a scripted operator moves the kitchen's arm: skill, pauses, tremor. Stands in for the people of the public data.

The hand has a set-point, and the joints follow it as fast as their servos can: path and pace are the operator's. What
differs from one operator to another, and within an episode, is drawn from the operator's own random numbers.
"""

from collections.abc import Callable, Iterator
from typing import Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.bench.kitchen.arm import JOINTS, hand_turn
from bid_ros.bench.kitchen.env import RATE_HZ, KitchenState
from bid_ros.bench.skill import draw_skill

Array = NDArray[np.float64]
Motion = Iterator[Array]
"""Actions ``(9,)``, one a step."""
Path = Callable[[float], tuple[Array, Array]]
"""From the share of the way, 0 to 1, to place ``(3,)`` m, and yaw, pitch and roll ``(3,)`` rad of the hand."""

OPEN, CLOSED = 0.04, 0.0  # m, of one finger
FASTEST: Final = np.array([0.75, 0.62, 0.75, 0.75, 0.9, 0.9, 0.9])  # rad/s that the servos keep up with
TURN_SPEED: Final = 1.2  # rad/s of the hand
QUICK: Final = 2.4  # factor on speeds that are drawn: a kitchen is larger than a table
SETTLED_M: Final = 0.012
STEP_S: Final = 1 / RATE_HZ


class ArmSolver(Protocol):
    """What an operator knows of the arm and of the kitchen; see :class:`bid_ros.bench.kitchen.arm.KitchenArm`."""

    usual: Array

    def site(self, name: str) -> Array:
        """Return where a site is now."""

    def pose(self, joints: Array) -> tuple[Array, Array]:
        """Return place and rotation of the hand."""

    def solve(self, joints: Array, place: Array, turn: Array) -> Array:
        """Return joints that bring the hand nearer to a pose."""

    def target(self, joints: Array, speed: Array) -> Array:
        """Return the targets at which the servos hold joints that move."""


class KitchenOperator:
    """Holds the set-point of the hand and moves it. Its motions are generators of actions.

    Args:
        state: at the start of the episode.
        random: all that is drawn is drawn from it.
        arm: solves for joints.

    Attributes:
        state: the newest; whoever takes the actions sets it after each step.
        skill: of this operator.
        random: as given.
        arm: as given.
    """

    def __init__(self, state: KitchenState, random: np.random.Generator, arm: ArmSolver) -> None:
        self.state, self.random, self.arm, self.skill = state, random, arm, draw_skill(random)
        self._joints = np.array(state.agent[:JOINTS])
        self._place, _ = arm.pose(self._joints)
        self._angles = np.zeros(3)
        self._finger, self._shake = float(state.agent[JOINTS]), np.zeros(JOINTS)

    @property
    def place(self) -> Array:
        """``(3,)`` where the set-point is, m."""
        return self._place.copy()

    @property
    def angles(self) -> Array:
        """``(3,)`` yaw, pitch and roll of the set-point, rad."""
        return self._angles.copy()

    @property
    def ahead(self) -> Array:
        """``(3,)`` where the hand points, a unit vector."""
        return hand_turn(*self._angles)[:, 2]

    @property
    def opening(self) -> float:
        """Distance of the fingers, m."""
        return float(self.state.agent[JOINTS:].sum())

    def reach(self, posture: ArrayLike, place: ArrayLike, angles: ArrayLike) -> Motion:
        """Go from joints to joints, to where the hand is at a place; it may still be on its way.

        Args:
            posture: ``(7,)`` rad, near which the joints stay until the next call.
            place: ``(3,)`` m.
            angles: ``(3,)`` yaw, pitch and roll, rad.
        """
        goal, turned = np.array(place, dtype=np.float64), np.array(angles, dtype=np.float64)
        self.arm.usual = np.array(posture, dtype=np.float64)
        first, last = self._joints, self.arm.usual
        for _ in range(5):
            last = self.arm.solve(last, goal, hand_turn(*turned))
        seconds = float((np.abs(last - first) / self._fastest()).max())
        yield from self._along(lambda share: first + share * (last - first), seconds)
        self._place, self._angles = goal, turned

    def move(self, place: ArrayLike | None = None, angles: ArrayLike | None = None, pace: float = 1.0) -> Motion:
        """Move the hand in a straight line, starting and stopping softly, and settle.

        Args:
            place: ``(3,)`` m; None: as it is.
            angles: ``(3,)`` rad; None: as they are.
            pace: factor on the operator's speeds.
        """
        start, first = self._place, self._angles
        way = np.zeros(3) if place is None else np.asarray(place, dtype=np.float64) - start
        turn = np.zeros(3) if angles is None else np.asarray(angles, dtype=np.float64) - first
        yield from self.sweep(lambda share: (start + share * way, first + share * turn), pace)
        yield from self.settle()

    def sweep(self, path: Path, pace: float = 1.0) -> Motion:
        """Move the hand along a path, starting and stopping softly.

        Args:
            path: of the hand.
            pace: factor on the operator's speeds.
        """
        points = [path(share) for share in np.linspace(0.0, 1.0, 9)]
        places, angles = (np.array(values) for values in zip(*points, strict=True))
        way = float(np.linalg.norm(np.diff(places, axis=0), axis=1).sum())
        turn = float(np.abs(np.diff(angles, axis=0)).sum(axis=0).max())
        seconds = max(way / (QUICK * self.skill.speed), turn / TURN_SPEED) / pace

        def joints(share: float) -> Array:
            place, turned = path(share)
            return self.arm.solve(self._joints, place, hand_turn(*turned))

        yield from self._along(joints, seconds)
        self._place, self._angles = path(1.0)

    def track(self, pose: Callable[[], tuple[Array, Array]], done: Callable[[], bool], most: float) -> Motion:
        """Move the hand by what is seen at each step.

        Args:
            pose: place and angles of the hand for what is seen now.
            done: whether that is enough.
            most: s after which it ends.
        """
        for _ in range(round(most * RATE_HZ)):
            if done():
                return
            self._place, self._angles = pose()
            found = self.arm.solve(self._joints, self._place, hand_turn(*self._angles))
            ratio = float((np.abs(found - self._joints) / (self._fastest() * STEP_S)).max())
            yield self._action(self._joints + (found - self._joints) / max(ratio, 1.0))

    def settle(self) -> Motion:
        """Wait until the hand is where it was told to be, at most half a second."""
        wanted, _ = self.arm.pose(self._joints)
        for _ in range(6):
            if np.linalg.norm(wanted - self.arm.pose(self.state.agent[:JOINTS])[0]) < SETTLED_M:
                return
            yield self._action(self._joints)

    def wait(self, seconds: float) -> Motion:
        """Stay."""
        for _ in range(round(seconds * RATE_HZ)):
            yield self._action(self._joints)

    def hold(self, done: Callable[[], bool], most: float) -> Motion:
        """Stay until something is done, ``most`` seconds at most."""
        for _ in range(round(most * RATE_HZ)):
            if done():
                return
            yield self._action(self._joints)

    def hesitate(self) -> Motion:
        """Pause, or not."""
        if self.random.uniform() < self.skill.pause:
            yield from self.wait(self.random.uniform(0.1, self.skill.longest_pause))

    def grip(self, finger: float, seconds: float) -> Motion:
        """Bring each finger to ``finger``, m, and stay for ``seconds``."""
        self._finger = finger
        yield from self.wait(seconds)

    def _fastest(self) -> Array:
        """Return the speeds ``(7,)`` of this operator's joints, rad/s."""
        return np.asarray(FASTEST * np.clip(0.6 + 1.6 * self.skill.speed, 0.75, 1.0))

    def _along(self, joints: Callable[[float], Array], seconds: float) -> Motion:
        """Follow joints from share 0 to 1; a step that would be too fast for a joint is made shorter."""
        whole, now, most = max(1.3 * seconds, STEP_S), 0.0, self._fastest() * STEP_S
        while now < whole - 1e-9:
            step = min(STEP_S, whole - now)
            for _ in range(5):
                share = (now + step) / whole
                found = joints(share * share * (3 - 2 * share))
                ratio = float((np.abs(found - self._joints) / most).max())
                if ratio <= 1.02 or step < 0.05 * STEP_S:
                    break
                step /= ratio
            now += step
            yield self._action(self._joints + (found - self._joints) / max(ratio, 1.0))

    def _action(self, joints: Array) -> Array:
        """Make ``joints`` the set-point; return the action that brings the arm there."""
        speed, self._joints = (joints - self._joints) * RATE_HZ, np.array(joints)
        # Correlated over a third of a second, as a hand shakes half a metre from the joint.
        self._shake = 0.75 * self._shake + self.random.normal(0.0, 0.66 * self.skill.tremor / 0.5, JOINTS)
        return np.concatenate([self.arm.target(joints + self._shake, speed), [self._finger, self._finger]])
