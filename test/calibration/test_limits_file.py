"""Measured limits are written into a task file, and every other word stays."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from bid_ros.calibration.limits import PARTS, LimitBox, MeasuredLimits, TablePlane, limits_of
from bid_ros.calibration.limits_file import edited_task, write_limits
from bid_ros.core.errors import BidError
from bid_ros.core.settings import load_yaml
from bid_ros.core.task import load_task
from bid_ros.system.folder import find_system
from bid_ros.system.stages import note_stage, read_record

LIMITS = MeasuredLimits(
    TablePlane((0.0, 0.01, 0.99995), 0.0123),
    LimitBox((0.35, -0.2, 0.05), (0.6, 0.25, 0.5)),
    LimitBox((0.4, -0.1, 0.3), (0.5, 0.1, 0.35)),
)


def comments(text: str) -> list[str]:
    return [line.split("#", 1)[1].strip() for line in text.splitlines() if "#" in line]


@pytest.mark.parametrize("name", ["franka_place", "ur5_pick", "joints/franka_place", "new/ros"])
def test_every_shipped_task_keeps_its_other_words(root, name, tmp_path):
    text = (root / "config" / name / "task.yaml").read_text()
    new = edited_task(text, LIMITS, PARTS)
    assert comments(new) == comments(text)
    assert len(set(text.splitlines()) - set(new.splitlines())) == 5, "two corners of two boxes, and the table"
    (tmp_path / "task.yaml").write_text(new)
    assert limits_of(load_task(tmp_path / "task.yaml")).workspace == LIMITS.workspace
    assert edited_task(new, LIMITS, PARTS) == new


def test_only_the_parts_that_were_measured_change(system):
    before = load_yaml((system.folder / "task.yaml").read_text())
    write_limits(system, LIMITS, ("workspace",))
    after = load_yaml((system.folder / "task.yaml").read_text())
    before["limits"].update(workspace_min=[0.35, -0.2, 0.05], workspace_max=[0.6, 0.25, 0.5])
    before["start"] = after["start"]
    assert after == before and after["start"]["tool_min"] == [0.4, -0.15, 0.28]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  keep_out:\n    - {name: table, normal: [0.0, 0.0, 1.0], offset: 0.0}", "  gripper_min: 0.0"),
        ("{name: table, normal: [0.0, 0.0, 1.0], offset: 0.0}", "{name: bin, box_min: [2, 2, 2], box_max: [3, 3, 3]}"),
        ("\n    - {name: table, normal: [0.0, 0.0, 1.0], offset: 0.0}", " []"),
        ("{name: table, normal:", "{name: table, offset: 0.0, normal:"),
    ],
)
def test_a_table_that_is_missing_is_added(system, old, new):
    file = system.folder / "task.yaml"
    text = file.read_text()
    assert old in text
    changed = text.replace("  gripper_min: 0.0                     # m\n", "") if "gripper_min" in new else text
    changed = changed.replace(old, new)
    file.write_text(changed.replace(", offset: 0.0}", "}") if "offset: 0.0, normal" in new else changed)
    write_limits(system, LIMITS, PARTS)
    places = load_task(file).limits.keep_out
    assert [place.offset for place in places if place.name == "table"] == [0.0123]
    assert comments(file.read_text())[:3] == comments(text)[:3]


def test_a_start_box_that_is_missing_is_added(system):
    file = system.folder / "task.yaml"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith(("start:", "  tool_m"))))
    assert load_task(file).start is None
    write_limits(system, LIMITS, PARTS)
    assert load_task(file).start.tool_max == (0.5, 0.1, 0.35)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (replace(LIMITS, start=LimitBox((0.1, -0.1, 0.3), (0.5, 0.1, 0.35))), "start: x runs from 0.1 to 0.5"),
        (replace(LIMITS, table=TablePlane((0.0, 0.0, 1.0), 0.4)), "inside keep_out 'table'"),
        (replace(LIMITS, workspace=LimitBox((0.35, 0.25, 0.05), (0.6, 0.25, 0.5))), "workspace y runs from"),
    ],
)
def test_a_file_that_would_not_be_valid_is_not_written(system, limits, words):
    file = system.folder / "task.yaml"
    before = file.read_text()
    with pytest.raises(BidError, match=words):
        write_limits(system, limits, PARTS)
    assert file.read_text() == before
    assert {item.name for item in system.folder.iterdir()} == {
        item.name for item in file.parent.iterdir() if not item.name.startswith(".")
    }


def test_a_file_that_is_written_in_a_way_that_cannot_be_edited_is_refused(system):
    """Here one value is said once and used twice: to change it would change the other too."""
    file = system.folder / "task.yaml"
    text = file.read_text().replace("[0.40, -0.15, 0.28]", "&a [0.40, -0.15, 0.28]")
    file.write_text(text.replace("workspace_min: [0.30, -0.30, 0.02]", "workspace_min: *a"))
    with pytest.raises(BidError, match="are written in a way that cannot be edited; write them plainly"):
        write_limits(find_system(system.folder), LIMITS, ("workspace",))


def test_a_system_that_is_like_another_gets_a_file_of_its_own(root, tmp_path):
    shutil.copytree(root / "config", tmp_path / "config")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "system.yaml").write_text("like: ../config/franka_place\n")
    shared = tmp_path / "config" / "franka_place" / "task.yaml"
    before = shared.read_text()
    write_limits(find_system(tmp_path / "mine"), LIMITS, PARTS)
    assert shared.read_text() == before
    assert load_task(tmp_path / "mine" / "task.yaml").limits.workspace_min == (0.35, -0.2, 0.05)


def test_the_stages_of_a_robot_begin_anew(system):
    note_stage(system, "172.16.0.2", 1, {"passed": True})
    assert read_record(system, "172.16.0.2").passed == 1
    write_limits(system, LIMITS, PARTS)
    assert read_record(find_system(system.folder), "172.16.0.2").changed
