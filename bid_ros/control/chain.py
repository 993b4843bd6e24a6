"""Kinematics of a serial arm from the frames between its joints: forward, Jacobian and inverse, many rows at once.

Each joint turns about the z axis of its frame. Both conventions of Denavit and Hartenberg lead to this form
(J. J. Craig, "Introduction to Robotics", chapter 3, has the modified one).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import Array

DAMPING: Final = 1e-3  # of the inverse: the step stays finite near a singular posture
LONGEST_STEP: Final = 0.3  # rad of a joint in one step of the inverse
MOST_STEPS: Final = 60
NEAR_M: Final = 1e-5
NEAR_RAD: Final = 1e-4
SETTLED_RAD: Final = 1e-5  # of a redundant joint between two steps
LEAST_STEPS: Final = 2

Row = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class JointFrame:
    """A fixed frame in the one before it: position ``(3,)`` m and rotation ``(3, 3)``."""

    position: Array
    rotation: Array


@dataclass(frozen=True, eq=False)
class Chain:
    """A serial arm: the frame of each joint in the one before, then that of the tool in the last joint's.

    Attributes:
        frames: ``joints + 1`` of them. Between two, the joint turns about z.
    """

    frames: tuple[JointFrame, ...]

    @property
    def joints(self) -> int:
        """Number of joints."""
        return len(self.frames) - 1

    def with_tool(self, position: ArrayLike, rotation: ArrayLike) -> "Chain":
        """Return the chain with a tool: its pose ``(3,)`` m and ``(3, 3)`` in what the chain ends with."""
        last = self.frames[-1]
        place = last.position + last.rotation @ np.asarray(position, dtype=np.float64)
        return Chain((*self.frames[:-1], JointFrame(place, last.rotation @ np.asarray(rotation, dtype=np.float64))))

    def forward(self, joints: ArrayLike) -> tuple[Array, Array]:
        """Return the tool's positions ``(..., 3)`` m and rotations ``(..., 3, 3)``, base frame.

        Args:
            joints: ``(..., joints)`` rad.
        """
        place, rotation, _, _ = self._frames_at(np.asarray(joints, dtype=np.float64))
        return place, rotation

    def jacobian(self, joints: ArrayLike) -> Array:
        """Return ``(..., 6, joints)``: joint speeds in rad/s to the tool's velocity in m/s and rad/s, base frame."""
        place, _, origins, axes = self._frames_at(np.asarray(joints, dtype=np.float64))
        return _jacobian(place, origins, axes)

    def motion(self, joints: ArrayLike) -> tuple[Array, Array, Array]:
        """Return the tool's positions, rotations and Jacobians, as :meth:`forward` and :meth:`jacobian` do."""
        place, rotation, origins, axes = self._frames_at(np.asarray(joints, dtype=np.float64))
        return place, rotation, _jacobian(place, origins, axes)

    def inverse(
        self, position: ArrayLike, rotation: ArrayLike, near: ArrayLike, rest: ArrayLike | None = None
    ) -> Array:
        """Return joint positions ``(n, joints)`` rad that put the tool at poses. Arguments as :meth:`solve`.

        Raises:
            ArmError: a pose is out of reach. It says which row.
        """
        joints, reached = self.solve(position, rotation, near, rest)
        if not reached.all():
            row = int(np.argmin(reached))
            x, y, z = np.asarray(position)[row].tolist()
            raise ArmError(
                f"no joint positions put the tool at [{x:.3f}, {y:.3f}, {z:.3f}] m of row {row}: "
                "it is out of the arm's reach"
            )
        return joints

    def solve(
        self,
        position: ArrayLike,
        rotation: ArrayLike,
        near: ArrayLike,
        rest: ArrayLike | None = None,
        settled: float = SETTLED_RAD,
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Return joint positions ``(n, joints)`` rad, all solved at once, and which of them reach their pose ``(n,)``.

        Damped least squares (Y. Nakamura and H. Hanafusa, "Inverse kinematic solutions with singularity robustness for
        robot manipulator control", 1986, equation 13). A redundant joint comes as near to ``rest`` as the pose lets it
        (A. Liegeois, "Automatic supervisory control of the configuration and behavior of multibody mechanisms", 1977).
        So neighbouring poses have neighbouring joints.

        Args:
            position: ``(n, 3)`` m, base frame.
            rotation: ``(n, 3, 3)``, tool to base.
            near: ``(joints,)`` or ``(n, joints)`` rad, from where the search starts.
            rest: ``(joints,)`` or ``(n, joints)`` rad. None: ``near``.
            settled: rad by which a redundant joint may still have to move.
        """
        goal, turn = np.asarray(position, dtype=np.float64), np.asarray(rotation, dtype=np.float64)
        joints = np.array(np.broadcast_to(np.asarray(near, dtype=np.float64), (len(goal), self.joints)))
        pulled = joints.copy() if rest is None else np.asarray(rest, dtype=np.float64)
        off = np.full(len(goal), math.inf)
        for step in range(MOST_STEPS):
            place, turned, origins, axes = self._frames_at(joints)
            error = np.concatenate([goal - place, _turn_between(turned, turn)], axis=-1)
            off = _distance(error, turned, turn)
            change = self._step(_jacobian(place, origins, axes), error, pulled - joints)
            # Of a redundant arm the joints may go on to move while the pose is reached.
            open_rows = (off > 1.0) | (np.abs(change).max(axis=1) > settled)
            if step >= LEAST_STEPS and not open_rows.any():
                break
            joints += change
        return joints, off <= 1.0

    def _step(self, jacobian: Array, error: Array, pull: Array) -> Array:
        """Return the change of the joints ``(n, joints)``, each no longer than :data:`LONGEST_STEP`."""
        across = np.swapaxes(jacobian, -1, -2)
        square = jacobian @ across + DAMPING**2 * np.eye(6)
        if self.joints > 6:
            # J# e + (1 - J# J) pull, in one solution: J# (e - J pull) + pull.
            wanted = error - (jacobian @ pull[..., None])[..., 0]
        else:
            wanted, pull = error, np.zeros_like(pull)
        change = (across @ np.linalg.solve(square, wanted[..., None]))[..., 0] + pull
        longest = np.abs(change).max(axis=1, keepdims=True)
        scaled: Array = change * np.minimum(1.0, LONGEST_STEP / np.maximum(longest, 1e-12))
        return scaled

    def _frames_at(self, joints: Array) -> tuple[Array, Array, list[Array], list[Array]]:
        """Return the tool's place and rotation, and origin and axis of each joint; all in the base frame."""
        shape = joints.shape[:-1]
        place, rotation = np.zeros((*shape, 3)), np.broadcast_to(np.eye(3), (*shape, 3, 3))
        cosines, sines = np.cos(joints), np.sin(joints)
        origins, axes = [], []
        for number, frame in enumerate(self.frames):
            place = place + rotation @ frame.position
            rotation = rotation @ frame.rotation
            if number < joints.shape[-1]:
                origins.append(place)
                axes.append(rotation[..., 2])
                c, s = cosines[..., number, None], sines[..., number, None]
                x, y = rotation[..., 0], rotation[..., 1]
                rotation = np.stack([c * x + s * y, c * y - s * x, rotation[..., 2]], axis=-1)
        return place, rotation, origins, axes


def modified_chain(table: Sequence[Row]) -> Chain:
    """Return the chain of a table in Craig's convention: rows of a (m), d (m) and alpha (rad), base to last joint."""
    frames = [_craig(*row) for row in table]
    return Chain((*frames, JointFrame(np.zeros(3), np.eye(3))))


def classic_chain(table: Sequence[Row]) -> Chain:
    """Return the chain of a table in the classic convention: rows of a (m), d (m) and alpha (rad)."""
    frames = [JointFrame(np.array([a, 0.0, d]), _about_x(alpha)) for a, d, alpha in table]
    return Chain((JointFrame(np.zeros(3), np.eye(3)), *frames))


def _craig(a: float, d: float, alpha: float) -> JointFrame:
    turn = _about_x(alpha)
    return JointFrame(np.array([a, 0.0, 0.0]) + turn @ np.array([0.0, 0.0, d]), turn)


def _about_x(angle: float) -> Array:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def damped_solution(jacobian: Array, motion: Array, damping: float) -> Array:
    """Return the damped least-squares solution ``(n,)`` of ``jacobian`` ``(6, n)`` times it = ``motion`` ``(6,)``.

    Args:
        jacobian: of the joints.
        motion: what they should do.
        damping: of the squared Jacobian.
    """
    square = jacobian @ jacobian.T
    square[np.diag_indices(6)] += damping
    solution: Array = jacobian.T @ np.linalg.solve(square, motion)
    return solution


def _jacobian(place: Array, origins: Sequence[Array], axes: Sequence[Array]) -> Array:
    turns = np.stack(axes, axis=-2)
    moves = np.cross(turns, place[..., None, :] - np.stack(origins, axis=-2))
    return np.swapaxes(np.concatenate([moves, turns], axis=-1), -1, -2)


def _distance(error: Array, turned: Array, turn: Array) -> Array:
    """Return how far poses are from their goals, ``(n,)``: 1 is the tolerance, and infinite beyond a quarter turn."""
    metres = np.linalg.norm(error[:, :3], axis=1) / NEAR_M
    radians = np.linalg.norm(error[:, 3:], axis=1) / NEAR_RAD
    # A sine vanishes at half a turn too. There the trace of the turn between is negative.
    away = np.einsum("nij,nij->n", turned, turn) < 1.0
    distance: Array = np.where(away, math.inf, np.maximum(metres, radians))
    return distance


def _turn_between(one: Array, other: Array) -> Array:
    """Return half the sum of the cross products of the axes ``(n, 3)``: the rotation vector, for small angles.

    J. Luh, M. Walker and R. Paul, "Resolved-acceleration control of mechanical manipulators", 1980, equation 18.
    """
    turn: Array = 0.5 * np.cross(np.swapaxes(one, -1, -2), np.swapaxes(other, -1, -2)).sum(axis=-2)
    return turn
