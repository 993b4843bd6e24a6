"""The scripted operators of Transport, without the simulator: what they do with things that do not stay."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.bench.robomimic.catalogue import POSE, TASKS, TRANSPORT
from bid_ros.bench.robomimic.env import ManipulationState
from bid_ros.bench.robomimic.handing_over import ORDERS, draw_agreement
from bid_ros.bench.robomimic.scripted_operator import DOWN, about_vertical
from bid_ros.bench.robomimic.transport import PRACTICE, transport
from bid_ros.bench.robomimic.transport_parts import FLOOR, HALF_HANDLE, HEAD, RIM, across, leaning, lowest
from bid_ros.bench.robomimic.two_arms import OperatorPair
from bid_ros.core.rotation import matrix_from_6d, matrix_to_6d, quaternion_from_matrix

BINS = {"start": np.array([0.2, -0.45]), "target": np.array([-0.2, 0.45]), "trash": np.array([0.2, 0.45])}
HALF = 0.145  # m, of a bin
WIDTHS = {"payload": 0.030, "lid": 0.020, "trash": 0.040}
RESTS = {"payload": 0.015, "lid": 0.026, "trash": 0.020}  # m over what it lies on
LONG = {"payload": (2, HALF_HANDLE), "lid": (1, 0.04), "trash": (0, 0.0)}  # axis, and how far along it fingers hold


def lying(angle: float, head: float) -> np.ndarray:
    """Return the rotation of a hammer that lies, its handle turned from the y axis, the head at +y (1) or -y (-1)."""
    z = about_vertical(angle) @ [0.0, head, 0.0]
    return np.column_stack([np.cross([0.0, 0.0, 1.0], z), [0.0, 0.0, 1.0], z])


class World:
    """Two hands that are where they are told at once, and hold without slip.

    Args:
        seed: of the operators.
        head: where the hammer's head lies, 1: towards the second arm, -1: towards the first.
        lose: name of what falls from the fingers once, ``after`` steps after they closed on it.
        after: steps.
        leans: the hammer leans on the rim of its bin once.
    """

    def __init__(self, seed: int, head: float = 1.0, lose: str = "", after: int = 12, leans: bool = False) -> None:
        self.lose, self.after, self.leans = lose, after, leans
        self.poses = {
            "payload": (np.array([*BINS["start"], FLOOR + 0.015]), lying(0.3, head)),
            "lid": (np.array([*BINS["start"], RIM + 0.025]), np.eye(3)),
            "trash": (np.array([*BINS["target"], FLOOR + 0.02]), about_vertical(0.4)),
        }
        self.hands = [(np.array([0.0, -0.35, 1.02]), np.eye(3)), (np.array([0.0, 0.35, 1.02]), np.eye(3))]
        self.closed = [False, False]
        self.holds: list[dict[str, tuple[np.ndarray, np.ndarray]]] = [{}, {}]
        self.since, self.grasps = 0, {(arm, name): 0 for arm in range(2) for name in WIDTHS}
        self.handed, self.dropped, self.seen = 0, 0, dict[str, int]()
        self.pair = OperatorPair(self.state(), np.random.default_rng((seed, 7)), TASKS[TRANSPORT], PRACTICE)

    def state(self) -> ManipulationState:
        values = np.zeros(41)
        for at, name in ((0, "payload"), (7, "trash"), (14, "lid")):
            place, turn = self.poses[name]
            values[at : at + 7] = np.concatenate([place, quaternion_from_matrix(turn)])
        for at, name in ((21, "target"), (24, "trash")):
            values[at : at + 3] = [*BINS[name], 0.805]
        values[27], values[28] = self.inside("payload", "target"), self.inside("trash", "trash")
        shown = {"object": values}
        for arm, (place, _) in enumerate(self.hands):
            opening = max([WIDTHS[name] for name in self.holds[arm]], default=0.0 if self.closed[arm] else 0.08)
            shown |= {f"robot{arm}_eef_pos": place, f"robot{arm}_gripper_qpos": np.array([opening, -opening]) / 2}
        agent = [np.concatenate([place, matrix_to_6d(turn), [0.0]]) for place, turn in self.hands]
        return ManipulationState(np.concatenate(agent), np.zeros(60), shown, 0.0)

    def inside(self, name: str, where: str) -> bool:
        """Return whether a thing that nobody holds lies on the base of a bin."""
        place = self.poses[name][0]
        held = any(name in holds for holds in self.holds)
        return bool(not held and np.abs(place[:2] - BINS[where]).max() < HALF and place[2] < FLOOR + 0.03)

    def run(self, most: int = 2500) -> np.ndarray:
        """Return the actions until both operators think that they are done."""
        actions = []
        for action in transport(self.pair):
            actions.append(action)
            for arm in range(2):
                self.move(arm, action[POSE * arm :][:POSE], len(actions))
            self.watch(len(actions))
            both = all("payload" in holds for holds in self.holds)
            self.handed += both and abs(self.poses["payload"][0][1]) < 0.2 and self.poses["payload"][0][2] > RIM
            self.pair.state = self.state()
            if len(actions) == most:
                break
        return np.array(actions)

    def watch(self, step: int) -> None:
        """Keep at which step something was so for the first time."""
        at = {name: place for name, (place, _) in self.poses.items()}
        found = {
            "second moves": np.linalg.norm(self.hands[1][0] - [0.0, 0.35, 1.02]) > 0.05,
            "uncovered": at["lid"][0] < 0 and "lid" not in self.holds[0],
            "cleared": self.inside("trash", "trash"),
            "taken out": at["payload"][2] > RIM,
        }
        for what in (name for name, reached in found.items() if reached):
            self.seen.setdefault(what, step)

    def move(self, arm: int, action: np.ndarray, step: int) -> None:
        self.hands[arm] = action[:3], matrix_from_6d(action[3:9])
        closed, was = action[9] > 0, self.closed[arm]
        self.closed[arm] = closed
        if closed and not was:
            self.grasp(arm, step)
        elif self.lose in self.holds[arm] and step - self.since == self.after:
            self.let_go(arm, self.lose)
            self.lose = ""
        elif not closed:
            for name in list(self.holds[arm]):
                self.let_go(arm, name)
        place, turn = self.hands[arm]
        for name, (off, rotation) in self.holds[arm].items():
            if name not in self.holds[1 - arm] or arm == 0:
                self.poses[name] = place + turn @ off, turn @ rotation

    def grasp(self, arm: int, step: int) -> None:
        place, turn = self.hands[arm]
        for name, (at, rotation) in self.poses.items():
            axis, half = LONG[name]
            way = place - at
            along = np.clip(way @ rotation[:, axis], -half, half)
            if np.linalg.norm(way - along * rotation[:, axis]) < 0.022:
                self.holds[arm][name] = turn.T @ (at - place), turn.T @ rotation
                self.grasps[arm, name] += 1
                self.since = step

    def let_go(self, arm: int, name: str) -> None:
        """Let a thing fall, if the other hand does not hold it."""
        del self.holds[arm][name]
        place, turn = self.poses[name]
        if name in self.holds[1 - arm]:
            self.holds[1 - arm][name] = self.relative(1 - arm, name)
            return
        binned = any(np.abs(place[:2] - middle).max() < HALF for middle in BINS.values())
        table = 0.3 < abs(place[1]) < 0.6
        self.dropped += not (binned or table)
        inside = RIM if name == "lid" else FLOOR
        ground = inside if binned else 0.8 if table else 0.0
        if name == "payload":
            axis = turn[:, 2] if abs(turn[1, 2]) > 0.2 else np.array([0.0, 1.0, 0.0])
            turn = lying(float(np.arctan2(-axis[0] * np.sign(axis[1]), abs(axis[1]))), float(np.sign(axis[1])))
            if self.leans and arm == 1:
                self.leans, ground = False, RIM - 0.05
        self.poses[name] = np.array([*place[:2], ground + RESTS[name]]), turn

    def relative(self, arm: int, name: str) -> tuple[np.ndarray, np.ndarray]:
        place, turn = self.hands[arm]
        return turn.T @ (self.poses[name][0] - place), turn.T @ self.poses[name][1]


@pytest.mark.parametrize("seed", range(6))
def test_the_hammer_goes_from_hand_to_hand_into_the_cleared_bin(seed):
    world = World(seed, head=1.0 if seed % 2 else -1.0)
    actions = world.run()
    assert world.inside("payload", "target") and world.inside("trash", "trash") and not world.dropped
    assert world.handed > 5 and actions.shape[1] == 20 and len(actions) < 1200
    lid = world.poses["lid"][0]
    np.testing.assert_allclose(lid, [-0.2, -0.45, 0.826], atol=0.05)
    np.testing.assert_array_equal(World(seed, head=1.0 if seed % 2 else -1.0).run(), actions)


def test_who_begins_when_differs():
    second_waits, first_waits = [], []
    for seed in range(14):
        world = World(seed)
        world.run()
        assert world.inside("payload", "target")
        second_waits.append(world.seen["uncovered"] < world.seen["second moves"])
        first_waits.append(world.seen["cleared"] < world.seen["taken out"])
    assert 1 <= sum(second_waits) <= 6 and 4 <= sum(first_waits) <= 13
    drawn = [draw_agreement(np.random.default_rng(seed)).order for seed in range(100)]
    assert {order: drawn.count(order) > 10 for order in ORDERS} == dict.fromkeys(ORDERS, True)


@pytest.mark.parametrize(("arm", "name"), [(0, "lid"), (0, "payload"), (1, "trash")])
def test_what_fell_back_is_grasped_again(arm, name):
    world = World(3, lose=name)
    world.run()
    assert world.grasps[arm, name] > 1 and world.inside("payload", "target") and world.inside("trash", "trash")


def test_a_hammer_that_leans_on_the_rim_is_taken_again():
    world = World(2, leans=True)
    world.run()
    assert world.grasps[1, "payload"] > 1 and world.inside("payload", "target")


def test_who_cannot_get_the_hammer_any_more_gives_up():
    world = World(1, lose="payload", after=100)
    actions = world.run()
    assert world.dropped and len(actions) < 1200 and not world.inside("payload", "target")


def test_fingers_close_across_what_is_long_whichever_way_the_arm_looks():
    world = World(0)
    for operator in (world.pair.first, world.pair.second):
        for turn in across(operator, np.array([0.3, 1.0, 0.0])):
            closing = about_vertical(operator.facing + turn) @ DOWN[:, 0]
            assert abs(closing @ [0.3, 1.0, 0.0]) < 1e-9


def test_fingers_that_lean_point_forward():
    np.testing.assert_allclose(leaning(0.3)[:, 2], [np.sin(0.3), 0.0, -np.cos(0.3)], atol=1e-12)
    np.testing.assert_allclose(leaning(0.3)[:, 0], DOWN[:, 0])


def test_the_lowest_end_of_a_hammer():
    world = World(0)
    assert lowest(world.pair.first) == pytest.approx(FLOOR)
    up = np.column_stack([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    for turn, length in ((up, HALF_HANDLE), (up @ np.diag([1.0, -1.0, -1.0]), HEAD)):
        world.poses["payload"] = np.array([0.0, 0.0, 1.0]), turn
        world.pair.state = world.state()
        assert lowest(world.pair.first) == pytest.approx(1.0 - length - 0.015)
