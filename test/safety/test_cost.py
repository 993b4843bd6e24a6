"""What a check costs, in array operations: neither the speed of the computer nor its load counts."""

import time
from dataclasses import replace

import numpy as np
import pytest
from joint_task import HOME, SYSTEMS, around_home, joint_chunk, joint_task, model_of

from bid_ros.core.chunk import ActionChunk
from bid_ros.core.rotation import matrix_to_6d
from bid_ros.core.task import load_task
from bid_ros.safety.envelope import Envelope

NOW, ROWS = 1_000_000_000_000, 15
LEAST_RUNS, MOST_RUNS = 60, 1000
# A check took so many operations, Franka and UR. It fails at 1.5 times as many.
OPERATIONS = {"poses": {"franka": 345, "ur": 335}, "joints": {"franka": 340, "ur": 330}}


def operations(count=50):
    """Some array operations of the size that a check has."""
    values = np.ones((ROWS, 3))
    for _ in range(count):
        np.sqrt((values * values).sum(axis=-1))


def operations_of(work, most, count=50):
    """Return how many operations ``work`` takes: the quickest of many runs of both, in turns, in CPU time.

    A busy computer slows some runs down. So it goes on for a while, as long as there seem to be more than ``most``.
    """
    took, found = {work: [], operations: []}, np.inf
    while len(took[work]) < LEAST_RUNS or (found >= most and len(took[work]) < MOST_RUNS):
        for run, times in took.items():
            begun = time.thread_time_ns()
            run()
            times.append(time.thread_time_ns() - begun)
        found = count * min(took[work]) / min(took[operations])
    return found


def posed_check(robot, root):
    """Return a check of a motion of the tool of a shipped task from home: all rules but that of the arm's own parts."""
    task, arm, home = (
        load_task(root / "config" / SYSTEMS[robot] / "task.yaml"),
        model_of(joint_task(robot)),
        HOME[robot],
    )
    wide = {"workspace_min": (-3.0,) * 3, "workspace_max": (3.0,) * 3, "max_tilt": 3.1, "min_self_distance": None}
    task = replace(task, start=None, limits=replace(task.limits, **wide))
    place, rotation = arm.forward(home)
    rows = np.zeros((ROWS, task.action_dim))
    rows[:, :3] = place + 0.01 * np.arange(ROWS)[:, None] * [0.0, 1.0, -0.3]
    rows[:, 3:9], rows[:, 9] = matrix_to_6d(rotation), 0.04
    envelope, chunk = Envelope(task, arm), ActionChunk(NOW, task.dt_ns, rows)
    return lambda: envelope.check(chunk, NOW, place, home, rotation)


def joint_check(robot):
    """Return a check of a motion of the joints of a task that commands them."""
    task, home = around_home(robot), HOME[robot]
    arm = model_of(task)
    envelope, (place, rotation) = Envelope(task, arm), arm.forward(home)
    chunk = joint_chunk(task, home + 0.01 * np.arange(ROWS)[:, None])
    return lambda: envelope.check(chunk, NOW, place, home, rotation)


@pytest.mark.parametrize("robot", ["franka", "ur"])
def test_a_check_takes_no_more_operations_than_it_needs(root, robot):
    for kind, check in (("poses", posed_check(robot, root)), ("joints", joint_check(robot))):
        assert check().ok
        most = 1.5 * OPERATIONS[kind][robot]
        assert operations_of(check, most) < most, kind
