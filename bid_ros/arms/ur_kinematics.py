"""Nominal kinematics of UR arms: enough to refuse a set-point before the controller would have to stop for it.

The arm itself is moved by the controller's own, calibrated kinematics, which differ by millimetres. Written on plain
numbers, because it runs at every set-point.

Sources: Universal Robots, "DH parameters for calculations of kinematics and dynamics"; K. P. Hawkins, "Analytic inverse
kinematics for the Universal Robots UR-5/UR-10 arms", Georgia Tech 2013 (joint 1 from the wrist centre, joint 5 and 6
from the tool's axes, then the planar arm of joints 2 to 4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from bid_ros.arms.base import Array
from bid_ros.rotation import matrix_from_quaternion

Posture: TypeAlias = tuple[float, float, float, float, float, float]

# Below this sine of joint 5, joints 4 and 6 turn about one axis and joint 6 is free.
SINGULAR: Final = 1e-6


@dataclass(frozen=True)
class UrKinematics:
    """An arm by the lengths of its Denavit-Hartenberg table in m, with a tool at its flange.

    Attributes:
        d1, a2, a3, d4, d5, d6: lengths; a2 and a3 are negative.
        tool: ``(4, 4)`` pose of the tool in the flange's frame.
    """

    d1: float
    a2: float
    a3: float
    d4: float
    d5: float
    d6: float
    tool: Array

    def forward(self, joints: Sequence[float]) -> Array:
        """Return the tool's pose ``(4, 4)`` in the base frame at ``joints`` ``(6,)`` rad."""
        pose = np.eye(4)
        rows = (
            (0.0, self.d1, 1.0),
            (self.a2, 0.0, 0.0),
            (self.a3, 0.0, 0.0),
            (0.0, self.d4, 1.0),
            (0.0, self.d5, -1.0),
            (0.0, self.d6, 0.0),
        )
        for angle, (a, d, quarter) in zip(joints, rows, strict=True):
            c, s = math.cos(angle), math.sin(angle)
            ca, sa = 1.0 - abs(quarter), quarter  # the twists are 0 and quarter turns
            turn = [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0.0, sa, ca, d], [0.0, 0.0, 0.0, 1.0]]
            pose = pose @ np.array(turn)
        return pose @ self.tool

    def inverse(self, pose: Array, near: Sequence[float]) -> Posture | None:
        """Return the posture in rad that puts the tool at ``pose`` ``(4, 4)``, the nearest to ``near`` ``(6,)``.

        None if there is none. Angles are within half a turn of ``near``.
        """
        flange = (pose @ np.linalg.inv(self.tool)).tolist()
        best, smallest = None, math.inf
        for posture in self._postures(flange, near[5]):
            offsets = [math.remainder(angle - there, math.tau) for angle, there in zip(posture, near, strict=True)]
            distance = sum(offset * offset for offset in offsets)
            if distance < smallest:
                best, smallest = [there + offset for there, offset in zip(near, offsets, strict=True)], distance
        return None if best is None else (best[0], best[1], best[2], best[3], best[4], best[5])

    def _postures(self, flange: list[list[float]], free: float) -> Iterator[Posture]:
        (nx, ox, ax, px), (ny, oy, ay, py), (nz, oz, az, pz), _ = flange
        x, y = px - self.d6 * ax, py - self.d6 * ay
        radius = math.hypot(x, y)
        if radius < self.d4:
            return
        aside, heading = math.asin(self.d4 / radius), math.atan2(y, x)
        for q1 in (heading + aside, heading + math.pi - aside):
            c1, s1 = math.cos(q1), math.sin(q1)
            cosine = ax * s1 - ay * c1
            for q5 in (math.acos(min(1.0, max(-1.0, cosine))), -math.acos(min(1.0, max(-1.0, cosine)))):
                s5, c5 = math.sin(q5), math.cos(q5)
                q6 = free if abs(s5) < SINGULAR else math.atan2((oy * c1 - ox * s1) / s5, (nx * s1 - ny * c1) / s5)
                c6, s6 = math.cos(q6), math.sin(q6)
                # First and third axis of the frame of joint 4, and its origin, in the plane of joints 2 to 4.
                along, up = nx * c1 + ny * s1, nz
                across, over = ox * c1 + oy * s1, oz
                zx, zz = along * s6 + across * c6, up * s6 + over * c6
                xx = c5 * (along * c6 - across * s6) - s5 * (ax * c1 + ay * s1)
                xz = c5 * (up * c6 - over * s6) - s5 * az
                ahead = px * c1 + py * s1 - self.d6 * (ax * c1 + ay * s1) + self.d5 * zx
                above = pz - self.d1 - self.d6 * az + self.d5 * zz
                for q2, q3 in self._elbow(ahead, above):
                    yield (q1, q2, q3, math.atan2(xz, xx) - q2 - q3, q5, q6)

    def _elbow(self, ahead: float, above: float) -> Iterator[tuple[float, float]]:
        cosine = (ahead**2 + above**2 - self.a2**2 - self.a3**2) / (2 * self.a2 * self.a3)
        if abs(cosine) > 1.0:
            return
        for q3 in (math.acos(cosine), -math.acos(cosine)):
            reach, lift = self.a2 + self.a3 * math.cos(q3), self.a3 * math.sin(q3)
            yield math.atan2(above, ahead) - math.atan2(lift, reach), q3


MODELS: Final[Mapping[str, tuple[float, float, float, float, float, float]]] = {
    "ur5e": (0.1625, -0.425, -0.3922, 0.1333, 0.0997, 0.0996),
    "ur5": (0.089159, -0.425, -0.39225, 0.10915, 0.09465, 0.0823),
}


def ur_kinematics(model: str, tool_offset: Sequence[float], tool_quaternion: Sequence[float]) -> UrKinematics:
    """Return the kinematics of a model of :data:`MODELS` with a tool at ``tool_offset`` m, xyzw, from the flange."""
    tool = np.eye(4)
    tool[:3, :3] = matrix_from_quaternion(tool_quaternion)
    tool[:3, 3] = tool_offset
    return UrKinematics(*MODELS[model], tool)
