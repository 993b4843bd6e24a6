"""Small LeRobot data sets with the names, shapes and units of public ones: SO-101, ALOHA's two arms, Unitree's G1.

The names are those that ``meta/info.json`` of public data sets has; the numbers are made here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from bid_ros.formats import Column, Contents, DataEpisode, Options, convert

LENGTHS: Final = (24, 20)
SO_JOINTS: Final = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll")
SO101: Final = (*(f"main_{name}" for name in SO_JOINTS), "main_gripper")
SO101_NEW: Final = (*(f"{name}.pos" for name in SO_JOINTS), "gripper.pos")
ALOHA_ARM: Final = ("waist", "shoulder", "elbow", "forearm_roll", "wrist_angle", "wrist_rotate", "gripper")
ALOHA: Final = tuple(f"{side}_{name}" for side in ("left", "right") for name in ALOHA_ARM)
G1_ARM: Final = ("ShoulderPitch", "ShoulderRoll", "ShoulderYaw", "Elbow", "WristRoll", "WristPitch", "WristYaw")
DEX3: Final = ("Thumb0", "Thumb1", "Thumb2", "Middle0", "Middle1", "Index0", "Index1")
G1: Final = tuple(
    f"k{side}{name}"
    for parts in (G1_ARM, tuple(f"Hand{name}" for name in DEX3))
    for side in ("Left", "Right")
    for name in parts
)
INSPIRE: Final = tuple(
    f"k{side}Hand{name}"
    for side in ("Left", "Right")
    for name in ("Pinky", "Ring", "Middle", "Index", "ThumbBend", "ThumbRotation")
)


class Demonstrations:
    """A data set in memory whose values swing between two ends each.

    Args:
        names: of the values of state and action.
        ends: (smallest, largest) of each value.
        cameras: names; pictures of 16 x 24 px.
        more: sizes of further columns, which also have the names of the state if they are as long.
        rate_hz: rows per second.
        named: whether the action has names.
    """

    def __init__(self, names, ends, cameras=(), more=None, rate_hz=30.0, named=True) -> None:
        images = [Column(name, (16, 24, 3), "uint8", image=True) for name in cameras]
        state = Column("state", (len(names),), "float32", names=tuple(names))
        others = [
            Column(name, (size,), "float32", names=tuple(names) if size == len(names) else ())
            for name, size in (more or {}).items()
        ]
        action = Column("action", state.shape, "float32", names=state.names if named else ())
        self.contents = Contents("memory", (state, *others, *images), action, LENGTHS, rate_hz)
        self._low, self._high = np.array(ends, dtype=np.float64).T

    def episodes(self, start=0, names=None):
        """Yield the episodes: each action is the state of the next row."""
        for number, rows in list(enumerate(LENGTHS))[start:]:
            phase = np.arange(rows + 1)[:, None] / rows + np.arange(len(self._low)) / 7 + number / 3
            values = self._low + (self._high - self._low) * (0.5 - 0.5 * np.cos(2 * np.pi * phase))
            values[0], values[1] = self._low, self._high
            rng = np.random.default_rng(number)
            observations = {
                column.name: rng.integers(0, 256, (rows, *column.shape), np.uint8)
                if column.image
                else values[:-1].astype(np.float32)
                if column.name == "state"
                else rng.normal(size=(rows, *column.shape)).astype(np.float32)
                for column in self.contents.columns
            }
            stamps = np.arange(rows, dtype=np.int64) * round(1e9 / (self.contents.rate_hz or 10))
            yield DataEpisode(observations, values[1:].astype(np.float32), stamps, text="Pick the cube.")

    def write(self, path: Path, name: str = "lerobot_v30") -> Path:
        """Write it in a format and return its path."""
        convert(self, path, name, Options("png"))
        return path


def so101(**more) -> Demonstrations:
    """SO-101 as LeRobot recorded it first: degrees, and percent of the gripper."""
    ends = [(-61.0, 72.5), (30.0, 190.0), (20.0, 175.0), (-20.0, 90.0), (-90.0, 45.0), (0.6, 97.5)]
    return Demonstrations(SO101, ends, **({"cameras": ("front",)} | more))


def aloha(**more) -> Demonstrations:
    """ALOHA: two arms in rad, grippers from 0 to 1, and efforts beside them."""
    arm = [(-0.4, 0.5), (-1.2, 0.3), (0.2, 1.5), (-0.5, 0.5), (-1.0, 0.8), (-0.3, 0.3), (0.02, 0.97)]
    return Demonstrations(ALOHA, arm * 2, **({"more": {"effort": 14}, "rate_hz": 50.0} | more))


def g1(**more) -> Demonstrations:
    """Unitree's G1 with Dex3 hands: 14 joints of the arms and 14 of the fingers, all rad."""
    return Demonstrations(G1, [(-0.8, 1.1)] * 14 + [(-1.6, 1.7)] * 14, **more)
