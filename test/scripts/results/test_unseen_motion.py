"""``scripts/results unseen-motion``: each step of an observation is the newest one."""

from __future__ import annotations

import numpy as np
from results.unseen_motion import without_motion

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
