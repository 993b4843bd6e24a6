"""Distances of the tool from its limits, in words."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bid_ros.core.shapes import DOWN
from bid_ros.system.folder import find_system
from bid_ros.teleop.nearness import ToolLimits

TASK = find_system("franka_place").task


@pytest.mark.parametrize(
    ("place", "opening", "text", "near"),
    [
        ((0.45, 0.0, 0.4), None, "15 cm to the wall at -x", False),
        ((0.5, 0.28, 0.3), None, "2 cm to the wall at +y", True),
        ((0.5, 0.0, 0.07), 0.04, "0 cm to 'table'", True),  # what it holds hangs lower than the fingers
        ((0.5, 0.0, 0.07), 0.08, "5 cm to the wall at -z", False),
    ],
)
def test_the_nearest_limit_is_said(place, opening, text, near):
    (found,) = ToolLimits(TASK).near(np.array(place), DOWN, opening)
    assert (found.text, found.near) == (text, near)


def test_a_tilt_is_said_before_its_limit():
    tilted = Rotation.from_euler("x", 0.55).as_matrix() @ DOWN
    found = ToolLimits(TASK).near(np.array([0.5, 0.0, 0.3]), tilted, None)
    assert [item.text for item in found if item.near] == ["tilted 32 of 34 degrees"]
