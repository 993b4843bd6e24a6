from dataclasses import replace

import numpy as np
import pytest

from bid_ros.control.joint_chunks import TaskChunks
from bid_ros.control.trajectory import ChunkSource, MotionLimits, Move, Trajectory, end_of, minimum_jerk, turn_to
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.feature import Feature
from bid_ros.core.rotation import matrix_from_6d, matrix_from_vector, matrix_to_6d, vector_from_matrix
from bid_ros.system.folder import find_system

LIMITS = MotionLimits(0.2, 0.8, 6.0)
DOWN = np.array([1.0, 0.0, 0.0, 0.0, -1.0, 0.0])


def sampled(move, dt=0.002):
    times = np.arange(move.begin_s - 0.1, move.end_s + 0.1, dt)
    return times, move.displacement(times)


def peaks(positions, dt):
    return [float(np.linalg.norm(np.diff(positions, n, axis=0), axis=1).max() / dt**n) for n in (1, 2, 3)]


def test_two_points_give_the_minimum_jerk_polynomial():
    move = Move([[0.1, 0.2, 0.3], [0.3, 0.1, 0.5]], LIMITS, begin_s=1.0)
    times = np.linspace(0.5, move.end_s + 0.5, 301)
    expected = minimum_jerk(times, 1.0, move.end_s)[:, None] * np.array([0.2, -0.1, 0.2])
    np.testing.assert_allclose(move.displacement(times), expected, atol=1e-12)


def test_it_rests_before_and_after():
    move = Move([[0, 0, 0], [0.1, 0, 0]], LIMITS, begin_s=2.0)
    np.testing.assert_array_equal(move.displacement(np.array([-5.0, 2.0])), 0.0)
    np.testing.assert_allclose(move.displacement(np.array([move.end_s, 99.0])), [[0.1, 0, 0]] * 2, atol=1e-12)


def test_it_passes_through_every_point():
    points = np.array([[0.4, 0.0, 0.3], [0.5, 0.1, 0.35], [0.6, 0.0, 0.2]])
    _, displaced = sampled(Move(points, LIMITS))
    for point in points:
        assert np.linalg.norm(points[0] + displaced - point, axis=1).min() < 1e-3


@pytest.mark.parametrize(
    "points",
    [
        [[0, 0, 0], [0.3, 0, 0]],
        [[0, 0, 0], [0.005, 0, 0]],
        [[0, 0, 0], [0.1, 0.1, 0], [0.3, 0, 0]],
        [[0, 0, 0], [0.01, 0.12, 0], [0.02, 0, 0]],
        [[0, 0, 0], [0.01, 0, 0.1], [0.3, 0, 0.1], [0.3, 0, 0]],
    ],
)
def test_its_peaks_keep_the_limits_and_reach_one_of_them(points):
    _, displaced = sampled(Move(points, LIMITS))
    shares = np.array(peaks(displaced, 0.002)) / [LIMITS.speed, LIMITS.acceleration, LIMITS.jerk]
    assert shares.max() <= 1.02
    assert shares.max() >= 0.95


def test_speed_and_acceleration_are_continuous():
    """Halving the step halves the largest change of the acceleration; a corner's would double."""
    move = Move([[0, 0, 0], [0.05, 0.1, 0], [0.3, 0, 0.1]], LIMITS)
    changes = []
    for dt in (0.004, 0.002):
        _, displaced = sampled(move, dt)
        accelerations = np.diff(displaced, 2, axis=0) / dt**2
        changes.append(np.linalg.norm(np.diff(accelerations, axis=0), axis=1).max())
    assert changes[1] < 0.6 * changes[0]


def test_points_that_coincide_are_one():
    move = Move([[0, 0, 0], [0, 0, 0], [0.1, 0, 0]], LIMITS)
    assert move.end_s == pytest.approx(Move([[0, 0, 0], [0.1, 0, 0]], LIMITS).end_s)
    still = Move([[1, 2, 3], [1, 2, 3]], LIMITS, begin_s=4.0)
    assert still.end_s == 4.0
    np.testing.assert_array_equal(still.displacement(np.array([3.0, 4.0, 5.0])), 0.0)


@pytest.mark.parametrize("points", [[[0, 0, 0]], [[0, 0], [1, 1]], [[0, 0, 0], [np.nan, 0, 0]], [0, 0, 0]])
def test_points_that_are_no_way_are_refused(points):
    with pytest.raises(ValueError, match="two or more finite points"):
        Move(points, LIMITS)


@pytest.mark.parametrize("values", [(0.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, float("inf"))])
def test_limits_that_are_none_are_refused(values):
    with pytest.raises(ValueError, match="valid is a positive finite number"):
        MotionLimits(*values)


def trajectory(moves=(), turns=(), widths=((0.0, 0.04),), rotation_6d=DOWN):
    return Trajectory(np.array([0.5, 0.0, 0.3]), rotation_6d, moves, turns, widths, end_of(moves, turns))


def test_moves_that_overlap_add_up():
    first = Move([[0, 0, 0], [0.1, 0, 0]], LIMITS)
    second = Move([[0, 0, 0], [0, 0.1, 0]], LIMITS, begin_s=0.5 * first.end_s)
    times = np.linspace(0, second.end_s, 200)
    rows = trajectory((first, second)).actions_at(times)
    expected = np.array([0.5, 0, 0.3]) + first.displacement(times) + second.displacement(times)
    np.testing.assert_allclose(rows[:, :3], expected)
    np.testing.assert_allclose(rows[-1, :3], [0.6, 0.1, 0.3])


def test_the_width_changes_at_its_instant():
    widths = trajectory(widths=((0.0, 0.0), (1.5, 0.08))).actions_at([-1.0, 0.0, 1.4999, 1.5, 9.0])[:, 9]
    assert widths.tolist() == [0.0, 0.0, 0.0, 0.08, 0.08]


def test_a_turn_ends_at_its_target_about_one_axis():
    target = matrix_to_6d(matrix_from_vector([0.2, -0.4, 0.9]) @ matrix_from_6d(DOWN))
    turns = turn_to(DOWN, target, MotionLimits(0.5, 1.5, 20.0), 1.0)
    rows = trajectory(turns=turns).actions_at(np.linspace(0, turns[0].end_s, 50))[:, 3:9]
    np.testing.assert_allclose(rows[0], DOWN, atol=1e-12)
    np.testing.assert_allclose(rows[-1], target, atol=1e-9)
    vectors = [vector_from_matrix(matrix_from_6d(row) @ matrix_from_6d(DOWN).T) for row in rows]
    assert np.linalg.matrix_rank(np.array(vectors), tol=1e-9) == 1


def test_the_same_orientation_needs_no_turn():
    assert turn_to(DOWN, DOWN * 1.02, LIMITS) == ()


@pytest.mark.parametrize(
    "kinds",
    [("position", "rotation_6d"), ("position",), ("gripper", "position", "rotation_6d"), ("position", "gripper")],
)
def test_a_planned_chunk_has_the_actions_of_the_task_in_its_order(kinds):
    features = {
        "position": Feature("place", "position", frame="base"),
        "rotation_6d": Feature("turn", "rotation_6d", frame="base"),
        "gripper": Feature("width", "gripper"),
    }
    task = replace(find_system("franka_place").task, action=tuple(features[kind] for kind in kinds))
    source = ChunkSource(trajectory((Move([[0, 0, 0], [0.2, 0, 0]], LIMITS),)), 0, "episode", "base")
    planned = source.chunk_at(0, 4, 100_000_000)
    made = TaskChunks(task, None).of(planned)
    parts = np.split(planned.actions, [3, 9], axis=1)
    values = dict(zip(("position", "rotation_6d", "gripper"), parts, strict=True))
    np.testing.assert_array_equal(made.actions, np.concatenate([values[kind] for kind in kinds], axis=1))
    assert type(made) is ActionChunk and (made.source, made.sequence) == ("episode", 0)
    assert TaskChunks(task, None).of(made) is made, "what is of the task already stays as it is"


def test_chunks_sample_the_trajectory_at_now_and_are_counted():
    move = Move([[0, 0, 0], [0.2, 0, 0]], LIMITS)
    start = 7_000_000_000
    source = ChunkSource(trajectory((move,)), start, "teleop", "base")
    first = source.chunk_at(start, 10, 50_000_000)
    second = source.chunk_at(start + 50_000_000, 10, 50_000_000)
    assert (first.source, first.frame_id, first.stamp_ns, first.dt_ns) == ("teleop", "base", start, 50_000_000)
    assert (first.sequence, second.sequence) == (0, 1)
    np.testing.assert_allclose(first.actions[1:], second.actions[:-1], atol=1e-12)
    assert first.actions.shape == (10, 10)
