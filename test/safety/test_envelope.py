from dataclasses import replace

import numpy as np
import pytest
from envelope_chunks import DOWN, NOW, ROWS, TOOL, column, ramp, rotations

from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import TaskError
from bid_ros.core.feature import Feature
from bid_ros.core.rotation import matrix_from_vector, matrix_to_6d
from bid_ros.safety.envelope import Envelope


def test_a_slow_chunk_passes(envelope, chunk):
    def change(actions):
        actions[:, 2] = np.linspace(0.3, 0.35, ROWS)

    verdict = envelope.check(chunk(change), NOW, TOOL)
    assert verdict.ok and verdict.rule == "" and verdict.reason == ""


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 15])
def test_not_finite_is_refused_also_in_a_row_that_has_passed(envelope, chunk, value, row):
    def change(actions):
        actions[row, 9] = value

    verdict = envelope.check(chunk(change), NOW + 300_000_000, TOOL)
    assert verdict.rule == "finite"
    assert verdict.reason == f"action {row}, column 9 is {value}; valid are finite numbers"


def test_another_number_of_values_is_refused(envelope, chunk):
    verdict = envelope.check(chunk(actions=np.zeros((16, 9))), NOW, TOOL)
    assert (verdict.rule, verdict.measured, verdict.limit) == ("shape", 9, 10)


def test_a_chunk_may_have_four_horizons_and_no_more(envelope, chunk, task):
    row = chunk().actions[:1]
    assert envelope.check(chunk(actions=np.tile(row, (64, 1))), NOW, TOOL).ok
    verdict = envelope.check(chunk(actions=np.tile(row, (65, 1))), NOW, TOOL)
    assert (verdict.rule, verdict.measured, verdict.limit) == ("shape", 65, 64)


def test_a_coarse_grid_that_would_hide_speed_is_refused(envelope, chunk, task):
    assert envelope.check(chunk(dt_ns=task.dt_ns // 2), NOW, TOOL).ok
    verdict = envelope.check(chunk(dt_ns=task.dt_ns + 1), NOW, TOOL)
    assert verdict.rule == "shape" and "dt" in verdict.reason


def test_another_frame_is_refused(envelope, chunk):
    verdict = envelope.check(chunk(frame_id="camera"), NOW, TOOL)
    assert verdict.rule == "frame"
    assert verdict.reason == "the chunk is in frame 'camera'; the task says 'base'"


@pytest.mark.parametrize(
    ("offset_s", "ok", "word"),
    [(-0.5, True, ""), (-0.51, False, "age"), (0.2, True, ""), (0.21, False, "ahead"), (-3600.0, False, "age")],
)
def test_age_and_lead_have_limits(envelope, chunk, offset_s, ok, word):
    verdict = envelope.check(chunk(stamp_ns=NOW + round(offset_s * 1e9)), NOW, TOOL)
    assert verdict.ok is ok
    if not ok:
        assert verdict.rule == "time" and word in verdict.reason
        assert verdict.measured == pytest.approx(abs(offset_s))


def test_a_chunk_that_is_over_is_refused_at_its_end_and_not_before(envelope, chunk):
    short = chunk(actions=chunk().actions[:2])
    assert envelope.check(short, short.end_ns - 1, TOOL).ok
    verdict = envelope.check(short, short.end_ns, TOOL)
    assert verdict.rule == "time" and "over" in verdict.reason


@pytest.mark.parametrize(
    ("axis", "value", "limit"),
    [(0, 0.29, 0.30), (0, 0.71, 0.70), (1, -0.31, -0.30), (1, 0.31, 0.30), (2, 0.01, 0.02), (2, 0.61, 0.60)],
)
def test_each_side_of_the_workspace_holds(envelope, chunk, axis, value, limit):
    verdict = envelope.check(chunk(column(axis, value)), NOW, TOOL)
    assert verdict.rule == "workspace"
    assert verdict.measured == pytest.approx(value) and verdict.limit == pytest.approx(limit)
    assert verdict.reason.startswith("xyz"[axis])


def test_the_edge_of_the_workspace_belongs_to_it(envelope, chunk):
    assert envelope.check(chunk(column(1, 0.30)), NOW, [0.5, 0.30, 0.3]).ok


def test_one_last_row_outside_refuses_the_whole_chunk(envelope, chunk):
    def change(actions):
        actions[-1, 0] = 0.7001

    assert envelope.check(chunk(change), NOW, TOOL).rule == "workspace"


@pytest.mark.parametrize(("speed", "rule"), [(0.49, ""), (0.51, "speed")])
def test_speed(envelope, chunk, task, speed, rule):
    fast = chunk(column(0, ramp(speed, 0.02)), dt_ns=20_000_000)
    verdict = envelope.check(fast, NOW, fast.actions[0, :3])
    assert verdict.rule == rule
    if rule:
        assert verdict.measured == pytest.approx(0.51) and verdict.limit == 0.5


def test_speed_is_that_of_all_axes_together(envelope, chunk):
    def change(actions):
        for axis in range(3):
            actions[:, axis] += 0.4 * 0.02 * (np.arange(ROWS) - 8)

    fast = chunk(change, dt_ns=20_000_000)
    verdict = envelope.check(fast, NOW, fast.actions[0, :3])
    assert verdict.rule == "speed" and verdict.measured == pytest.approx(0.4 * 3**0.5)


@pytest.mark.parametrize(("acceleration", "rule"), [(4.9, ""), (5.1, "acceleration")])
def test_acceleration(envelope, chunk, acceleration, rule):
    times = 0.01 * (np.arange(ROWS) - 7.5)
    smooth = chunk(column(0, 0.5 + 0.5 * acceleration * times**2), dt_ns=10_000_000)
    verdict = envelope.check(smooth, NOW, smooth.actions[0, :3])
    assert verdict.rule == rule
    if rule:
        assert verdict.measured == pytest.approx(5.1)


@pytest.mark.parametrize(("jerk", "rule"), [(190.0, ""), (210.0, "jerk")])
def test_jerk(envelope, chunk, jerk, rule):
    dt = 0.002
    times = dt * (np.arange(ROWS) - 7.5)
    smooth = chunk(column(0, 0.5 + jerk * times**3 / 6), dt_ns=round(dt * 1e9))
    verdict = envelope.check(smooth, NOW, smooth.actions[0, :3])
    assert verdict.rule == rule
    if rule:
        assert verdict.measured == pytest.approx(210.0, rel=1e-3)


def test_rows_that_have_passed_are_not_judged_but_the_one_before_now_is(envelope, chunk, task):
    def change(actions):
        actions[1, 0] = 0.9

    wild = chunk(change)
    assert envelope.check(wild, NOW + 2 * task.dt_ns - 1, TOOL).rule == "workspace"
    assert envelope.check(wild, NOW + 2 * task.dt_ns, TOOL).ok


def test_a_chunk_of_one_row_is_judged_without_derivatives(envelope, chunk):
    assert envelope.check(chunk(actions=chunk().actions[:1]), NOW, TOOL).ok


def test_values_far_beyond_any_number_format_of_use_are_refused_without_a_warning(envelope, chunk, recwarn):
    assert envelope.check(chunk(column(0, 1e300)), NOW, TOOL).rule == "workspace"
    assert envelope.check(chunk(column(3, 1e300)), NOW, TOOL).rule == "rotation"
    assert not recwarn.list


@pytest.mark.parametrize(
    ("six", "measured"),
    [
        ([0.0, 0.0, 0.0, 0.0, -1.0, 0.0], 1.0),
        ([1.3, 0.0, 0.0, 0.0, -1.0, 0.0], 0.3),
        ([1.0, 0.0, 0.0, 0.0, -0.7, 0.0], 0.3),
        ([1.0, 0.0, 0.0, 0.3, -0.95, 0.0], 0.3),
        ([1.0, 0.0, 0.0, -0.25, -0.97, 0.0], 0.25),
        ([1.0, 0.0, 0.0, 1.0, 0.0, 0.0], 1.0),
    ],
)
def test_numbers_that_are_no_rotation_are_refused(envelope, chunk, six, measured):
    def change(actions):
        actions[5, 3:9] = six

    verdict = envelope.check(chunk(change), NOW, TOOL)
    assert verdict.rule == "rotation" and verdict.measured == pytest.approx(measured) and verdict.limit == 0.2


def test_a_network_s_inaccurate_rotation_passes(envelope, chunk):
    assert envelope.check(chunk(column(3, 1.1)), NOW, TOOL).ok


@pytest.mark.parametrize("axis", np.eye(3))
@pytest.mark.parametrize(("rate", "rule"), [(1.4, ""), (1.6, "turn_rate")])
def test_turn_rate(envelope, chunk, axis, rate, rule):
    # From minus to plus a quarter radian, so the tilt stays inside its limit.
    steps = rate * 0.02 * (np.arange(ROWS) - 7.5)
    turning = chunk(rotations([matrix_from_vector(step * axis) @ DOWN for step in steps]), dt_ns=20_000_000)
    verdict = envelope.check(turning, NOW, TOOL)
    assert verdict.rule == rule
    if rule:
        assert verdict.measured == pytest.approx(1.6, rel=1e-6)


def test_a_half_turn_in_one_step_is_a_turn_rate(envelope, chunk):
    def change(actions):
        actions[8:, 3:9] = matrix_to_6d(matrix_from_vector([0, 0, np.pi]) @ DOWN)

    verdict = envelope.check(chunk(change), NOW, TOOL)
    assert verdict.rule == "turn_rate" and verdict.measured == pytest.approx(np.pi / 0.1)


@pytest.mark.parametrize(("acceleration", "rule"), [(9.5, ""), (10.5, "turn_acceleration")])
def test_turn_acceleration(envelope, chunk, acceleration, rule):
    times = 0.01 * (np.arange(ROWS) - 7.5)
    matrices = [matrix_from_vector([0, 0, 0.5 * acceleration * time**2]) @ DOWN for time in times]
    verdict = envelope.check(chunk(rotations(matrices), dt_ns=10_000_000), NOW, TOOL)
    assert verdict.rule == rule
    if rule:
        assert verdict.measured == pytest.approx(10.5, rel=1e-6)


@pytest.mark.parametrize(("angle", "rule"), [(0.59, ""), (0.61, "tilt"), (np.pi, "tilt")])
def test_tilt(envelope, chunk, angle, rule):
    tilted = rotations([matrix_from_vector([0, angle, 0]) @ DOWN] * ROWS)
    verdict = envelope.check(chunk(tilted), NOW, TOOL)
    assert verdict.rule == rule
    if rule:
        assert verdict.measured == pytest.approx(angle) and verdict.limit == 0.6


@pytest.mark.parametrize("angles", [np.linspace(0.0, 0.65, ROWS), np.linspace(0.65, 0.0, ROWS)])
def test_the_worst_tilt_of_a_chunk_counts(envelope, chunk, angles):
    tilting = rotations([matrix_from_vector([angle, 0, 0]) @ DOWN for angle in angles])
    verdict = envelope.check(chunk(tilting), NOW, TOOL)
    assert verdict.rule == "tilt" and verdict.measured == pytest.approx(0.65)


def test_turning_about_the_approach_axis_is_no_tilt(envelope, chunk):
    turned = rotations([matrix_from_vector([0, 0, 2.5]) @ DOWN] * ROWS)
    assert envelope.check(chunk(turned), NOW, TOOL).ok


@pytest.mark.parametrize(
    ("width", "limit"), [(-0.004, None), (0.084, None), (-0.006, 0.0), (0.086, 0.08), (40.0, 0.08)]
)
def test_gripper_range_with_its_tolerance(envelope, chunk, width, limit):
    verdict = envelope.check(chunk(column(9, width)), NOW, TOOL)
    assert verdict.ok is (limit is None)
    if limit is not None:
        assert (verdict.rule, verdict.measured, verdict.limit) == ("gripper", width, limit)


def test_a_tool_that_is_nowhere_known_refuses(envelope, chunk):
    assert envelope.check(chunk(), NOW, None).rule == "measurement"
    assert envelope.check(chunk(), NOW, [np.nan, 0, 0]).rule == "jump"


def test_a_jump_is_measured_to_the_action_for_now(envelope, chunk, task):
    moving = chunk(column(0, ramp(0.4 / 3)))
    first = moving.actions[0, :3]
    assert envelope.check(moving, NOW, first + np.array([0.149, 0, 0])).ok
    verdict = envelope.check(moving, NOW, first - [0.151, 0, 0])
    assert verdict.rule == "jump"
    assert verdict.measured == pytest.approx(0.151) and verdict.limit == 0.15
    # Half a step later the action for now lies half a step further.
    later = NOW + task.dt_ns // 2
    measured = envelope.check(moving, later, first - [0.151, 0, 0]).measured
    assert measured == pytest.approx(0.151 + 0.4 / 3 * 0.05)


def test_the_first_check_of_the_order_names_the_cause(envelope, chunk):
    """Each fault in turn is repaired; the next one in the documented order then shows."""
    faults = {
        "finite": lambda a: a.__setitem__((0, 9), np.nan),
        "workspace": lambda a: a.__setitem__((4, 1), 0.5),
        "speed": lambda a: a.__setitem__((8, 2), 0.38),
        "rotation": lambda a: a.__setitem__((slice(None), 3), 2.0),
        "gripper": lambda a: a.__setitem__((slice(None), 9), 0.5),
    }
    names = list(faults)
    for index, name in enumerate(names):

        def change(actions, first=index):
            for fault in reversed(names[first:]):
                faults[fault](actions)

        assert envelope.check(chunk(change), NOW, TOOL + 1.0).rule == name
    assert envelope.check(chunk(), NOW, TOOL + 1.0).rule == "jump"


def test_every_reason_holds_the_measured_value_and_the_limit(envelope, chunk):
    verdict = envelope.check(chunk(column(0, ramp(0.6, 0.02)), dt_ns=20_000_000), NOW, TOOL)
    assert "0.600 m/s" in verdict.reason and "0.500 m/s" in verdict.reason


def test_a_task_without_limits_for_what_it_commands_is_refused(task):
    joints = replace(task, action=(*task.action, Feature("q", "joints", (7,))))
    with pytest.raises(TaskError, match="joints"):
        Envelope(joints)
    twice = replace(task, action=(*task.action, Feature("other", "position", (3,))))
    with pytest.raises(TaskError, match="at most once"):
        Envelope(twice)
    without = "no action has kind 'position' or 'joints', so no workspace can be kept"
    with pytest.raises(TaskError, match=f"^task 'franka_place': {without}$"):
        Envelope(replace(task, action=task.action[1:]))


def test_a_task_of_positions_only_is_judged(task):
    envelope = Envelope(replace(task, action=task.action[:1]))
    assert envelope.check(ActionChunk(NOW, task.dt_ns, np.tile(TOOL, (4, 1))), NOW, TOOL).ok
