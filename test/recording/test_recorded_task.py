"""Bags that are read as another task than the one that they were recorded for."""

from __future__ import annotations

from dataclasses import replace

from bid_ros.formats.bag import BagSource
from bid_ros.recording.recorded_task import other_tasks
from bid_ros.recording.writer import BagWriter


def test_bags_that_were_recorded_for_another_task_are_said_where_they_are_read(task, tmp_path):
    other = {"task": "pour_tea"}
    for name, custom in (("own", {"task": task.name}), ("other", other), ("another", other), ("unsaid", {})):
        with BagWriter(tmp_path / name, custom_data=custom):
            pass
    bags = [tmp_path / name for name in ("own", "other", "another", "unsaid")]
    (sentence,) = other_tasks(bags, task)
    assert sentence == f"2 of 4 bags were recorded for task 'pour_tea', and are read as task '{task.name}'"
    assert sentence in BagSource(bags, task).contents.notes
    assert not other_tasks([bags[0], bags[3]], task)
    assert not other_tasks(bags[1:3], replace(task, name="pour_tea"))
