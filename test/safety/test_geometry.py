"""Places that are kept out: what touches one is refused, in the screen as in the envelope."""

from dataclasses import replace

import numpy as np
import pytest
from envelope_chunks import DOWN, NOW, TOOL, column, rotations
from joint_task import HOME, joint_chunk, joint_task, model_of

from bid_ros.core.rotation import matrix_from_vector, matrix_to_6d
from bid_ros.core.shapes import KeepOut, ToolPart
from bid_ros.core.task import load_task
from bid_ros.safety.envelope import Envelope
from bid_ros.safety.gate import Gate
from bid_ros.safety.geometry import GeometryEnvelope
from bid_ros.safety.screen import Screen

TABLE = KeepOut("table", normal=(0.0, 0.0, 1.0), offset=0.0)
TIP = ToolPart("tip", (0.0, 0.0, 0.03), 0.01)
MOUNT = ToolPart("mount", (0.1, 0.0, 0.0), 0.02, (0.1, 0.0, -0.05))


def kept_out(task, *places, parts=(TIP,), **limits):
    return replace(task, tool_shape=parts, limits=replace(task.limits, keep_out=places, **limits), start=None)


def test_a_part_stays_above_the_table(task, chunk):
    envelope = Envelope(kept_out(task, TABLE))
    for height, ok in ((0.0401, True), (0.0399, False)):
        verdict = envelope.check(chunk(column(2, height)), NOW, [0.5, 0.0, height])
        assert verdict.ok is ok
    assert (verdict.rule, verdict.row, verdict.limit) == ("keep_out", 0, 0.0)
    assert verdict.measured == pytest.approx(-0.0001)
    assert verdict.reason == "'tip' comes 0.1 mm into 'table' at action 0; valid is outside"


def test_a_tilted_tool_brings_its_mount_down(task, chunk):
    envelope = Envelope(kept_out(task, TABLE, parts=(MOUNT,)))
    low = chunk(column(2, 0.06))
    assert envelope.check(low, NOW, [0.5, 0.0, 0.06]).ok
    for tilt, ok in ((0.3, True), (0.5, False)):  # 0.1 sin(tilt) + 0.02
        tilted = replace(low, actions=low.actions.copy())
        tilted.actions[:, 3:9] = matrix_to_6d(matrix_from_vector([0.0, tilt, 0.0]) @ DOWN)
        assert envelope.check(tilted, NOW, [0.5, 0.0, 0.06]).ok is ok
        sample = np.concatenate([tilted.actions[:1], tilted.actions])[None]
        assert Screen(kept_out(task, TABLE, parts=(MOUNT,))).passes(sample).tolist() == [ok]


def test_a_thin_wall_between_two_rows_is_found(task, chunk):
    wall = KeepOut("wall", (0.515, -0.3, 0.0), (0.520, 0.3, 0.6))
    task = kept_out(task, wall, parts=(ToolPart("tip", (0.0, 0.0, 0.0), 0.002),))
    moving = chunk(column(0, 0.495 + 0.045 * np.minimum(np.arange(16), 1)), dt_ns=task.dt_ns)
    limits = replace(task.limits, max_acceleration=50.0, max_jerk=1e4)
    verdict = Envelope(replace(task, limits=limits)).check(moving, NOW, moving.actions[0, :3])
    assert verdict.rule == "keep_out" and verdict.row == 0 and "'wall' at action 0" in verdict.reason


def test_a_thin_wall_that_a_far_part_passes_while_the_tool_turns_is_found(task, chunk):
    """The tool's point stands. Its far end goes 0.3 m between two rows, across a wall of 5 mm."""
    camera = ToolPart("camera", (1.0, 0.0, 0.0), 0.006)
    actions = chunk(column(2, 0.3)).actions[None, :2]
    tool, turn = actions[0, 0, :3], np.array([DOWN, matrix_from_vector([0.0, 0.0, 0.3]) @ DOWN])
    way = turn[:, :, 0]
    for share in (0.2, 0.4, 0.6, 0.8):
        x, y, z = tool + way[0] + share * (way[1] - way[0])
        wall = KeepOut("wall", (x - 0.1, y - 0.0025, z - 0.1), (x + 0.1, y + 0.0025, z + 0.1))
        walled = kept_out(task, wall, parts=(camera,))
        (bound,) = GeometryEnvelope(walled).bounds(actions[..., :3], turn[None], actions)
        assert not bound.kept[0]
        assert "'camera' comes" in bound.refusal(0).reason and bound.refusal(0).row == 0


def test_only_what_can_still_be_executed_counts(task, chunk):
    post = KeepOut("post", (0.45, 0.1, 0.0), (0.55, 0.3, 0.6))
    envelope = Envelope(kept_out(task, post, max_acceleration=50.0))
    moving = chunk(column(1, 0.14 - 0.04 * np.minimum(np.arange(16), 5)))
    assert envelope.check(moving, NOW, moving.actions[0, :3]).rule == "keep_out"
    now = NOW + 300_000_000
    assert envelope.check(moving, now, moving.actions[3, :3]).ok


def test_a_slower_motion_does_not_help_so_the_gate_stops(task, chunk):
    gate = Gate(kept_out(task, TABLE))
    found = gate.admit(chunk(column(2, 0.03)), NOW, [0.5, 0.0, 0.03])
    assert not found.verdict.ok and found.verdict.rule == "keep_out"


def test_joints_are_kept_out_where_forward_kinematics_put_the_tool():
    task = joint_task("franka")
    model, here = model_of(task), HOME["franka"]
    place, rotation = model.forward(here)
    wide = {"workspace_min": (-2.0,) * 3, "workspace_max": (2.0,) * 3}
    resting = joint_chunk(task, np.tile(here, (8, 1)))
    for below, rule in ((0.045, ""), (0.035, "keep_out")):
        floor = KeepOut("floor", normal=(0.0, 0.0, 1.0), offset=float(place[2] - below))
        envelope = Envelope(kept_out(task, floor, **wide), model)
        assert envelope.check(resting, resting.stamp_ns, place, here, rotation).rule == rule


def test_the_screen_drops_what_the_envelope_refuses(task, chunk):
    post = KeepOut("post", (0.65, -0.3, 0.0), (0.70, 0.3, 0.42))
    task = kept_out(task, TABLE, post, parts=(TIP, MOUNT))
    random = np.random.default_rng(0)
    moving = np.stack([chunk().actions for _ in range(60)])
    ways = random.standard_normal((60, 1, 3)) * 0.012
    moving[..., :3] = TOOL + ways * np.arange(16)[None, :, None]
    past = np.concatenate([moving[:, :1], moving], axis=1)
    screen, envelope = Screen(task), Envelope(task)
    verdicts = [envelope.check(chunk(actions=rows), NOW, rows[0, :3]) for rows in moving]
    assert {"keep_out", ""} <= {verdict.rule for verdict in verdicts}
    assert screen.passes(past).tolist() == [verdict.ok for verdict in verdicts]


def test_turning_the_tool_away_frees_it(task, chunk):
    post = KeepOut("post", (0.57, -0.3, 0.0), (0.7, 0.3, 0.6))
    envelope = Envelope(kept_out(task, post, parts=(MOUNT,)))
    assert envelope.check(chunk(), NOW, TOOL).rule == "keep_out"
    assert envelope.check(chunk(rotations([matrix_from_vector([0, 0, 1.5]) @ DOWN] * 16)), NOW, TOOL).ok


OPEN, HELD = 0.08, 0.04


def both(*changes):
    def change(actions):
        for each in changes:
            each(actions)

    return change


@pytest.mark.parametrize(
    ("measured", "asked", "ok"),
    [
        (None, HELD, False),  # nobody measures it: the chunk says what is held
        (None, OPEN, True),
        (HELD, HELD, False),
        (HELD + 0.007, HELD, False),
        (HELD, OPEN, True),  # let go
        (OPEN, HELD, True),  # to be closed on nothing, or on what nobody knows yet
        (0.0, 0.0, True),  # closed on nothing
        (np.inf, HELD, True),  # moves
    ],
)
def test_a_held_object_counts_while_the_gripper_holds_something(task, chunk, measured, asked, ok):
    envelope = Envelope(kept_out(task, TABLE, parts=(TIP, ToolPart("cup", (0.0, 0.0, 0.06), 0.02, held=HELD))))
    envelope.holds(measured)
    low = chunk(both(column(2, 0.06), column(9, asked)))
    verdict = envelope.check(low, NOW, [0.5, 0.0, 0.06])
    assert verdict.ok is ok and verdict.rule == ("" if ok else "keep_out")


def test_without_a_commanded_gripper_the_measured_one_says_what_is_held(task, chunk):
    cup = ToolPart("cup", (0.0, 0.0, 0.06), 0.02, held=HELD)
    envelope = Envelope(replace(kept_out(task, TABLE, parts=(TIP, cup)), action=task.action[:2]))
    low = chunk(column(2, 0.06))
    low = replace(low, actions=low.actions[:, :9])
    for measured, ok in ((HELD, False), (0.0, True), (None, False)):
        envelope.holds(measured)
        assert envelope.check(low, NOW, [0.5, 0.0, 0.06]).ok is ok


def test_a_held_object_counts_until_the_row_that_lets_it_go(task, chunk):
    wall = KeepOut("shelf", (0.3, -0.3, 0.0), (0.7, 0.3, 0.25))
    cup = ToolPart("cup", (0.0, 0.0, 0.10), 0.03, held=HELD)
    quick = {"max_acceleration": 50.0, "max_gripper_rate": 10.0, "max_speed": 1.0, "max_jerk": 1e4}
    envelope = Envelope(kept_out(task, wall, parts=(TIP, cup), **quick))
    for opens, row in ((8, 7), (4, -1)):
        widths = np.where(np.arange(16) < opens, HELD, OPEN)
        heights = 0.4 - 0.005 * np.minimum(np.arange(16), 8)
        verdict = envelope.check(chunk(both(column(2, heights), column(9, widths))), NOW, [0.5, 0.0, 0.4])
        assert (verdict.rule, verdict.row) == (("keep_out", row) if row >= 0 else ("", -1))


@pytest.mark.parametrize("name", ["franka_place", "ur5_pick", "joints/franka_place", "joints/ur5_pick", "new/ros"])
def test_shipped_tasks_keep_the_gripper_off_their_table(root, name):
    shipped = load_task(root / "config" / name / "task.yaml")
    assert [place.name for place in shipped.limits.keep_out] == ["table"]
    geometry, low = GeometryEnvelope(shipped), np.array([[[0.5, 0.0, shipped.limits.workspace_min[2]]]])
    for tilt, kept in ((0.0, True), (0.6, False)):
        turned = matrix_from_vector([tilt, 0.0, 0.0]) @ DOWN
        rows = np.full((1, 1, shipped.action_dim), shipped.limits.gripper_max)
        (bound,) = geometry.bounds(low, turned[None, None], rows)
        assert bound.kept.tolist() == [kept]


def test_the_screen_finds_the_way_that_crosses_a_wall_among_ways_that_are_far_from_it(task, chunk):
    wall = KeepOut("wall", (0.515, -0.3, 0.0), (0.520, 0.3, 0.6))
    task = kept_out(task, wall, parts=(ToolPart("tip", (0.0, 0.0, 0.0), 0.002),), max_acceleration=50.0, max_jerk=1e4)
    starts = (0.40, 0.495, 0.45, 0.495)
    rows = [chunk(column(0, start + 0.045 * np.minimum(np.arange(16), 1))).actions for start in starts]
    samples = np.array([np.concatenate([motion[:1], motion]) for motion in rows])
    assert Screen(task).passes(samples).tolist() == [True, False, True, False]
    bounds = GeometryEnvelope(task).bounds(samples[..., :3], None, samples)
    (bound,) = bounds
    assert [bound.refusal(number).row for number in (1, 3)] == [1, 1]
