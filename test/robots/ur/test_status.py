"""States of a UR as sentences."""

import math
from dataclasses import replace

import numpy as np
import pytest

from bid_ros.control.spatial import ZERO, Pose
from bid_ros.robots.ur.status import UrReading, pose_from_numbers, possible, trouble

NO_TURN = (0.0, 0.0, 0.0, 1.0)


def reading(**parts):
    pose = Pose((0.1, 0.2, 0.3), NO_TURN)
    good = UrReading(10.0, (0.0,) * 6, (0.0,) * 6, pose, pose, 7, 1, 2)
    return replace(good, **parts)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({}, ""),
        ({"safety_bits": 0b10}, ""),
        ({"safety_bits": 1 << 2}, "protective stop"),
        ({"safety_bits": 1 << 4}, "safeguard stop"),
        ({"safety_bits": 1 << 6 | 1 << 7 | 1 << 10}, "emergency stop by its own button"),
        ({"safety_bits": 1 << 5 | 1 << 7}, "emergency stop by the system's input"),
        ({"safety_bits": 1 << 8}, "violated a safety limit"),
        ({"safety_bits": 1 << 9}, "safety fault"),
        ({"robot_mode": 3}, "is powered off"),
        ({"robot_mode": 5}, "has its brakes engaged"),
        ({"robot_mode": 77}, "is in the unknown mode 77"),
    ],
)
def test_states_become_sentences(parts, said):
    sentence = trouble("1.2.3.4", reading(**parts))
    assert said in sentence
    assert bool(sentence) == bool(said)
    if said:
        assert sentence.startswith("robot at 1.2.3.4 ")
        assert sentence.endswith("then reset")


@pytest.mark.parametrize(
    "parts",
    [
        {"joints": (0.0, math.nan, 0.0, 0.0, 0.0, 0.0)},
        {"joints": (0.0, 1e300, 0.0, 0.0, 0.0, 0.0)},
        {"joint_speeds": (0.0, 0.0, 0.0, 0.0, 0.0, math.inf)},
        {"pose": Pose((0.0, 0.0, 9.0), NO_TURN)},
        {"pose": Pose(ZERO, (math.nan, 0.0, 0.0, 1.0))},
        {"pose": pose_from_numbers((0.0, 0.0, 0.0, 0.0, math.inf, 0.0))},
        {"robot_s": 9.0},
        {"robot_s": 1e9},
        {"robot_s": math.nan},
    ],
)
def test_a_state_that_cannot_be_is_recognised(parts):
    assert possible(reading(), reading(robot_s=9.992))
    # The one sent to is looked at where it counts, at the start.
    assert not possible(reading(**parts), reading(robot_s=9.992))


def test_random_bytes_are_no_healthy_robot_and_never_raise():
    random = np.random.default_rng(3)
    for _ in range(2000):
        numbers = np.frombuffer(random.bytes(8 * 20), dtype=np.float64).tolist()
        pose = pose_from_numbers(numbers[12:18])
        mode, bits, runtime = (int(value) for value in random.integers(-(2**31), 2**31, 3))
        joints, speeds = tuple(numbers[:6]), tuple(numbers[6:12])
        damaged = UrReading(numbers[19], joints, speeds, pose, pose, mode, bits, runtime)
        assert not possible(damaged, reading())
        assert trouble("a", damaged)
