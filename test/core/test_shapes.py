"""Shapes: their distances against ones computed otherwise, and the sentences of what is impossible."""

from dataclasses import replace

import numpy as np
import pytest
import yaml

from bid_ros.core.errors import TaskError
from bid_ros.core.shapes import DOWN, SPARE_M, KeepOut, ToolBalls, ToolPart
from bid_ros.core.task import load_task, parse_task

BOX = KeepOut("post", (0.2, -0.1, 0.0), (0.3, 0.1, 0.5))
TABLE = KeepOut("table", normal=(0.0, 0.0, 2.0), offset=0.01)
TIP = ToolPart("tip", (0.0, 0.0, 0.02), 0.01)


@pytest.fixture
def task(root):
    return load_task(root / "config" / "ur5_pick" / "task.yaml")


def test_the_distance_from_a_box_is_that_of_its_nearest_point():
    points = np.random.default_rng(0).uniform(-0.3, 0.7, (300, 3))
    grid = np.stack(np.meshgrid(*[np.linspace(*ends, 41) for ends in zip(BOX.box_min, BOX.box_max, strict=True)]), -1)
    solid = grid.reshape(-1, 3)
    for point, found in zip(points, BOX.clearance(points, np.full(300, 0.02)), strict=True):
        inside = np.all((point > BOX.box_min) & (point < BOX.box_max))
        if inside:
            depth = np.min([point - np.array(BOX.box_min), np.array(BOX.box_max) - point])
            assert found == pytest.approx(-depth - 0.02)
        else:
            assert found == pytest.approx(np.linalg.norm(solid - point, axis=1).min() - 0.02, abs=0.01)


def test_the_distance_from_a_plane_counts_along_its_normal():
    points = np.array([[0.3, 0.2, 0.05], [0.0, 0.0, 0.01], [0.0, 0.0, -0.2]])
    np.testing.assert_allclose(TABLE.clearance(points, np.array([0.01, 0.0, 0.1])), [0.03, 0.0, -0.31])


@pytest.mark.parametrize("radius", [0.005, 0.02, 0.06])
@pytest.mark.parametrize("length", [0.0, 0.01, 0.2])
def test_the_balls_of_a_capsule_cover_it_and_hardly_more(radius, length):
    end = np.array([0.6, 0.0, 0.8]) * length
    centres, radii = ToolPart("arm", (0.0, 0.0, 0.0), radius, tuple(end)).balls()
    random = np.random.default_rng(1)
    ways = random.standard_normal((400, 3))
    surface = random.uniform(0, 1, (400, 1)) * end + radius * ways / np.linalg.norm(ways, axis=1, keepdims=True)
    apart = np.linalg.norm(surface[:, None] - centres, axis=2) - radii
    assert apart.min(axis=1).max() <= 1e-12 and radii.max() <= radius + SPARE_M + 1e-12


def test_the_tool_s_parts_turn_with_it():
    balls = ToolBalls((TIP, ToolPart("mount", (0.05, 0.0, 0.0), 0.02)))
    placed = balls.at(np.array([[0.5, 0.0, 0.3]]), DOWN[None])
    np.testing.assert_allclose(placed, [[[0.5, 0.0, 0.28], [0.55, 0.0, 0.3]]])
    assert balls.names == ["tip", "mount"]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "keep_out 'x' is no shape; valid is a box of box_min and box_max, or a plane of normal and offset"),
        ({"box_min": (0.0, 0.0, 0.0)}, "is no shape"),
        ({"normal": (0.0, 0.0, 1.0)}, "is no shape"),
        ({"box_min": (0.0,) * 3, "box_max": (1.0,) * 3, "offset": 0.0}, "is no shape"),
        ({"box_min": (0.0, 0.2, 0.0), "box_max": (1.0, 0.1, 1.0)}, r"y runs from 0\.2 to 0\.1; valid is min < max"),
        ({"normal": (0.0, 0.0, 0.0), "offset": 0.1}, "valid is a direction"),
    ],
)
def test_an_impossible_place_is_one_sentence(fields, sentence):
    with pytest.raises(TaskError, match=sentence):
        KeepOut("x", **fields)


def test_a_part_needs_a_radius():
    with pytest.raises(TaskError, match="radius"):
        ToolPart("x", (0.0, 0.0, 0.0), 0.0)


def test_a_part_is_near_the_tool():
    with pytest.raises(TaskError, match=r"tool_shape 'x' has an end at \[0\.0, .*0\.0\]; valid is up to 2 m away"):
        ToolPart("x", (0.0, 0.0, 0.0), 0.01, (0.0, 0.0, 1e9))


def test_contradictions_are_found_when_the_task_loads(task):
    with pytest.raises(TaskError, match="keep_out names post, post; valid are different names"):
        replace(task.limits, keep_out=(BOX, BOX))
    kept = replace(task.limits, keep_out=(TABLE,))
    with pytest.raises(TaskError, match="keep_out names table, but the task has no tool_shape"):
        replace(task, limits=kept, tool_shape=())
    with pytest.raises(TaskError, match="tool_shape names tip, tip"):
        replace(task, tool_shape=(TIP, TIP))
    start = KeepOut("shelf", (0.50, -0.05, 0.0), (0.52, 0.05, 0.30))
    with pytest.raises(TaskError, match=r"start: with the tool at \[0\.\d+, .* mm inside keep_out 'shelf'"):
        replace(task, limits=replace(task.limits, keep_out=(start,)), tool_shape=(TIP,))
    assert replace(task, limits=kept, tool_shape=(TIP,)).limits.keep_out == (TABLE,)


def test_a_task_file_says_places_and_shape(root):
    content = yaml.safe_load((root / "config" / "ur5_pick" / "task.yaml").read_text())
    content["tool_shape"] = [
        {"name": "fingers", "begin": [0.0, -0.05, 0.006], "end": [0.0, 0.05, 0.006], "radius": 0.012}
    ]
    content["limits"]["keep_out"] = [{"name": "table", "normal": [0.0, 0.0, 1.0], "offset": 0.0}]
    found = parse_task(content)
    assert [place.name for place in found.limits.keep_out] == ["table"]
    assert found.tool_shape == (ToolPart("fingers", (0.0, -0.05, 0.006), 0.012, (0.0, 0.05, 0.006)),)
    content["limits"]["keep_out"] = [{"name": "wall"}]
    with pytest.raises(TaskError, match="keep_out 'wall' is no shape"):
        parse_task(content)


def test_a_held_object_is_one_that_the_gripper_can_hold(task):
    sentence = r"tool_shape 'tip' is held at an opening of 0\.2 m; valid is up to gripper_max, 0\.085 m"
    with pytest.raises(TaskError, match=sentence):
        replace(task, tool_shape=(replace(TIP, held=0.2),))
    with pytest.raises(TaskError, match="held"):
        replace(TIP, held=0.0)
