"""Two recordings of a real FR3, 10 s each at 1 kHz: nothing in its states may be called a lie.

They have no clock of the robot, and the stamps are of a computer that heard some states late. So the time between two
states is taken from the way and the speeds of all joints together. The torques are measured ones, not those that were
desired: the checks of torques do not look at them.
"""

from __future__ import annotations

import numpy as np
import pytest
from shared_files import shared_file

from bid_ros.control.spatial import Pose, add, multiply, rotated
from bid_ros.core.margins import Margins
from bid_ros.robots.franka.consistency import FrankaConsistency
from bid_ros.robots.franka.kinematics import flange_pose
from bid_ros.robots.franka.reading import FrankaReading

LATE = 3  # states by which an FR3 reports its speeds late
MOVES_RAD_S = 0.05  # the fastest joint: below it, way and speeds tell little of the time


def recording(number):
    """Return joints, speeds, torques, places and turns of the tool of one recording."""
    names = ("q_rad", "dq_rad_s", "tau_nm", "ee_position_m", "ee_quaternion_xyzw")
    with np.load(shared_file("data", "fr3_motion", "fr3_motion.npz")) as data:
        columns = [data[f"{number}/{name}"].astype(float) for name in names]
    new = np.append(True, np.any(np.diff(columns[0], axis=0), axis=1))  # some states were written twice
    return [column[new] for column in columns]


def times_ms(joints, speeds):
    """Return the time of each state, ms, at least 0.1 after the one before."""
    ahead = np.concatenate([speeds[LATE:], np.repeat(speeds[-1:], LATE, axis=0)])
    mean = 0.5 * (ahead[1:] + ahead[:-1])
    steps = 1e3 * (np.diff(joints, axis=0) * mean).sum(axis=1) / np.maximum((mean * mean).sum(axis=1), 1e-9)
    steps = np.where(np.abs(mean).max(axis=1) > MOVES_RAD_S, steps, 1.0)
    return np.concatenate([[0.0], np.cumsum(np.maximum(0.1, steps))])


def readings(number):
    """Return the states of a recording."""
    joints, speeds, *others = recording(number)
    rows = zip(times_ms(joints, speeds).tolist(), *(each.tolist() for each in (joints, speeds, *others)), strict=True)
    return [
        FrankaReading(
            0, 0, 0, ms, tuple(q), tuple(dq), Pose(tuple(place), tuple(turn)), tuple(torques), 1.0, None, False
        )
        for ms, q, dq, torques, place, turn in rows
    ]


def tool_of(reading):
    """Return the tool in the flange, as the first state has it: nobody knows what was mounted."""
    flange = flange_pose(reading.joints)
    x, y, z, w = flange.quaternion
    back = (-x, -y, -z, w)
    away = add(reading.pose.position, flange.position, -1.0)
    return Pose(rotated(back, away), multiply(back, reading.pose.quaternion))


@pytest.mark.parametrize("number", [0, 1])
def test_no_state_of_a_real_arm_is_doubted(number):
    found = readings(number)
    margins = Margins()
    consistency = FrankaConsistency(tool_of(found[0]), found[0], margins)
    consistency.begin()
    doubts = [doubt for reading in found[1:] if (doubt := consistency.doubt(reading))]
    assert len(found) > 8_000 and not doubts, doubts[:3]
