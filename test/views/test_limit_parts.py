"""Limits in a scene: those of the task, and those that are measured now."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from bid_ros.core.shapes import KeepOut
from bid_ros.views.drawn import Box
from bid_ros.views.limit_parts import limit_parts, measured_parts
from bid_ros.views.scene import ViewedScene


def ends(part):
    return part.lines.reshape(-1, 3).min(axis=0), part.lines.reshape(-1, 3).max(axis=0)


def test_a_task_shows_its_table_and_its_start_box(task):
    table, start = limit_parts(task)
    assert (table.name, start.name) == ("keep_out/table", "start")
    low, high = ends(table)
    np.testing.assert_allclose(low, [0.3, -0.3, 0.0], atol=1e-12)
    np.testing.assert_allclose(high, [0.7, 0.3, 0.0], atol=1e-12)
    assert isinstance(start, Box) and start.low == task.start.tool_min and start.high == task.start.tool_max
    standing = [part.name for part in ViewedScene(task).standing()]
    assert standing == ["workspace", "safety", "keep_out/table", "start"]


def test_a_wall_is_drawn_beside_the_workspace_and_a_box_as_a_box(task):
    wall = KeepOut("wall", normal=(-2.0, 0.0, 0.0), offset=-0.8)
    box = KeepOut("bin", box_min=(0.1, 0.1, 0.0), box_max=(0.2, 0.2, 0.1))
    shown = limit_parts(replace(task, limits=replace(task.limits, keep_out=(wall, box))))
    low, high = ends(shown[0])
    np.testing.assert_allclose(low, [0.8, -0.3, 0.02], atol=1e-12)
    np.testing.assert_allclose(high, [0.8, 0.3, 0.6], atol=1e-12)
    assert isinstance(shown[1], Box) and shown[1].name == "keep_out/bin"


def test_what_is_measured_is_shown_until_it_is_taken_back(task):
    said = {
        "table": {"normal": [0.0, 0.0, 1.0], "offset": 0.05},
        "workspace": {"low": [0.4, -0.2, 0.1], "high": [0.6, 0.2, 0.5]},
        "points": [[0.4, 0.0, 0.2], [0.5, 0.0, 0.2]],
    }
    parts = {part.name: part for part in measured_parts(json.dumps(said), task)}
    assert list(parts) == ["new/table", "new/workspace", "new/start", "new/points"]
    low, high = ends(parts["new/table"])
    np.testing.assert_allclose([low, high], [[0.4, -0.2, 0.05], [0.6, 0.2, 0.05]], atol=1e-12)
    assert parts["new/workspace"].lines.shape == (12, 2, 3)
    np.testing.assert_allclose(ends(parts["new/workspace"]), [[0.4, -0.2, 0.1], [0.6, 0.2, 0.5]])
    assert parts["new/points"].lines.shape == (6, 2, 3) and not parts["new/start"].lines.size
    assert not any(part.lines.size for part in measured_parts("{}", task))


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "3", '{"table": 3}', '{"table": {"normal": [0, 0], "offset": 1}}', '{"points": [[1, 2]]}'),
        *('{"workspace": {"low": [0, 0, 0]}}', '{"points": [[1, 2, NaN]]}', "[" * 100_000, '{"points": [[1, 2, "x"]]}'),
        f'{{"points": [[1, 2, 1{"0" * 400}]]}}',
    ],
)
def test_a_message_that_says_no_limits_shows_nothing(task, text):
    assert measured_parts(text, task) == []
