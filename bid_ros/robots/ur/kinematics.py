"""Kinematics of the UR arms: forward, Jacobian and the analytic inverse.

Frames are the controller's: base at the foot, flange at the end, and a pose is x y z in m with a rotation vector in
rad. A tool centre point (``tcp``) is a pose in the flange's frame.

Sources: Universal Robots, "DH parameters for calculations of kinematics and dynamics", for the table; the inverse
solves the wrist first and the planar elbow after it, as K. P. Hawkins, "Analytic inverse kinematics for the Universal
Robots UR-5/UR-10 arms" (Georgia Tech, 2013) does.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from bid_ros.core.errors import ArmError
from bid_ros.core.rotation import matrix_from_vector
from bid_ros.robots.ur.pose import Array, Numbers, Rotation, Vector, floats, product, rotation_of, turned, vector_of

JOINT_LIMIT: Final = 2 * math.pi  # rad either way, every joint

_HALF: Final = math.pi / 2
_SINGULAR: Final = 1e-7  # sine of wrist 2 below which wrist 1 and wrist 3 turn about one axis
_SLACK: Final = 1e-9  # rounding that a pose at the very edge of the reach may have
_LIMIT_SLACK: Final = 1e-9  # rad


class _Chain(NamedTuple):
    """Frames of one configuration: unit vectors of the axes, origins and the last rotation, all in the base frame.

    Attributes:
        z1: axis of shoulder lift, elbow and wrist 1; z4: of wrist 2; z6: of wrist 3.
        o2, o3, o4, o5: origins of the frames at elbow, wrist 1, wrist 2 and wrist 3; tip: of flange or tool, m.
        rotation: of flange or tool.
    """

    z1: Vector
    z4: Vector
    z6: Vector
    o2: Vector
    o3: Vector
    o4: Vector
    o5: Vector
    tip: Vector
    rotation: Rotation


@dataclass(frozen=True)
class Kinematics:
    """An arm of UR's shape by the lengths of its Denavit-Hartenberg table, m."""

    d1: float
    a2: float
    a3: float
    d4: float
    d5: float
    d6: float

    @property
    def table(self) -> tuple[tuple[float, float, float], ...]:
        """Rows of a (m), d (m) and alpha (rad), base to wrist 3."""
        return (
            (0.0, self.d1, _HALF),
            (self.a2, 0.0, 0.0),
            (self.a3, 0.0, 0.0),
            (0.0, self.d4, _HALF),
            (0.0, self.d5, -_HALF),
            (0.0, self.d6, 0.0),
        )

    def forward(self, q: Numbers, tcp: Numbers | None = None) -> Array:
        """Return the pose ``(6,)`` of the tool, or of the flange without ``tcp``, at joint angles ``(6,)`` rad."""
        chain = self._chain(q, tcp)
        return np.array([*chain.tip, *vector_of(chain.rotation)])

    def elbow(self, q: Numbers, qd: Numbers) -> tuple[Vector, Vector]:
        """Return where the elbow is, m, and its velocity, m/s, base frame, at angles ``(6,)`` rad and speeds rad/s.

        It is the point where upper arm and forearm meet in the arm's table: without the width of the links.
        """
        turn, lift = float(q[0]), float(q[1])
        c1, s1, c2, s2 = math.cos(turn), math.sin(turn), self.a2 * math.cos(lift), self.a2 * math.sin(lift)
        out, around, up = -s2 * float(qd[1]), c2 * float(qd[0]), c2 * float(qd[1])
        return (c2 * c1, c2 * s1, self.d1 + s2), (out * c1 - around * s1, out * s1 + around * c1, up)

    def jacobian(self, q: Numbers, tcp: Numbers | None = None) -> Array:
        """Return ``(6, 6)``: joint speeds in rad/s to the tool's velocity in m/s and rad/s, base frame."""
        chain = self._chain(q, tcp)
        foot, shoulder = (0.0, 0.0, 0.0), (0.0, 0.0, self.d1)
        axes = ((0.0, 0.0, 1.0), chain.z1, chain.z1, chain.z1, chain.z4, chain.z6)
        origins = (foot, shoulder, chain.o2, chain.o3, chain.o4, chain.o5)
        px, py, pz = chain.tip
        columns = []
        for (x, y, z), (ox, oy, oz) in zip(axes, origins, strict=True):
            u, v, w = px - ox, py - oy, pz - oz
            columns.append((y * w - z * v, z * u - x * w, x * v - y * u, x, y, z))
        return np.array(columns).T

    def inverse(self, pose: Numbers, q_near: Numbers, tcp: Numbers | None = None, limit: float = JOINT_LIMIT) -> Array:
        """Return the joint angles ``(6,)`` rad nearest to ``q_near`` that put the tool at ``pose`` ``(6,)``.

        Of the up to eight postures, each joint turned by whole turns towards ``q_near``, the one with the smallest sum
        of squared differences. Where wrist 3 is free (wrist 2 at 0 or pi) it stays at ``q_near``.

        Args:
            pose: of the tool, or of the flange without ``tcp``.
            q_near: ``(6,)`` rad.
            tcp: pose of the tool in the flange's frame.
            limit: rad either way, at least pi. A joint that would pass it takes a whole turn back; with an infinite one
                none does, and the caller compares the angles with the joints' limits.

        Raises:
            ArmError: if no posture reaches the pose, or it is not six finite numbers.
        """
        numbers = floats(pose)
        if len(numbers) != 6 or not all(map(math.isfinite, numbers)):
            raise ArmError(f"inverse kinematics: the pose is {numbers}; valid are six finite numbers")
        n1, n2, n3, n4, n5, n6 = floats(q_near)
        best: tuple[float, ...] | None = None
        smallest = math.inf
        # Nearest wrist first: most often no other can win, and its elbow need not be solved.
        for distance, o1, o5, o6, pitch, ahead, above in sorted(self._wrists(numbers, (n1, n5, n6), tcp, limit)):
            if distance >= smallest:
                break
            for q2, q3 in self._elbow(ahead, above):
                o2, o3 = _offset(q2, n2, limit), _offset(q3, n3, limit)
                o4 = _offset(pitch - q2 - q3, n4, limit)
                total = distance + o2 * o2 + o3 * o3 + o4 * o4
                if total < smallest:
                    best, smallest = (n1 + o1, n2 + o2, n3 + o3, n4 + o4, n5 + o5, n6 + o6), total
        if best is None:
            text = ", ".join(f"{value:.4f}" for value in numbers)
            raise ArmError(f"no inverse kinematics solution for the pose [{text}]: it is out of the arm's reach")
        return np.array(best)

    def _chain(self, q: Numbers, tcp: Numbers | None) -> _Chain:
        q1, q2, q3, q4, q5, q6 = floats(q)
        c1, s1 = math.cos(q1), math.sin(q1)
        c5, s5, c6, s6 = math.cos(q5), math.sin(q5), math.cos(q6), math.sin(q6)
        c234, s234 = math.cos(q2 + q3 + q4), math.sin(q2 + q3 + q4)
        reach, height = self.a2 * math.cos(q2), self.d1 + self.a2 * math.sin(q2)
        o2 = (reach * c1, reach * s1, height)
        reach, height = reach + self.a3 * math.cos(q2 + q3), height + self.a3 * math.sin(q2 + q3)
        o3 = (reach * c1, reach * s1, height)
        o4 = (o3[0] + self.d4 * s1, o3[1] - self.d4 * c1, height)
        z4 = (s234 * c1, s234 * s1, -c234)
        o5 = (o4[0] + self.d5 * z4[0], o4[1] + self.d5 * z4[1], o4[2] + self.d5 * z4[2])
        x4 = (c234 * c1, c234 * s1, s234)  # y4 is z1
        x5 = (c5 * x4[0] + s5 * s1, c5 * x4[1] - s5 * c1, c5 * x4[2])  # y5 is -z4
        z6 = (c5 * s1 - s5 * x4[0], -c5 * c1 - s5 * x4[1], -s5 * x4[2])
        rows = [(c6 * x - s6 * y, -s6 * x - c6 * y, z) for x, y, z in zip(x5, z4, z6, strict=True)]
        rotation: Rotation = (*rows[0], *rows[1], *rows[2])
        tip = (o5[0] + self.d6 * z6[0], o5[1] + self.d6 * z6[1], o5[2] + self.d6 * z6[2])
        if tcp is not None:
            x, y, z, *turn = floats(tcp)
            x, y, z = turned(rotation, x, y, z)
            tip = (tip[0] + x, tip[1] + y, tip[2] + z)
            rotation = product(rotation, rotation_of(*turn))
        return _Chain((s1, -c1, 0.0), z4, z6, o2, o3, o4, o5, tip, rotation)

    def _wrists(
        self, pose: Numbers, near: tuple[float, float, float], tcp: Numbers | None, limit: float
    ) -> Iterator[tuple[float, float, float, float, float, float, float]]:
        """Yield the up to four ways to solve base, wrist 2 and wrist 3 for the pose.

        Each is the squared distance of these three from their near angles, their offsets from them, the sum of the
        other three joints' angles and where those have to put wrist 1: ahead of and above the shoulder.
        """
        near_q1, near_q5, near_q6 = near
        rotation, (x, y, z) = _flange(pose, tcp)
        xx, xy, xz, yx, yy, yz, zx, zy, zz = rotation
        x, y, z = x - self.d6 * xz, y - self.d6 * yz, z - self.d6 * zz  # where the axes of wrist 2 and 3 meet
        reach = math.hypot(x, y)
        if reach < self.d4 * (1 - _SLACK):
            return
        direction, aside = math.atan2(y, x), math.asin(min(1.0, self.d4 / reach))
        for q1 in (direction + aside, direction + math.pi - aside):
            c1, s1 = math.cos(q1), math.sin(q1)
            o1 = _offset(q1, near_q1, limit)
            # The axis of the elbow, seen from the flange.
            u, v, w = xx * s1 - yx * c1, xy * s1 - yy * c1, xz * s1 - yz * c1
            sine = math.hypot(u, v)
            bend = math.atan2(sine, w)
            for sign in (1.0, -1.0):
                if sine < _SINGULAR:
                    q6 = self._free_wrist(
                        near_q6, math.copysign(1.0, w), x * c1 + y * s1, z - self.d1, (xy * c1 + yy * s1, zy)
                    )
                else:
                    q6 = math.atan2(-sign * v, sign * u)
                o5, o6 = _offset(sign * bend, near_q5, limit), _offset(q6, near_q6, limit)
                c6, s6 = math.cos(q6), math.sin(q6)
                ax, ay, az = s6 * xx + c6 * xy, s6 * yx + c6 * yy, s6 * zx + c6 * zy  # from wrist 2 back to wrist 1
                pitch = math.atan2(-ax * c1 - ay * s1, az)
                ahead = (x + self.d5 * ax) * c1 + (y + self.d5 * ay) * s1
                above = z + self.d5 * az - self.d1
                yield o1 * o1 + o5 * o5 + o6 * o6, o1, o5, o6, pitch, ahead, above

    def _free_wrist(
        self, near_q6: float, sense: float, ahead: float, above: float, across: tuple[float, float]
    ) -> float:
        """Return the angle of wrist 3 nearest to ``near_q6`` that leaves wrist 1 within the elbow's reach.

        For wrist 2 at 0 or pi, where wrist 1 lies anywhere on a circle around wrist 2.

        Args:
            near_q6: rad.
            sense: 1 if wrist 3 turns about the elbow's axis, -1 if about its opposite.
            ahead, above: of wrist 2 from the shoulder in the arm's plane, m.
            across: the flange's y axis in that plane.
        """
        angle = math.atan2(across[1], across[0]) - sense * near_q6  # of the way from wrist 2 to wrist 1
        distance, direction = math.hypot(ahead, above), math.atan2(above, ahead)
        between = math.hypot(ahead + self.d5 * math.cos(angle), above + self.d5 * math.sin(angle))
        inner, outer = abs(abs(self.a2) - abs(self.a3)), abs(self.a2) + abs(self.a3)
        edge = max(inner, min(outer, between))
        if edge == between or distance == 0.0:
            return near_q6
        cosine = (edge * edge - distance * distance - self.d5 * self.d5) / (2 * distance * self.d5)
        opening = math.acos(max(-1.0, min(1.0, cosine)))
        off = math.remainder(angle - direction, 2 * math.pi)
        return near_q6 - sense * (math.copysign(opening, off) - off)

    def _elbow(self, ahead: float, above: float) -> Iterator[tuple[float, float]]:
        """Yield shoulder lift and elbow that put wrist 1 at ``ahead``, ``above`` m of the shoulder."""
        cosine = (ahead * ahead + above * above - self.a2 * self.a2 - self.a3 * self.a3) / (2 * self.a2 * self.a3)
        if abs(cosine) > 1 + _SLACK:
            return
        elbow = math.acos(max(-1.0, min(1.0, cosine)))
        direction = math.atan2(above, ahead)
        for q3 in (elbow, -elbow):
            yield direction - math.atan2(self.a3 * math.sin(q3), self.a2 + self.a3 * math.cos(q3)), q3


def _flange(pose: Numbers, tcp: Numbers | None) -> tuple[Rotation, Vector]:
    """Return rotation and place of the flange when the tool is at ``pose``."""
    x, y, z, *turn = floats(pose)
    rotation = rotation_of(*turn)
    if tcp is None:
        return rotation, (x, y, z)
    u, v, w, *turn = floats(tcp)
    rotation = product(rotation, rotation_of(*(-value for value in turn)))
    u, v, w = turned(rotation, u, v, w)
    return rotation, (x - u, y - v, z - w)


def _offset(angle: float, centre: float, limit: float) -> float:
    """Return what to add to ``centre`` to get ``angle`` to within whole turns, inside +-``limit`` and nearest."""
    offset = math.remainder(angle - centre, 2 * math.pi)
    if centre + offset > limit + _LIMIT_SLACK:
        return offset - 2 * math.pi
    if centre + offset < -limit - _LIMIT_SLACK:
        return offset + 2 * math.pi
    return offset


UR5E: Final = Kinematics(d1=0.1625, a2=-0.425, a3=-0.3922, d4=0.1333, d5=0.0997, d6=0.0996)
UR5: Final = Kinematics(d1=0.089159, a2=-0.425, a3=-0.39225, d4=0.10915, d5=0.09465, d6=0.0823)
MODELS: Final[Mapping[str, Kinematics]] = {"ur5e": UR5E, "ur5": UR5}


class ToolKinematics(NamedTuple):
    """Kinematics of an arm with a tool in its flange, or without one."""

    arm: Kinematics = UR5E
    tcp: Numbers | None = None

    def forward(self, q: Numbers) -> Array:
        """See :meth:`Kinematics.forward`."""
        return self.arm.forward(q, self.tcp)

    def jacobian(self, q: Numbers) -> Array:
        """See :meth:`Kinematics.jacobian`."""
        return self.arm.jacobian(q, self.tcp)

    def inverse(self, pose: Numbers, q_near: Numbers) -> Array:
        """See :meth:`Kinematics.inverse`."""
        return self.arm.inverse(pose, q_near, self.tcp)


def flange(joints: Numbers) -> tuple[Array, Array]:
    """Return position ``(3,)`` m and rotation ``(3, 3)`` of a UR5e's flange at joint angles ``(6,)`` rad."""
    pose = UR5E.forward(joints)
    return pose[:3], matrix_from_vector(pose[3:])
