"""A kitchen without physics: the hand is where it is told at once, and what it holds or pushes follows it."""

from __future__ import annotations

import numpy as np

from bid_ros.bench.kitchen.arm import FORWARD, hand_turn
from bid_ros.bench.kitchen.cabinets import CABINET_HINGE, MICROWAVE_HINGE
from bid_ros.bench.kitchen.catalogue import OBJECTS
from bid_ros.bench.kitchen.env import KitchenState
from bid_ros.bench.kitchen.scripted_operator import KitchenOperator
from bid_ros.bench.kitchen.switches import KNOB_IN, LIGHT_AXIS, LIGHT_IN, beside_bar
from bid_ros.core.rotation import matrix_from_vector

START = np.array([-0.43, 0.12, 2.04, 0.0, 0.0, 0.0, 0.0])  # joints: the hand's place and angles, and one that is idle
SITES = {
    "microhandle_site": [-0.642, 0.493, 1.792],
    "slide_site": [-0.108, 0.607, 2.6],
    "hinge_site2": [-0.526, 0.583, 2.6],
    "knob2_site": [-0.256, 0.64, 2.226],
    "knob4_site": [-0.256, 0.64, 2.34],
    "light_site": [-0.368, 0.616, 2.28],
}
HINGES = {
    "microhandle_site": (MICROWAVE_HINGE, 13),
    "hinge_site2": (CABINET_HINGE, 12),
    "light_site": (LIGHT_AXIS, 8),
}
KNOBS = {"knob2_site": 2, "knob4_site": 6}
WIDTHS = {"kettle_site": 0.064, **dict.fromkeys(KNOBS, 0.028)}  # m, of what is held; otherwise 44 mm


def turned(vector, angle):
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.array([cosine * vector[0] - sine * vector[1], sine * vector[0] + cosine * vector[1]])


class World:
    """Arm and kitchen.

    Args:
        seed: of the operator.
        lose_at: step at which what is held slips out.
    """

    def __init__(self, seed: int, lose_at: int = -1) -> None:
        self.usual, self.joints, self.lose_at, self.steps = np.zeros(7), START.copy(), lose_at, 0
        self.block = np.zeros(OBJECTS)
        self.block[14:18] = [-0.269, 0.35, 1.619, 1.0]
        self.held, self.fingers, self.grasped = "", 0.04, list[str]()
        self.grasped_at = 0  # step of the newest of them
        self.grip = START.copy()  # joints when it was grasped
        self.before = self.block.copy()
        self.operator = KitchenOperator(self.state(), np.random.default_rng((seed, 7)), self)

    def state(self) -> KitchenState:
        opening = WIDTHS.get(self.held, 0.044) / 2 if self.held else self.fingers
        return KitchenState(np.append(self.joints, [opening, opening]), self.block.copy(), (), 0.0)

    def site(self, name: str) -> np.ndarray:
        if name == "kettle_site":
            return self.block[14:17] + np.array([0.0, 0.0, 0.259])
        place = np.array(SITES[name])
        if name in HINGES:
            hinge, joint = HINGES[name]
            place[:2] = hinge + turned(place[:2] - hinge, self.block[joint])
        elif name == "slide_site":
            place[0] += self.block[10]
        return place

    def pose(self, joints):
        return joints[:3], hand_turn(*joints[3:6])

    def solve(self, joints, place, turn):
        ahead = turn[:, 2]
        yaw, pitch = np.arctan2(-ahead[0], ahead[1]), np.arcsin(np.clip(ahead[2], -1, 1))
        about = matrix_from_vector(np.array([0, 0, yaw])) @ FORWARD @ matrix_from_vector(np.array([0, -pitch, 0]))
        rolled = about.T @ turn
        return np.concatenate([place, [yaw, pitch, np.arctan2(rolled[1, 0], rolled[0, 0]), 0.0]])

    def target(self, joints, speed):
        return joints

    def run(self, motion, most: int = 2000) -> np.ndarray:
        """Follow a motion; return its actions."""
        actions = []
        for action in motion:
            actions.append(action)
            self.step(action)
            self.operator.state = self.state()
            if len(actions) == most:
                break
        return np.array(actions)

    def step(self, action) -> None:
        self.steps += 1
        self.joints, closed = action[:7].copy(), action[7] < 0.02
        if self.steps == self.lose_at or not closed:
            self.held = ""
        elif closed and self.fingers > 0.02:
            self.held = next((name for name in (*SITES, "kettle_site") if self.near(name)), "")
            self.grip, self.before = self.joints.copy(), self.block.copy()
            self.grasped.append(self.held)
            self.grasped_at = self.steps
        self.fingers = action[7]
        if self.held:
            self.carry()
        elif closed:
            self.push()

    def near(self, name: str) -> bool:
        inside = KNOB_IN if name in KNOBS else LIGHT_IN if name == "light_site" else np.zeros(3)
        off = self.joints[:3] - self.site(name) - inside
        return bool(np.abs(off[:2]).max() < 0.03 and abs(off[2]) < (0.05 if inside.any() else 0.13))

    def carry(self) -> None:
        way = self.joints - self.grip
        if self.held in HINGES:
            hinge, joint = HINGES[self.held]
            first, now = self.grip[:2] - hinge, self.joints[:2] - hinge
            self.block[joint] = self.before[joint] + np.arctan2(now[1], now[0]) - np.arctan2(first[1], first[0])
        elif self.held in KNOBS:
            self.block[KNOBS[self.held]] = self.before[KNOBS[self.held]] - way[5]
        elif self.held == "slide_site":
            self.block[10] = self.before[10] + way[0]
        else:
            self.block[14:17] = self.before[14:17] + way[:3]

    def push(self) -> None:
        x, y, z = self.joints[:3]
        if y > 0.54 and abs(z - 2.28) < 0.03 and -0.6 < x < -0.31:
            self.block[8] = min(self.block[8], max(-0.7, 8 * (x + 0.33)))
        if y > 0.54 and abs(z - 2.6) < 0.15 and self.site("slide_site")[0] - 0.15 < x:
            self.block[10] = max(self.block[10], x + 0.05 - SITES["slide_site"][0])
        for name, joint in KNOBS.items():
            angles = np.linspace(-self.block[joint], 1.4, 60)
            off = [np.linalg.norm(self.joints[:3] - beside_bar(np.array(SITES[name]), angle)) for angle in angles]
            if min(off) < 0.015:
                self.block[joint] = max(-angles[int(np.argmin(off))], self.block[joint] - 0.06)
