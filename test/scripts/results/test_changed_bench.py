"""``scripts/results changed-bench``: what each change does, and where its results go."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from results import changed_bench
from results.changed_bench import CHANGES, without_motion

from bid_ros.commands.tasks import task_path
from bid_ros.core.observation import ObservationBuffer
from bid_ros.core.task import load_task


def test_the_newest_value_stands_at_each_step():
    task = load_task(task_path("pusht"))
    buffer = ObservationBuffer(task)
    for step in range(3):
        for feature in task.observation:
            buffer.add(feature.name, (step + 1) * task.dt_ns, np.full(feature.shape, float(step)))
    usual, own = buffer.assemble(), without_motion(buffer)
    assert own.stamp_ns == usual.stamp_ns
    for name, rows in usual.values.items():
        assert len(rows) == task.observation_steps == 2 and not np.array_equal(rows[0], rows[1])
        assert np.array_equal(own.values[name], [rows[1], rows[1]])


@pytest.mark.parametrize("change", CHANGES)
def test_results_are_kept_apart_from_the_usual_ones(monkeypatch, change):
    given, done = [], []
    monkeypatch.setattr(changed_bench, "bid", lambda arguments: given.append(arguments) or 0)
    monkeypatch.setitem(CHANGES, change, lambda: done.append(change))
    monkeypatch.setattr(sys, "argv", ["changed-bench", change, "pusht", "--decoder", "vanilla,bid", "--workers", "8"])
    assert changed_bench.main() == 0 and done == [change]
    own = ["--decoder", "vanilla,bid", "--workers", "8"]
    assert given == [["bench", "pusht", "--out", f"runs/pusht_{change}", *own, "--workers", "1"]]
