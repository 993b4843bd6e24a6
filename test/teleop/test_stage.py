"""First motions: each begins where the arm is, keeps the limits, does what it says and ends by itself."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.core.rotation import DOWN_6D
from bid_ros.core.task import load_task
from bid_ros.safety.envelope import Envelope
from bid_ros.teleop.base import EpisodeStart
from bid_ros.teleop.stage import StageDevice, StageSettings, start_of

BEGIN_NS = 10**15
DT_NS = 50_000_000
TOOL = np.array([0.45, 0.1, 0.4])


@pytest.fixture(params=["franka_place", "ur5_pick"])
def task(root, request):
    return load_task(root / "config" / request.param / "task.yaml")


def played(task, tool=TOOL, **options):
    """Return the first rows of the chunks every 50 ms of a whole motion, each judged by the envelope."""
    device, envelope = StageDevice(task, StageSettings(**options)), Envelope(task)
    device.begin(EpisodeStart("stage", 0, tool, np.array(DOWN_6D), {}, BEGIN_NS))
    rows = []
    for tick in range(2_000):
        chunk = device.chunk_at(BEGIN_NS + tick * DT_NS, 12, DT_NS)
        assert (verdict := envelope.check(chunk, BEGIN_NS + tick * DT_NS, chunk.actions[0][:3])).ok, verdict.reason
        rows.append(chunk.actions[0])
        if device.take_mark() == "success":
            assert device.take_mark() == "" and chunk.source == "teleop"
            return np.array(rows)
    raise AssertionError("the motion does not end")


def test_the_gripper_opens_and_closes_while_the_arm_holds(task):
    rows, limits = played(task, motion="gripper"), task.limits
    assert (rows[:, :3] == TOOL).all()
    changes = np.flatnonzero(np.diff(rows[:, 9]))
    assert [rows[0, 9], *rows[changes + 1, 9]] == [limits.gripper_max, limits.gripper_min, limits.gripper_max]


def test_the_tool_goes_2_cm_along_each_axis_and_back(task):
    places = played(task, motion="axes")[:, :3] - TOOL
    assert places.max(0) == pytest.approx([0.02] * 3, abs=1e-3) and places.min(0) == pytest.approx([0.0] * 3, abs=1e-9)
    assert (np.sort(np.abs(places), axis=1)[:, :2] < 1e-9).all(), "one axis at a time"
    assert places[-1] == pytest.approx([0.0] * 3, abs=1e-9)
    assert np.abs(np.diff(places, axis=0)).max() / 0.05 < 0.06, "m/s"


def test_a_step_that_would_leave_the_workspace_goes_the_other_way(task):
    tool = np.array(task.limits.workspace_max) - 0.01
    places = played(task, tool, motion="axes")[:, :3] - tool
    assert places.min(0) == pytest.approx([-0.02] * 3, abs=1e-3) and places.max() < 1e-9


def test_home_is_the_middle_of_the_starts(task):
    rows = played(task, motion="home")
    assert rows[0, :3] == pytest.approx(TOOL) and rows[-1, :3] == pytest.approx(start_of(task))
    low, high = task.start.tool_min, task.start.tool_max
    assert (low < rows[-1, :3]).all() and (rows[-1, :3] < high).all()


@pytest.mark.parametrize("speed", [0.1, 1.0])
def test_a_round_is_as_fast_as_it_is_asked_to_be(task, speed):
    places = played(task, motion="round", speed=speed)[:, :3]
    fastest = np.linalg.norm(np.diff(places, axis=0), axis=1).max() / 0.05
    assert 0.5 * 0.25 * speed < fastest <= 0.25 * speed * 1.001
    assert places[-1] == pytest.approx(TOOL)
