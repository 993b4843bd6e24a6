"""Limits from points: plain numbers, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from bid_ros.calibration.limits import (
    LimitBox,
    TablePlane,
    check_margin,
    limit_box,
    limits_of,
    measured,
    table_plane,
    with_limits,
)
from bid_ros.calibration.rigid import rigid
from bid_ros.core.errors import BidError, CalibrationError
from bid_ros.core.rotation import matrix_from_vector
from bid_ros.core.shapes import DOWN, ToolPart
from bid_ros.system.folder import find_system

CORNERS = [[0.3, -0.2, 0.1], [0.6, 0.3, 0.5]]
FINGERS = ToolPart("fingers", (0.0, -0.04, 0.0), 0.01, (0.0, 0.04, 0.0))
HELD = ToolPart("object", (0.0, 0.0, 0.05), 0.03, held=0.04)


def tools(points, turn=(0.0, 0.0, 0.0)):
    """Poses of a tool that points down but for a turn, rad."""
    return rigid(np.broadcast_to(matrix_from_vector(np.array(turn)) @ DOWN, (len(points), 3, 3)), np.array(points))


@pytest.fixture
def known(task):
    return limits_of(task)


def test_the_limits_of_a_task_are_read_and_put_back(task, known):
    assert known.table == TablePlane((0.0, 0.0, 1.0), 0.0)
    assert known.workspace == LimitBox((0.3, -0.3, 0.02), (0.7, 0.3, 0.6))
    assert known.start == LimitBox((0.4, -0.15, 0.28), (0.55, 0.15, 0.36))
    assert with_limits(task, known) == task
    without = replace(task, limits=replace(task.limits, keep_out=()))
    assert limits_of(without).table is None and with_limits(without, limits_of(without)) == without
    assert [place.name for place in with_limits(without, known).limits.keep_out] == ["table"]


def test_a_box_is_smaller_by_the_margin_at_every_wall_and_in_whole_mm_inwards():
    found = limit_box("workspace", np.array([*CORNERS, [0.4, 0.1, 0.3]]), 0.01)
    assert found == LimitBox((0.31, -0.19, 0.11), (0.59, 0.29, 0.49))
    rough = limit_box("workspace", np.array([[0.3001, -0.2004, 0.1], [0.6009, 0.3001, 0.5]]), 0.0)
    assert rough == LimitBox((0.301, -0.2, 0.1), (0.6, 0.3, 0.5))
    assert len(found.corners()) == 8 and found.corners()[0].tolist() == [0.31, -0.19, 0.11]


def test_the_table_is_where_the_lowest_part_of_the_tool_touched_and_higher_by_the_margin():
    points = [[0.3, -0.2, 0.11], [0.6, -0.2, 0.11], [0.3, 0.2, 0.11], [0.5, 0.2, 0.11]]
    level = table_plane(tools(points), (FINGERS, HELD), 0.01)
    assert level.normal == (0.0, 0.0, 1.0) and 0.109 <= level.offset <= 0.11, "balls are up to 1 mm larger"
    assert table_plane(tools(points), (), 0.01) == TablePlane((0.0, 0.0, 1.0), 0.12)
    tilted = table_plane(tools(points, (0.3, 0.0, 0.0)), (FINGERS, HELD), 0.0)
    assert tilted.offset == pytest.approx(0.11 - 0.01 - 0.04 * math.sin(0.3), abs=0.0012)


def test_a_table_that_is_not_level_is_found_and_no_point_is_above_it():
    turn = matrix_from_vector(np.array([0.05, -0.03, 0.0]))
    flat = np.array([[0.3, -0.2, 0.0], [0.6, -0.2, 0.0], [0.3, 0.2, 0.001], [0.5, 0.2, 0.0], [0.45, 0.0, 0.002]])
    points = flat @ turn.T + [0.0, 0.0, 0.1]
    found = table_plane(tools(points), (), 0.0)
    assert np.degrees(np.arccos(np.array(found.normal) @ turn[:, 2])) < 0.5
    above = points @ np.array(found.normal) / np.linalg.norm(found.normal) - found.offset
    assert above.min() > -0.003 and above.max() <= 1e-9


@pytest.mark.parametrize(
    ("part", "points", "words"),
    [
        ("table", [], "the table has 0 points; valid are 3 or more"),
        ("table", [[0.3, 0.0, 0.1], [0.6, 0.0, 0.1]], "the table has 2 points; valid are 3 or more"),
        ("table", [[0.3, 0.0, 0.1], [0.4, 0.01, 0.1], [0.6, 0.0, 0.1]], "points lie on a line; valid are points far"),
        ("table", [[0.4, 0.0, 0.1]] * 3, "points lie on a line"),
        (
            "table",
            [[0.3, -0.2, 0.1], [0.6, -0.2, 0.1], [0.3, 0.2, 0.1], [0.6, 0.2, 0.14]],
            "are up to 10 mm off a plane; valid is up to 5 mm",
        ),
        ("table", [[0.3, -0.2, 0.1], [0.6, -0.2, 0.2], [0.3, 0.2, 0.1]], "tilted by 18 degrees; valid is up to 10"),
        ("workspace", CORNERS[:1], "the workspace has 1 points; valid are 2 or more"),
        ("workspace", [[0.3, -0.2, 0.1], [0.6, 0.3, 0.1]], "no volume, as its points span 0.000 m along z; valid is"),
        (
            "workspace",
            [[0.3, -0.2, 0.1], [0.6, 0.3, 0.125]],
            "a margin of 0.01 m eats the workspace, as its points span 0.025 m along z; valid is up to 0.007 m",
        ),
        (
            "workspace",
            [[0.3, -0.2, -0.03], [0.6, 0.3, 0.5]],
            r"the corner \[0.310, -0.190, -0.020\] m of the workspace is 20 mm below the table",
        ),
        (
            "start",
            [[0.25, -0.1, 0.2], [0.5, 0.1, 0.3]],
            "the start box runs along x from 0.260 to 0.490 m; valid is inside the workspace, 0.300 to 0.700 m",
        ),
        ("start", [[0.4, -0.1, 0.2], [0.5, 0.1, 0.205]], "the start box has no volume"),
    ],
)
def test_bad_points_are_one_sentence(task, known, part, points, words):
    poses = tools(points) if points else np.empty((0, 4, 4))
    with pytest.raises(CalibrationError, match=words) as raised:
        measured(part, poses, known, task, 0.01, None)
    assert "\n" not in str(raised.value) and "valid" in str(raised.value)


@pytest.mark.parametrize("margin", [-0.001, 0.2, math.nan])
def test_a_margin_has_a_range(margin):
    with pytest.raises(CalibrationError, match=r"valid is 0 to 0.1 m"):
        check_margin(margin)


@pytest.mark.parametrize(("name", "far"), [("franka_place", [0.85, 0.6, 0.5]), ("ur5_pick", [0.9, 0.6, 0.5])])
def test_a_corner_that_the_arm_does_not_reach_is_refused(name, far):
    """Though each of the points may have been reached."""
    system = find_system(name)
    known, arm = limits_of(system.task), system.judged_arm()
    points = [[0.4, -0.2, 0.1], far]
    with pytest.raises(CalibrationError, match=r"the corner \[.*\] m of the workspace is outside the arm's reach"):
        measured("workspace", tools(points), known, system.task, 0.0, arm)
    inside = [known.workspace.low, known.workspace.high]
    assert measured("workspace", tools(inside), known, system.task, 0.0, arm) == known, "the shipped one is reached"


def test_limits_that_contradict_each_other_are_refused(task, known):
    with pytest.raises(BidError, match="start: x runs from"):
        with_limits(task, replace(known, workspace=LimitBox((0.45, -0.3, 0.02), (0.7, 0.3, 0.6))))
    with pytest.raises(BidError, match="inside keep_out 'table'"):
        with_limits(task, replace(known, table=TablePlane((0.0, 0.0, 1.0), 0.3)))


def test_a_table_that_is_a_box_is_refused(task):
    box = replace(task.limits.keep_out[0], normal=None, offset=None, box_min=(0, 0, 0), box_max=(1, 1, 0.1))
    with pytest.raises(CalibrationError, match="keep_out 'table' is a box; valid is a plane"):
        limits_of(replace(task, limits=replace(task.limits, keep_out=(box,)), start=None))
