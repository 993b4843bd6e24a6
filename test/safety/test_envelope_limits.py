"""The envelope at the edges of its limits, what it measures, and what it says."""

from dataclasses import replace

import numpy as np
import pytest
from envelope_chunks import DOWN, NOW, ROWS, TOOL, column, ramp, rotations

from bid_ros.core.errors import TaskError
from bid_ros.core.feature import Feature
from bid_ros.core.rotation import matrix_from_vector
from bid_ros.core.shapes import ToolPart
from bid_ros.safety.envelope import Envelope, out_of_time

MS = 1_000_000
TIMES = np.arange(ROWS) - 7.5


def yawed(angles):
    return rotations([matrix_from_vector([0, 0, angle]) @ DOWN for angle in angles])


MOTIONS = {
    "max_speed": (column(0, ramp(0.3, 0.02)), 20),
    "max_acceleration": (column(0, 0.5 + 1.5 * (0.01 * TIMES) ** 2), 10),
    "max_jerk": (column(0, 0.5 + 20 * (0.002 * TIMES) ** 3), 2),
    "max_turn_rate": (yawed(0.02 * TIMES), 20),
    "max_turn_acceleration": (yawed(3 * (0.01 * TIMES) ** 2), 10),
    "max_tilt": (rotations([matrix_from_vector([0, 0.3, 0]) @ DOWN] * ROWS), 100),
    "max_jump": (None, 100),
}


@pytest.mark.parametrize("name", MOTIONS)
def test_a_motion_exactly_at_its_limit_is_allowed_and_above_it_is_not(task, chunk, name):
    change, dt_ms = MOTIONS[name]
    moving = chunk(change, dt_ns=dt_ms * MS)

    def check(limit):
        limited = replace(task, limits=replace(task.limits, **{name: limit}))
        return Envelope(limited).check(moving, NOW, moving.actions[0, :3] + [0.1, 0, 0])

    measured = check(1e-6).measured
    assert check(measured).ok
    refused = check(np.nextafter(measured, 0))
    assert refused.rule == name.removeprefix("max_") and refused.measured == measured


def test_tolerances_belong_to_what_is_allowed(envelope, chunk):
    for width in (-0.005, 0.08 + 0.005):
        assert envelope.check(chunk(column(9, width)), NOW, TOOL).ok
    assert envelope.check(chunk(column(3, 1.2)), NOW, TOOL).ok
    assert envelope.check(chunk(column(3, 1.201)), NOW, TOOL).rule == "rotation"


REASONS = [
    ({"actions": np.zeros((16, 9))}, None, "an action has 9 values; the task says 10"),
    ({"actions": np.zeros((65, 10))}, None, "the chunk has 65 actions; the limit is 64"),
    ({"dt_ns": 200 * MS}, None, "the chunk's dt is 0.200 s; the limit is 0.100 s"),
    ({"stamp_ns": NOW - 600 * MS}, None, "the chunk's age is 0.600 s; the limit is 0.500 s"),
    (
        {"stamp_ns": NOW + 300 * MS},
        None,
        "the chunk's stamp is ahead of now: its lead is 0.300 s; the limit is 0.200 s",
    ),
    (
        {"stamp_ns": NOW - 400 * MS, "dt_ns": 20 * MS},
        None,
        "the chunk is over: its age is 0.400 s; the limit is 0.320 s",
    ),
    ({"dt_ns": 20 * MS}, column(0, ramp(0.6, 0.02)), "speed is 0.600 m/s from action {row} on; the limit is 0.500 m/s"),
    (
        {"dt_ns": 10 * MS},
        column(0, 0.5 + 3 * (0.01 * TIMES) ** 2),
        "acceleration is 6.000 m/s^2 from action {row} on; the limit is 5.000 m/s^2",
    ),
    (
        {"dt_ns": 2 * MS},
        column(0, 0.5 + 40 * (0.002 * TIMES) ** 3),
        "jerk is 240.000 m/s^3 from action {row} on; the limit is 200.000 m/s^3",
    ),
    ({}, column(3, 1.25), "distance to a rotation is 0.250; the limit is 0.200"),
    (
        {"dt_ns": 20 * MS},
        yawed(0.04 * TIMES),
        "turn rate is 2.000 rad/s from action {row} on; the limit is 1.500 rad/s",
    ),
    (
        {"dt_ns": 10 * MS},
        yawed(6 * (0.01 * TIMES) ** 2),
        "turn acceleration is 12.000 rad/s^2 from action {row} on; the limit is 10.000 rad/s^2",
    ),
    (
        {},
        rotations([matrix_from_vector([0.7, 0, 0]) @ DOWN] * ROWS),
        "tilt from straight down is 0.700 rad from action {row} on; the limit is 0.600 rad",
    ),
    ({}, column(9, 0.1), "gripper width is 0.1000 m; the range is 0.0 to 0.08 m"),
    ({}, column(2, 0.5), "distance from the tool to the action is 0.200 m; the limit is 0.150 m"),
]


@pytest.mark.parametrize(("fields", "change", "reason"), REASONS)
def test_a_refusal_is_one_sentence_with_what_is_wrong_the_value_and_the_limit(envelope, chunk, fields, change, reason):
    verdict = envelope.check(chunk(change, **fields), NOW, TOOL)
    assert verdict.reason == reason.format(row=verdict.row)
    assert ("{row}" in reason) == (verdict.row >= 0)
    # The numbers that a listener plots are those of the sentence.
    assert f"{verdict.measured:.3f}".rstrip("0").rstrip(".") in reason
    assert f"{verdict.limit:.3f}".rstrip("0").rstrip(".") in reason


def peak(places, height):
    """Values ``(ROWS,)`` that are 0 but at some rows."""
    values = np.zeros(ROWS)
    values[places] = height
    return values


TIP = ToolPart("tip", (0.0, 0.0, 0.03), 0.01)
TIPPING = 0.65 - 0.04 * np.abs(np.arange(ROWS) - 10)
BROKEN_AT_A_ROW = [
    (100, {}, column(1, peak(9, 0.31)), 9, "y is 0.310 m in action 9; the workspace is -0.300 to 0.300 m"),
    (100, {}, column(2, 0.3 - peak(9, 0.29)), 9, "z is 0.010 m in action 9; the workspace is 0.020 to 0.600 m"),
    (
        100,
        {},
        column(0, TOOL[0] + peak(slice(10, None), 0.06)),
        9,
        "speed is 0.600 m/s from action 9 on; the limit is 0.500 m/s",
    ),
    (
        100,
        {},
        column(0, TOOL[0] + peak(10, 0.03)),
        9,
        "acceleration is 6.000 m/s^2 from action 9 on; the limit is 5.000 m/s^2",
    ),
    (
        20,
        {},
        column(0, TOOL[0] + peak(slice(10, None), 0.0019)),
        8,
        "jerk is 475.000 m/s^3 from action 8 on; the limit is 200.000 m/s^3",
    ),
    (
        100,
        {},
        yawed(peak(slice(10, None), 0.2)),
        9,
        "turn rate is 2.000 rad/s from action 9 on; the limit is 1.500 rad/s",
    ),
    (
        100,
        {},
        yawed(peak(10, 0.06)),
        9,
        "turn acceleration is 12.000 rad/s^2 from action 9 on; the limit is 10.000 rad/s^2",
    ),
    (
        100,
        {},
        rotations([matrix_from_vector([angle, 0, 0]) @ DOWN for angle in TIPPING]),
        10,
        "tilt from straight down is 0.650 rad from action 10 on; the limit is 0.600 rad",
    ),
    (
        100,
        {},
        column(2, 0.09 - 0.004 * np.arange(ROWS)),
        15,
        "'tip' comes 10.0 mm into 'table' at action 15; valid is outside",
    ),
    (
        100,
        {"max_gripper_rate": 0.2},
        column(9, 0.04 - peak(slice(10, None), 0.03)),
        9,
        "gripper speed is 0.300 m/s from action 9 on; the limit is 0.200 m/s",
    ),
]


@pytest.mark.parametrize("passed", [0, 3])
@pytest.mark.parametrize(("dt_ms", "limits", "change", "row", "reason"), BROKEN_AT_A_ROW)
def test_a_refusal_names_the_row_of_the_chunk_however_many_have_passed(
    task, chunk, dt_ms, limits, change, row, reason, passed
):
    moving, now = chunk(change, dt_ns=dt_ms * MS), NOW + passed * dt_ms * MS
    limited = replace(task, limits=replace(task.limits, **limits), tool_shape=(TIP,))
    verdict = Envelope(limited).check(moving, now, moving.actions[passed, :3])
    assert (verdict.row, verdict.reason) == (row, reason)


def test_a_chunk_may_be_older_by_what_it_was_judged_before(task, chunk):
    for age_s, hop_s, ok in ((0.5, 0.0, True), (0.51, 0.0, False), (0.59, 0.1, True), (0.61, 0.1, False)):
        late = chunk(stamp_ns=NOW - round(age_s * 1e9))
        found = list(out_of_time(late, NOW, task.limits, hop_s))
        assert (not found) == ok
    assert [verdict.reason for verdict in found] == ["the chunk's age is 0.610 s; the limit is 0.600 s"]


def test_an_unknown_tool_position_is_said(envelope, chunk):
    reason = envelope.check(chunk(), NOW, None).reason
    assert reason == "the tool's position is not known, so the jump to the chunk cannot be judged"


def test_a_value_that_is_not_finite_is_what_was_measured(envelope, chunk):
    assert envelope.check(chunk(column(9, -np.inf)), NOW, TOOL).measured == -np.inf


@pytest.mark.parametrize("angle", [0.5, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("axis", [[0, 0, 1], [0, 1, 0], [0.6, 0, 0.8]])
def test_the_angle_of_a_large_turn_is_measured(envelope, chunk, angle, axis):
    turned = matrix_from_vector(angle * np.array(axis)) @ DOWN
    verdict = envelope.check(chunk(rotations([DOWN] * 8 + [turned] * 8)), NOW, TOOL)
    assert verdict.rule == "turn_rate" and verdict.measured == pytest.approx(angle / 0.1)


def test_a_tool_at_rest_does_not_turn_whatever_its_rotation(envelope, chunk):
    """Products of a rotation with its own inverse are rounded, so they are not exactly 1."""
    rng = np.random.default_rng(0)
    for vector in rng.uniform(-0.4, 0.4, (500, 3)):
        resting = chunk(rotations([matrix_from_vector(vector) @ DOWN] * ROWS))
        assert envelope.check(resting, NOW, TOOL).ok, vector


def test_a_tool_that_points_straight_down_is_not_tilted_whatever_its_yaw(envelope, chunk):
    """The cosine is rounded to just outside 1 for some."""
    for yaw in np.linspace(-3, 3, 50):
        verdict = envelope.check(chunk(yawed([yaw] * ROWS)), NOW, TOOL)
        assert verdict.ok, verdict.reason


def test_a_tool_upside_down_is_tilted_by_half_a_turn_whatever_its_yaw(envelope, chunk):
    """The cosine is rounded to just outside -1 for some."""
    for yaw in np.linspace(-3, 3, 50):
        verdict = envelope.check(chunk(rotations([matrix_from_vector([0, 0, yaw])] * ROWS)), NOW, TOOL)
        assert verdict.rule == "tilt" and verdict.measured == pytest.approx(np.pi)


@pytest.mark.parametrize(("steps", "row"), [(0.0, 0.0), (3.25, 3.25), (14.5, 14.5), (15.5, 15.0)])
def test_a_jump_is_measured_to_where_the_chunk_is_now(task, chunk, steps, row):
    """Between two rows the action is between them. After the last one it stays there."""
    envelope = Envelope(replace(task, limits=replace(task.limits, max_chunk_age=10.0)))
    moving = chunk(column(0, ramp(0.2)))
    expected = moving.actions[0, :3] + [0.02 * row, 0, 0]
    now = NOW + round(steps * task.dt_ns)
    assert envelope.check(moving, now, expected + np.array([0.149, 0, 0])).ok
    verdict = envelope.check(moving, now, expected - np.array([0.151, 0, 0]))
    assert verdict.rule == "jump" and verdict.measured == pytest.approx(0.151)


def test_a_tool_position_beyond_use_is_a_jump_without_a_warning(envelope, chunk, recwarn):
    assert envelope.check(chunk(), NOW, [1e300, 0.0, 0.0]).rule == "jump"
    assert not recwarn.list


def test_a_task_that_cannot_be_judged_learns_what_can_be(task):
    joints = replace(task, action=(*task.action, Feature("q", "joints", (7,))))
    with pytest.raises(TaskError, match="valid is each of position, rotation_6d, gripper at most once"):
        Envelope(joints)
