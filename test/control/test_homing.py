from dataclasses import replace

import numpy as np
import pytest

from bid_ros.control.homing import HomingPlan
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import BidError
from bid_ros.core.rotation import matrix_from_6d, matrix_from_vector, matrix_to_6d
from bid_ros.safety.envelope import Envelope

NOW = 9_000 * NANOSECONDS
DOWN = np.array([1.0, 0.0, 0.0, 0.0, -1.0, 0.0])
TURNED = matrix_to_6d(matrix_from_vector([0.3, 0.0, 0.7]) @ matrix_from_6d(DOWN))
HIGH, LOW = [0.45, 0.1, 0.32], [0.58, -0.1, 0.108]
OTHER = [0.5, -0.12, 0.30]
STEP_NS = 50_000_000
CASES = [
    (LOW, DOWN, HIGH),
    (LOW, TURNED, HIGH),
    (HIGH, DOWN, OTHER),
    (HIGH, TURNED, HIGH),
    (HIGH, DOWN, LOW),
    (HIGH, DOWN, HIGH),
]


def positions(plan):
    end = NOW + round(plan.duration * 1e9) + NANOSECONDS
    return np.array([plan.chunk_at(now, 1, STEP_NS).actions[0] for now in range(NOW, end, 10_000_000)])


@pytest.mark.parametrize(("start", "rotation", "target"), CASES)
def test_it_ends_at_the_target_and_every_chunk_passes_the_envelope(task, start, rotation, target):
    envelope = Envelope(task)
    plan = HomingPlan(start, rotation, target, DOWN, 0.08, NOW)
    end = NOW + round(plan.duration * 1e9)
    for dt_ns, steps in ((STEP_NS, 10), (task.dt_ns, 16)):
        for now in range(NOW, end + STEP_NS, STEP_NS):
            chunk = plan.chunk_at(now, steps, dt_ns)
            verdict = envelope.check(chunk, now, chunk.actions[0, :3])
            assert verdict.ok, f"{verdict.reason} at {(now - NOW) / 1e9:.2f} s"
    first, last = plan.chunk_at(NOW, 1, STEP_NS).actions[0], plan.chunk_at(end, 1, STEP_NS).actions[0]
    np.testing.assert_allclose(first, [*start, *rotation, 0.08], atol=1e-9)
    np.testing.assert_allclose(last, [*target, *DOWN, 0.08], atol=1e-6)


@pytest.mark.parametrize(("start", "rotation", "target"), CASES)
def test_it_slows_down_for_a_task_with_lower_limits(task, start, rotation, target):
    slow = replace(task, limits=replace(task.limits, max_speed=0.1, max_acceleration=0.5, max_turn_rate=0.3))
    envelope = Envelope(slow)
    plan = HomingPlan(start, rotation, target, DOWN, 0.08, NOW, slow.limits)
    for now in range(NOW, NOW + round(plan.duration * 1e9) + STEP_NS, STEP_NS):
        chunk = plan.chunk_at(now, 10, STEP_NS)
        verdict = envelope.check(chunk, now, chunk.actions[0, :3])
        assert verdict.ok, f"{verdict.reason} at {(now - NOW) / 1e9:.2f} s"
    usual = [HomingPlan(start, rotation, target, DOWN, 0.08, NOW, limits) for limits in (None, task.limits)]
    assert usual[0].duration == usual[1].duration


@pytest.mark.parametrize(("start", "target"), [(LOW, HIGH), (HIGH, LOW), (LOW, [0.4, 0.2, 0.1])])
def test_below_the_clearance_it_only_goes_straight_up_or_down(start, target):
    rows = positions(HomingPlan(start, TURNED, target, DOWN, 0.08, NOW))
    low = rows[:, 2] < 0.22 - 1e-6
    assert low.any()
    steps = np.diff(rows, axis=0)[low[1:] & low[:-1]]
    assert np.abs(steps[:, :2]).max() < 1e-9, "it moves sideways while low"
    assert np.abs(steps[:, 3:9]).max() < 1e-9, "it turns while low"


def test_a_low_tool_that_is_already_there_stays():
    plan = HomingPlan(LOW, DOWN, LOW, DOWN, 0.0, NOW)
    assert plan.duration == 0.0
    np.testing.assert_allclose(plan.chunk_at(NOW + 5 * NANOSECONDS, 3, STEP_NS).actions[:, :3], [LOW] * 3)


def test_chunks_come_from_the_episode_and_are_counted():
    plan = HomingPlan(HIGH, DOWN, OTHER, DOWN, 0.08, NOW)
    chunks = [plan.chunk_at(NOW + k * STEP_NS, 10, STEP_NS) for k in range(3)]
    assert [chunk.sequence for chunk in chunks] == [0, 1, 2]
    assert {(chunk.source, chunk.frame_id) for chunk in chunks} == {("episode", "base")}


def test_it_keeps_its_own_speed_limits():
    rows = positions(HomingPlan([0.32, -0.25, 0.05], TURNED, [0.65, 0.25, 0.35], DOWN, 0.08, NOW))[:, :3]
    assert np.linalg.norm(np.diff(rows, axis=0), axis=1).max() / 0.01 < 0.2501


@pytest.mark.parametrize("index", range(4))
def test_poses_that_are_not_finite_are_refused(index):
    poses = [np.array(HIGH), DOWN.copy(), np.array(OTHER), DOWN.copy()]
    poses[index][1] = np.nan
    with pytest.raises(BidError, match="finite"):
        HomingPlan(*poses, 0.08, NOW)


@pytest.mark.parametrize("slow", [0.2, 0.5])
def test_a_slow_homing_is_the_same_motion_in_more_time(task, slow):
    start, target = (0.4, -0.2, 0.25), (0.5, 0.1, 0.3)
    usual, slower = (HomingPlan(start, TURNED, target, DOWN, 0.08, NOW, task.limits, by) for by in (1.0, slow))
    assert slower.duration == pytest.approx(usual.duration / slow)
    times = np.linspace(0, usual.duration, 50)
    np.testing.assert_allclose(
        slower.trajectory.actions_at(times / slow), usual.trajectory.actions_at(times), atol=1e-9
    )
