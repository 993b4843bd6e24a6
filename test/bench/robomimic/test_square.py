"""The scripted operator of Square, without the simulator: what it does with a nut that does not go onto its peg."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.bench.robomimic.catalogue import SQUARE, TASKS
from bid_ros.bench.robomimic.env import ManipulationState
from bid_ros.bench.robomimic.scripted_operator import ScriptedOperator
from bid_ros.bench.robomimic.square import CLEAR, HANDLE, PEG, TOP, square

START = np.array([-0.1, 0.0, 1.0])
TABLE_Z = 0.83  # of a nut that lies on the table or is on its peg, m
FITS = 0.0067  # m, how far the nut may be off the peg


class World:
    """A tool that is where it is told at once, and a nut that it holds without slip, unless it is told to lose it."""

    def __init__(self, seed: int, lose_at: int = -1, turned: float = 0.0) -> None:
        self.nut, self.heading = np.array([-0.11, 0.12, TABLE_Z]), 0.3
        self.offset, self.twist, self.held = np.zeros(2), 0.0, False
        self.lose_at, self.turned = lose_at, turned
        self.grasps = self.on_top = 0
        self.operator = ScriptedOperator(self.state(START, 0.08), np.random.default_rng((seed, 7)), TASKS[SQUARE])

    def state(self, place: np.ndarray, opening: float) -> ManipulationState:
        half = self.heading / 2
        shown = {
            "object": np.concatenate([np.zeros(7), self.nut, [0.0, 0.0, np.sin(half), np.cos(half)]]),
            "robot0_eef_pos": place,
            "robot0_eef_quat": np.array([1.0, 0.0, 0.0, 0.0]),
            "robot0_gripper_qpos": np.array([opening / 2, -opening / 2]),
        }
        return ManipulationState(np.concatenate([place, np.zeros(7)]), np.zeros(16), shown, 0.0)

    def handle(self) -> np.ndarray:
        axis = np.array([np.cos(self.heading), np.sin(self.heading), 0.0])
        return self.nut + HANDLE * axis + [0.0, 0.0, CLEAR]

    def run(self, most: int = 3000) -> int:
        """Return after how many steps the operator thinks that it is done."""
        for step, action in enumerate(square(self.operator)):
            place, closed = action[:3], action[9] > 0
            if step == self.lose_at:
                self.held, closed = False, False
            if closed and not self.held and np.abs(place - self.handle()).max() < 0.02:
                self.held, self.grasps = True, self.grasps + 1
                self.heading += self.turned  # the fingers turn it as they close
                self.twist = self.heading - self.operator.yaw
            self.held = self.held and closed
            self.move(place)
            self.operator.state = self.state(place, 0.032 if self.held else 0.0 if closed else 0.08)
            if step == most:
                break
        return step

    def move(self, place: np.ndarray) -> None:
        """Carry the nut, or let it fall: onto the peg, or over it."""
        if self.held:
            self.heading = self.operator.yaw + self.twist
            axis = np.array([np.cos(self.heading), np.sin(self.heading), 0.0])
            self.nut = place - HANDLE * axis - [0.0, 0.0, CLEAR]
        else:
            self.nut[2] = 0.0
        off = np.abs(self.nut[:2] - PEG).max()
        lowest = TOP if FITS < off < 0.03 else TABLE_Z
        self.on_top += self.held and self.nut[2] < lowest and lowest == TOP
        self.nut[2] = max(self.nut[2], lowest)


@pytest.mark.parametrize("seed", range(6))
def test_the_nut_ends_on_its_peg(seed):
    world = World(seed)
    assert world.run() < 1500
    assert np.abs(world.nut[:2] - PEG).max() < FITS and world.nut[2] == TABLE_Z and not world.held
    quarters = world.heading / (np.pi / 2)
    assert quarters == pytest.approx(round(quarters), abs=0.02)


def test_a_nut_that_was_lost_is_grasped_again():
    whole = World(3)
    steps = whole.run()
    world = World(3, lose_at=round(0.6 * steps))
    world.run()
    assert world.grasps > whole.grasps
    assert np.abs(world.nut[:2] - PEG).max() < FITS and world.nut[2] == TABLE_Z


def test_a_nut_on_top_of_the_peg_is_raised_and_corrected():
    worlds = [World(seed) for seed in range(12)]
    for world in worlds:
        world.run()
    assert any(world.on_top for world in worlds)
    assert all(world.nut[2] == TABLE_Z for world in worlds)


def test_a_nut_that_the_fingers_turned_is_turned_back():
    world = World(2, turned=0.2)
    world.run()
    quarters = world.heading / (np.pi / 2)
    assert quarters == pytest.approx(round(quarters), abs=0.02)
