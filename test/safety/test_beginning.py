"""How a chunk begins: against the measured tool, and against the chunk that was forwarded before."""

from dataclasses import replace

import numpy as np
import pytest
from envelope_chunks import DOWN, NOW, TOOL, column, rotations
from joint_task import HOME, joint_chunk, joint_task, model_of

from bid_ros.core.rotation import matrix_from_vector
from bid_ros.safety.envelope import Envelope
from bid_ros.safety.gate import Gate
from bid_ros.safety.verdict import Action

MS = 1_000_000
GOING = -0.2 + 0.04 * np.arange(16)  # m along y, 0.4 m/s


def turned(angle, axis=2):
    vector = np.zeros(3)
    vector[axis] = angle
    return matrix_from_vector(vector) @ DOWN


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("angle", "ok"), [(0.499, True), (0.501, False), (-0.501, False)])
def test_the_action_for_now_is_near_the_measured_rotation(envelope, chunk, angle, ok, axis):
    verdict = envelope.check(chunk(), NOW, TOOL, tool_rotation=turned(angle, axis))
    assert verdict.ok is ok
    if not ok:
        assert verdict.rule == "turn_jump" and verdict.measured == pytest.approx(abs(angle))
        assert verdict.reason == "angle from the tool to the action is 0.501 rad; the limit is 0.500 rad"


def test_the_rotation_counts_at_now_between_two_rows(envelope, chunk):
    turning = chunk(rotations([turned(0.1 * row) for row in range(16)]))
    for age_ms, angle in ((0, 0.0), (250, 0.25), (400, 0.4)):
        away = turned(angle - 0.499)
        assert envelope.check(turning, NOW + age_ms * MS, TOOL, tool_rotation=away).ok
        verdict = envelope.check(turning, NOW + age_ms * MS, TOOL, tool_rotation=turned(angle - 0.502))
        assert verdict.rule == "turn_jump" and verdict.measured == pytest.approx(0.502, abs=1e-3)


def test_a_measured_rotation_that_is_no_number_is_refused(envelope, chunk):
    assert envelope.check(chunk(), NOW, TOOL, tool_rotation=np.full((3, 3), np.nan)).rule == "turn_jump"


def test_joints_begin_near_the_measured_rotation_too():
    task = joint_task("franka")
    model = model_of(task)
    place, rotation = model.forward(HOME["franka"])
    task = replace(task, start=None, limits=replace(task.limits, workspace_min=(-2.0,) * 3, workspace_max=(2.0,) * 3))
    resting = joint_chunk(task, np.tile(HOME["franka"], (8, 1)))
    envelope, here = Envelope(task, model), HOME["franka"]
    assert envelope.check(resting, resting.stamp_ns, place, here, rotation).ok
    away = matrix_from_vector([0, 0, 0.6]) @ rotation
    assert envelope.check(resting, resting.stamp_ns, place, here, away).rule == "turn_jump"


def test_a_chunk_that_replaces_another_does_not_jump_at_now(envelope, chunk):
    moving, now = chunk(column(1, GOING)), NOW + 350 * MS
    start = -0.06  # half way between rows 3 and 4
    for step, ok in ((0.149, True), (-0.149, True), (0.151, False), (-0.151, False)):
        following = chunk(column(1, start + step), stamp_ns=now)
        verdict = envelope.check(following, now, [TOOL[0], start + step, TOOL[2]], before=moving)
        assert verdict.ok is ok
        if not ok:
            assert verdict.rule == "chunk_step" and verdict.measured == pytest.approx(0.151)
            assert verdict.reason == "distance from the chunk before to this one is 0.151 m; the limit is 0.150 m"


def test_a_chunk_that_begins_later_is_compared_at_its_beginning(envelope, chunk):
    moving = chunk(column(1, GOING))
    for place, ok in ((-0.16 + 0.149, True), (-0.16 + 0.151, False)):
        later = chunk(column(1, place), stamp_ns=NOW + 100 * MS)
        verdict = envelope.check(later, NOW, [TOOL[0], place, TOOL[2]], before=moving)
        assert verdict.ok is ok and (ok or verdict.rule == "chunk_step")


def test_the_angle_between_two_chunks_has_a_limit(envelope, chunk):
    before = chunk()
    for angle, ok in ((0.499, True), (0.501, False)):
        following = chunk(rotations([turned(angle)] * 16))
        verdict = envelope.check(following, NOW, TOOL, before=before)
        assert verdict.ok is ok and (ok or verdict.rule == "chunk_turn")


def test_a_chunk_before_that_is_over_says_nothing(envelope, chunk):
    short = chunk(actions=chunk().actions[:2])
    far = chunk(column(1, 0.28), stamp_ns=NOW + 200 * MS)
    at = [TOOL[0], 0.28, TOOL[2]]
    assert envelope.check(far, NOW + 200 * MS, at, before=short).ok
    assert envelope.check(replace(far, stamp_ns=NOW), NOW, at, before=short).rule == "chunk_step"


def test_the_gate_compares_with_what_was_forwarded_of_the_same_source(task, chunk):
    gate, resting = Gate(task), chunk()
    far = chunk(column(1, 0.2))
    at = [TOOL[0], 0.2, TOOL[2]]
    assert gate.admit(far, NOW, at).verdict.ok
    gate.passed(resting)
    assert gate.admit(far, NOW, at).verdict.rule == "chunk_step"
    assert gate.admit(replace(far, source="episode"), NOW, at).verdict.ok
    gate.forget("episode")
    assert not gate.admit(far, NOW, at).verdict.ok
    gate.forget("policy")
    assert gate.admit(far, NOW, at).verdict.ok
    gate.passed(resting)
    gate.forget()
    assert gate.admit(far, NOW, at).verdict.ok
    gate.passed(resting)
    gate.passed(replace(far, source="teleop"))  # a person has moved the arm since
    assert gate.admit(far, NOW, at).verdict.ok


def test_a_slowed_chunk_counts_as_it_was_forwarded(task, chunk):
    moving = chunk(column(1, -0.28 + 0.038 * np.arange(16)))
    gate, tool = Gate(task, slow=0.4), moving.actions[0, :3]
    found = gate.admit(moving, NOW, tool)
    assert found.pace is not None and found.verdict.action is Action.NONE
    gate.passed(found.chunk)
    now = NOW + 700 * MS  # the slowed chunk has gone 0.105 m, the one asked for 0.266 m
    place = found.chunk.actions[7, 1]
    following = chunk(column(1, place), stamp_ns=now)
    assert gate.admit(following, now, [TOOL[0], place, TOOL[2]]).verdict.ok
    gate.passed(moving)
    assert gate.admit(following, now, [TOOL[0], place, TOOL[2]]).verdict.rule == "chunk_step"


@pytest.mark.parametrize(("dt_ms", "rows_open"), [(100, 3), (20, 3), (50, 1)])
def test_a_gripper_that_is_commanded_in_steps_passes(envelope, chunk, dt_ms, rows_open):
    def step(actions):
        actions[:, 9] = 0.08
        actions[rows_open:, 9] = 0.0

    assert envelope.check(chunk(step, dt_ns=dt_ms * MS), NOW, TOOL).ok


@pytest.mark.parametrize(("rate", "ok"), [(0.19, True), (0.21, False)])
@pytest.mark.parametrize("dt_ms", [100, 20])
def test_the_gripper_has_a_largest_speed(task, chunk, rate, ok, dt_ms):
    slow = replace(task, limits=replace(task.limits, max_gripper_rate=0.2))
    widths = np.clip(0.08 - rate * dt_ms / 1000 * np.arange(16), 0, None)
    verdict = Envelope(slow).check(chunk(column(9, widths), dt_ns=dt_ms * MS), NOW, TOOL)
    assert verdict.ok is ok
    if not ok:
        assert verdict.rule == "gripper_rate" and verdict.row < 5 and verdict.measured == pytest.approx(rate)


def test_a_gripper_too_fast_stops_or_warns_as_the_task_says(task, chunk):
    limits = replace(task.limits, max_gripper_rate=0.2)
    moving = chunk(column(9, [0.08] * 5 + [0.0] * 11))
    found = Gate(replace(task, limits=limits)).admit(moving, NOW, TOOL)
    assert (found.verdict.ok, found.verdict.rule) == (False, "gripper_rate")
    warned = Gate(replace(task, limits=replace(limits, above=replace(limits.above, gripper_rate="warn"))))
    found = warned.admit(moving, NOW, TOOL)
    assert found.chunk is moving and found.verdict.action is Action.WARN
