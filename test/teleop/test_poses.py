"""The device that goes to the poses that a topic names."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from bid_ros.control.homing import LINEAR
from bid_ros.core.rotation import DOWN_6D, DOWN_QUATERNION
from bid_ros.core.topics import CALIBRATION_POSE
from bid_ros.system.folder import find_system
from bid_ros.teleop.base import EpisodeStart
from bid_ros.teleop.poses import DEVICE

S = 1_000_000_000
START = np.array([0.45, 0.0, 0.3])


def pose(place, quaternion=DOWN_QUATERNION):
    at, turn = (
        SimpleNamespace(**dict(zip("xyzw", map(float, values), strict=False))) for values in (place, quaternion)
    )
    return SimpleNamespace(pose=SimpleNamespace(position=at, orientation=turn))


@pytest.fixture
def device():
    made = DEVICE.open(find_system("franka_place").task, DEVICE.read("{speed: 0.2}"))
    made.begin(EpisodeStart("", 0, START, np.array(DOWN_6D), {}, 0))
    return made


def way(device, seconds, since=0.0):
    """Commanded places, ten a second."""
    times = np.arange(since, since + seconds, 0.1)
    return np.array([device.chunk_at(round(t * S), 2, S // 20).actions[0] for t in times])


def test_it_holds_until_a_pose_is_named_and_goes_there_slowly(device):
    np.testing.assert_allclose(way(device, 1.0)[:, :3], np.tile(START, (10, 1)))
    device.hear(CALIBRATION_POSE, pose([0.5, 0.1, 0.35]), S)
    rows = way(device, 12.0, 1.0)
    np.testing.assert_allclose(rows[-1, :3], [0.5, 0.1, 0.35], atol=1e-6)
    speed = np.linalg.norm(np.diff(rows[:, :3], axis=0), axis=1) / 0.1
    assert 0.5 * 0.2 * LINEAR.speed < speed.max() <= 0.2 * LINEAR.speed * 1.01
    assert (rows[:, -1] == 0.0).all(), "what the gripper holds stays in it"


def test_a_pose_that_comes_on_the_way_counts_at_its_end(device):
    device.hear(CALIBRATION_POSE, pose([0.5, 0.0, 0.3]), 0)
    way(device, 0.5)
    device.hear(CALIBRATION_POSE, pose([0.45, 0.1, 0.3]), S // 2)
    rows = way(device, 20.0, 0.5)
    assert np.abs(rows[:, :3] - [0.5, 0.0, 0.3]).max(axis=1).min() < 0.002, "it came to the first"
    np.testing.assert_allclose(rows[-1, :3], [0.45, 0.1, 0.3], atol=1e-6)


def test_what_is_no_pose_moves_nothing(device):
    device.hear(CALIBRATION_POSE, pose([np.nan, 0.0, 0.3]), 0)
    device.hear(CALIBRATION_POSE, pose([0.5, 0.0, 0.3], (0.0, 0.0, 0.0, 0.0)), 0)
    np.testing.assert_allclose(way(device, 1.0)[:, :3], np.tile(START, (10, 1)))
    device.end()
    assert device.chunk_at(S, 2, S // 20) is None
