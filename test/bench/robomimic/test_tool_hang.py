"""The scripted operator of Tool Hang, without the simulator: what it does with a frame and a tool that do not stay."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.bench.robomimic.catalogue import TASKS, TOOL_HANG
from bid_ros.bench.robomimic.env import ManipulationState
from bid_ros.bench.robomimic.hang_parts import DEPTH, FRAME_GRIP, MOUNT, POST, RING, TIP, aim, nearest
from bid_ros.bench.robomimic.scripted_operator import DOWN, ScriptedOperator
from bid_ros.bench.robomimic.tool_hang import WAYS, tool_hang
from bid_ros.core.rotation import matrix_from_6d, matrix_to_6d, quaternion_from_matrix

START = np.array([-0.1, 0.0, 1.0])
BASE = np.array([-0.08, 0.0, 0.805])
FITS = 0.005  # m, how far the frame's tip may be off the hole
WIDTHS = {"frame": 0.025, "tool": 0.030}
GRIPS = {"frame": FRAME_GRIP, "tool": np.zeros(3)}


def axes(x, z):
    """Return the rotation whose x and z axes these are."""
    return np.column_stack([x, np.cross(z, x), z])


class World:
    """A hand that is where it is told at once, a stand, and frame and tool that it holds without slip.

    Args:
        seed: of the operator.
        lose: name of what falls from the fingers once, 15 steps after it was grasped.
        stuck: degrees; a tool that hangs by less stays on the post.
        fallen: the frame does not lie flat.
    """

    def __init__(self, seed: int, lose: str = "", stuck: float = 0.0, fallen: bool = False) -> None:
        rod, heading = np.array([0.45, 0.893, 0.0]), np.deg2rad(-115.0)
        rod /= np.linalg.norm(rod)
        bar = np.array([rod[1], -rod[0], 0.0])
        self.lying = {
            "frame": (np.array([-0.108, -0.296, 0.813]), axes(-bar, -rod)),
            "tool": (
                np.array([0.05, -0.2, 0.815]),
                axes(np.array([np.cos(heading), np.sin(heading), 0.0]), np.array([0.0, 0.0, 1.0])),
            ),
        }
        if fallen:
            self.lying["frame"] = (self.lying["frame"][0], axes(-bar, np.array([0.0, 0.0, 1.0])))
        self.poses = dict(self.lying)
        self.lose, self.stuck = lose, stuck
        self.holding, self.offset, self.since = "", (np.zeros(3), np.eye(3)), 0
        self.grasps = {"frame": 0, "tool": 0}
        self.assembled = self.hung = False
        self.on_edge = self.releases = 0
        hand = (START, DOWN)
        self.operator = ScriptedOperator(self.state(hand, 0.08), np.random.default_rng((seed, 7)), TASKS[TOOL_HANG])

    def state(self, hand, opening: float) -> ManipulationState:
        values = []
        for place, turn in ((BASE, np.eye(3)), self.poses["frame"], self.poses["tool"]):
            values += [np.zeros(7), place, quaternion_from_matrix(turn)]
        shown = {
            "object": np.concatenate([*values, [float(self.assembled), float(self.hung)]]),
            "robot0_eef_pos": hand[0],
            "robot0_eef_quat": np.array([1.0, 0.0, 0.0, 0.0]),
            "robot0_gripper_qpos": np.array([opening / 2, -opening / 2]),
        }
        return ManipulationState(np.concatenate([hand[0], matrix_to_6d(hand[1]), [0.0]]), np.zeros(30), shown, 0.0)

    def run(self, most: int = 3000) -> np.ndarray:
        """Return the actions until the operator thinks that it is done."""
        actions = []
        for action in tool_hang(self.operator):
            actions.append(action)
            hand, closed = (action[:3], matrix_from_6d(action[3:9])), action[9] > 0
            if self.holding and self.lose == self.holding and len(actions) - self.since == 15:
                self.let_go()
                self.lose = ""
            elif self.holding and not closed:
                self.let_go()
            elif closed and not self.holding:
                self.grasp(hand, len(actions))
            self.carry(hand)
            self.operator.state = self.state(hand, WIDTHS[self.holding] if self.holding else 0.0 if closed else 0.08)
            if len(actions) == most:
                break
        return np.array(actions)

    def point(self, name: str, place: np.ndarray) -> np.ndarray:
        return self.poses[name][0] + self.poses[name][1] @ place

    def grasp(self, hand, step: int) -> None:
        for name, grip in GRIPS.items():
            if np.linalg.norm(hand[0] - self.point(name, grip)) < 0.02 and not (name == "frame" and self.assembled):
                at, turn = self.poses[name]
                self.holding, self.offset = name, (hand[1].T @ (at - hand[0]), hand[1].T @ turn)
                self.since = step
                self.grasps[name] += 1
                return

    def carry(self, hand) -> None:
        """Move what is held; a frame beside the hole rests on its edge."""
        if not self.holding:
            return
        self.poses[self.holding] = (hand[0] + hand[1] @ self.offset[0], hand[1] @ self.offset[1])
        off = self.point("frame", TIP) - (BASE + MOUNT)
        if self.holding == "frame" and FITS < np.linalg.norm(off[:2]) < 0.02 and -0.02 < off[2] < 0:
            self.on_edge += 1
            at, turn = self.poses["frame"]
            self.poses["frame"] = (at - [0.0, 0.0, off[2]], turn)

    def let_go(self) -> None:
        """Let what was held slide into the hole, hang, or fall to where it lay at first."""
        name, self.holding = self.holding, ""
        self.releases += 1
        at, turn = self.poses[name]
        if name == "frame":
            off = self.point(name, TIP) - (BASE + MOUNT)
            self.assembled = bool(np.linalg.norm(off[:2]) < FITS and -DEPTH - 0.01 < off[2] < 0 and turn[2, 2] > 0.99)
            self.poses[name] = (at - [0.0, 0.0, DEPTH + off[2]], turn) if self.assembled else self.lying[name]
            return
        off = self.point(name, RING) - self.point("frame", POST)
        on_post = self.assembled and np.linalg.norm(off[:2]) < 0.012 and -0.03 < off[2] < 0
        self.hung = bool(on_post and -turn[2, 0] > np.sin(np.deg2rad(self.stuck)))
        self.poses[name] = (at, turn) if on_post else self.lying[name]


@pytest.mark.parametrize("seed", range(6))
def test_the_frame_is_assembled_and_the_tool_hung(seed):
    world = World(seed)
    actions = world.run()
    assert world.assembled and world.hung and len(actions) < 1500
    np.testing.assert_array_equal(World(seed).run(), actions)


def test_some_choose_another_way():
    found = []
    for seed in range(16):
        world = World(seed)
        world.run()
        bar = -world.poses["frame"][1][:2, 0]
        found.append(round(np.rad2deg(np.arctan2(bar[1], bar[0])) / 90) % 4)
    assert set(found) == {round(way.hook / 90) % 4 for way in WAYS.values()}


@pytest.mark.parametrize("name", ["frame", "tool"])
def test_what_was_lost_is_grasped_again(name):
    world = World(4, lose=name)
    world.run()
    assert world.grasps[name] > 1 and world.assembled and world.hung


def test_a_frame_on_the_edge_of_the_hole_is_raised_and_corrected():
    worlds = [World(seed) for seed in range(24)]
    for world in worlds:
        world.run()
    assert any(world.on_edge for world in worlds)
    assert all(world.assembled for world in worlds)


def test_a_tool_that_is_stuck_on_the_post_is_tilted_further():
    world = World(1, stuck=70.0)
    world.run()
    assert world.grasps["tool"] > 1 and world.hung


def test_a_frame_that_does_not_lie_flat_is_left():
    world = World(2, fallen=True)
    actions = world.run()
    assert len(actions) < 60 and not world.grasps["frame"] and not world.grasps["tool"]


def test_an_object_is_brought_to_a_pose_however_it_lies_in_the_fingers():
    world = World(0)
    place, turn = np.array([0.1, 0.05, 1.1]), axes(np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0]))
    for share in (None, 1.0):
        at, now = world.poses["frame"]
        to = aim(world.operator, "frame", place, turn, share)
        list(world.operator.move(to.goal, to.yaw, 1.0, to.lean))
        hand_turn = world.operator.turn
        np.testing.assert_allclose(to.goal + hand_turn @ DOWN.T @ (at - START), place, atol=1e-9)
        np.testing.assert_allclose(hand_turn @ DOWN.T @ now, turn, atol=1e-9)
        world = World(0)


def test_the_nearest_of_all_turns():
    assert nearest(3.0, -3.0) == pytest.approx(3.0 - 2 * np.pi) and nearest(0.5, 0.0) == 0.5
