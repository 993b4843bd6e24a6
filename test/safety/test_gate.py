"""The gate: what it forwards keeps every limit and lies on the path that was asked for."""

from dataclasses import replace

import numpy as np
import pytest
from envelope_chunks import DOWN, NOW, TOOL, column, ramp, rotations

from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import TaskError
from bid_ros.core.limits import AboveLimits
from bid_ros.core.rotation import matrix_from_vector, matrix_to_6d
from bid_ros.core.task import load_task
from bid_ros.safety.envelope import Envelope
from bid_ros.safety.gate import ORDERS, Gate
from bid_ros.safety.verdict import Action

MS = 1_000_000
ROWS = 15


@pytest.fixture
def ur5(root):
    return load_task(root / "config" / "ur5_pick" / "task.yaml")


@pytest.fixture
def wide(ur5):
    """The task with room for long motions along x and y."""
    return replace(ur5, limits=replace(ur5.limits, workspace_min=(-5.0, -5.0, 0.028), workspace_max=(5.0, 5.0, 0.55)))


def above(task, **actions):
    return Gate(replace(task, limits=replace(task.limits, above=AboveLimits(**actions))))


def kinked(height, row=5):
    """A step of the tool's path that begins at a row: the largest acceleration is there."""
    places = np.zeros(16)
    places[row + 1 :] = height * np.arange(1, 16 - row)
    return TOOL[0] - 0.1 + places


def wild(seed, speed):
    """A motion around the middle of the workspace, with the drawn speed between its rows, and turns of its own."""
    random = np.random.default_rng(seed)
    way = np.cumsum(random.standard_normal((ROWS, 3)), axis=0) if seed % 2 else random.standard_normal((ROWS, 3))
    way = np.cumsum(way, axis=0) if seed % 3 == 0 else way
    way *= 0.1 * speed / np.linalg.norm(np.diff(way, axis=0), axis=1).max()
    turns = np.cumsum(random.standard_normal((ROWS, 3)), axis=0) * random.uniform(0, 0.02)
    place = np.array([0.49, 0.0, 0.29]) + way - way[0]
    width = random.uniform(0, 0.08, (ROWS, 1))
    return np.concatenate([place, matrix_to_6d(matrix_from_vector(turns) @ DOWN), width], axis=1)


def distance(point, path):
    """Distance of a point ``(3,)`` from a polyline ``(n, 3)``."""
    start, step = path[:-1], np.diff(path, axis=0)
    share = np.sum((point - start) * step, axis=1) / np.maximum(np.sum(step * step, axis=1), 1e-300)
    return np.linalg.norm(start + np.clip(share, 0, 1)[:, None] * step - point, axis=1).min()


def drawn(seed):
    """Motions, and how old their chunks are in ms."""
    random = np.random.default_rng(seed)
    for _ in range(60):
        yield wild(int(random.integers(2**20)), random.uniform(0.05, 1.6)), int(random.integers(451))


@pytest.mark.parametrize("seed", range(5))
def test_a_slowed_chunk_keeps_every_limit_and_its_path(ur5, seed):
    seen = {check_one(ur5, actions, age_ms) for actions, age_ms in drawn(seed)}
    assert seen == set(Action) - {Action.WARN}


def check_one(ur5, actions, age_ms):
    now = NOW + age_ms * MS
    chunk = ActionChunk(NOW, ur5.dt_ns, actions)
    place, row = chunk.position_at(now), age_ms // 100
    tool = actions[row, :3] + (place - row) * (actions[row + 1, :3] - actions[row, :3])
    found, envelope = Gate(ur5).admit(chunk, now, tool), Envelope(ur5)
    asked = envelope.check(chunk, now, tool)
    if asked.ok:
        assert found.verdict is asked and found.chunk is chunk and found.pace is None
    elif found.verdict.ok:
        slowed = found.chunk
        assert found.verdict.action is Action.SCALE and found.pace.row == row
        assert ur5.limits.above.least_scale - 1e-9 <= slowed.scale == found.pace.scale < 1
        assert envelope.check(slowed, now, tool).ok
        assert (slowed.stamp_ns, slowed.dt_ns) == (chunk.stamp_ns, chunk.dt_ns)
        np.testing.assert_array_equal(slowed.actions[: row + 1], actions[: row + 1])
        np.testing.assert_array_equal(slowed.actions[-1], actions[-1])
        assert max(distance(point, actions[:, :3]) for point in slowed.actions[:, :3]) <= 1e-9
    else:
        assert found.verdict.action is Action.STOP and found.chunk is chunk
    return found.verdict.action


@pytest.mark.parametrize("scale_of_limit", [1.02, 1.2, 1.5, 2.0, 3.0])
def test_a_straight_motion_is_slowed_no_more_than_it_takes(wide, scale_of_limit):
    speed = wide.limits.max_speed * scale_of_limit
    actions = np.tile([0.45, -0.3, 0.3, *matrix_to_6d(DOWN), 0.04], (8, 1))
    actions[:, 1] += 0.1 * speed * np.arange(8)
    found = Gate(wide).admit(ActionChunk(NOW, wide.dt_ns, actions), NOW, actions[0, :3])
    assert found.verdict.ok and found.verdict.rule == "speed"
    assert found.chunk.scale <= 1 / scale_of_limit + 1e-9
    assert found.chunk.scale >= 7 / (np.ceil(7 * scale_of_limit) + 1) - 1e-9


def test_the_verdict_names_rule_value_limit_and_row(wide, chunk):
    moving = chunk(column(0, kinked(0.0626)))
    verdict = Gate(wide).admit(moving, NOW, moving.actions[0, :3]).verdict
    assert (verdict.ok, verdict.rule, verdict.action) == (True, "speed", Action.SCALE)
    assert verdict.row in range(5, 16) and verdict.measured == pytest.approx(0.626) and verdict.limit == 0.5
    slower = chunk(column(0, kinked(0.0499)))
    limited = replace(wide, limits=replace(wide.limits, max_acceleration=3.0))
    verdict = Gate(limited).admit(slower, NOW, slower.actions[0, :3]).verdict
    assert (verdict.rule, verdict.row, verdict.limit) == ("acceleration", 4, 3.0)
    assert verdict.reason.startswith("acceleration is 4.990 m/s^2 from action 4 on; the limit is 3.000 m/s^2; slowed")


def test_of_several_broken_rules_the_most_restrictive_is_named(wide, chunk):
    limited = replace(wide, limits=replace(wide.limits, max_speed=0.3, max_acceleration=1.0))
    moving = chunk(column(0, kinked(0.04)))  # 0.4 m/s asks for 0.75, 4 m/s^2 for a half
    found = Gate(limited).admit(moving, NOW, moving.actions[0, :3])
    assert found.verdict.rule == "acceleration" and found.chunk.scale < 0.75


def test_a_chunk_that_the_least_scale_does_not_save_stops_and_says_so(wide, chunk):
    moving = chunk(column(1, ramp(2.0, 0.02) - TOOL[0]), dt_ns=20 * MS)
    found = Gate(wide).admit(moving, NOW, moving.actions[0, :3])
    assert (found.verdict.ok, found.verdict.rule, found.verdict.action) == (False, "speed", Action.STOP)
    assert found.verdict.reason.endswith("the limit is 0.500 m/s; the chunk breaks a limit even at 0.3 of its speed")
    assert found.chunk is moving


def test_what_cannot_be_scaled_stops_as_before_also_beside_what_can(wide, chunk):
    def fast_and_outside(actions):
        actions[:, 0] = ramp(0.6)
        actions[:, 2] = 0.01

    for change in (fast_and_outside, column(9, 0.2), rotations([matrix_from_vector([0.7, 0, 0]) @ DOWN] * 16)):
        moving = chunk(change)
        found = Gate(wide).admit(moving, NOW, moving.actions[0, :3])
        assert found.verdict == Envelope(wide).check(moving, NOW, moving.actions[0, :3])
        assert not found.verdict.ok and found.verdict.action is Action.STOP
    far = chunk(column(0, ramp(0.55)))
    assert Gate(wide).admit(far, NOW, TOOL + 1.0).verdict.rule == "jump"


def test_a_rule_warns_scales_or_stops_as_the_task_says(wide, chunk):
    moving = chunk(column(0, ramp(0.55)))
    tool = moving.actions[0, :3]
    warned = above(wide, speed="warn").admit(moving, NOW, tool)
    assert warned.chunk is moving and warned.verdict.ok and warned.verdict.action is Action.WARN
    assert warned.verdict.rule == "speed"
    stopped = above(wide, speed="stop").admit(moving, NOW, tool)
    assert not stopped.verdict.ok and stopped.verdict.rule == "speed"
    assert above(wide).admit(moving, NOW, tool).verdict.action is Action.SCALE


def test_a_rule_that_warns_does_not_keep_another_from_scaling_or_stopping(wide, chunk):
    task = replace(wide, limits=replace(wide.limits, max_acceleration=1.0))
    moving = chunk(column(0, kinked(0.06)))  # 0.6 m/s, 6 m/s^2
    found = above(task, acceleration="warn").admit(moving, NOW, moving.actions[0, :3])
    assert found.verdict.rule == "speed" and found.verdict.action is Action.SCALE and found.chunk.scale > 0.75
    assert above(task, acceleration="stop").admit(moving, NOW, moving.actions[0, :3]).verdict.rule == "acceleration"


def test_a_chunk_of_the_most_rows_is_slowed_to_its_end(ur5):
    actions = np.tile([0.5, 0.0, 0.3, *matrix_to_6d(DOWN), 0.04], (64, 1))
    actions[:, 1] = 0.2 * np.sin(np.arange(64) * 0.06)  # 0.6 m/s
    chunk = ActionChunk(NOW, 20 * MS, actions)
    found = Gate(ur5).admit(chunk, NOW, actions[0, :3])
    assert found.verdict.action is Action.SCALE and found.chunk.horizon > 64
    np.testing.assert_array_equal(found.chunk.actions[-1], actions[-1])
    assert Envelope(ur5).check(found.chunk, NOW, actions[0, :3]).ok


@pytest.mark.parametrize("slow", [0.05, 0.2, 0.5, 0.999])
def test_a_run_that_is_slow_slows_every_chunk_of_the_policy_and_no_other(wide, chunk, slow):
    moving = chunk(column(0, ramp(0.3)))
    gate, tool = Gate(wide, slow=slow), moving.actions[0, :3]
    found = gate.admit(moving, NOW, tool)
    assert found.verdict.ok and found.verdict.action is Action.NONE
    assert slow * 0.9 < found.chunk.scale <= slow and found.pace.row == 0
    np.testing.assert_array_equal(found.chunk.actions[-1], moving.actions[-1])
    assert np.abs(np.diff(found.chunk.actions[:, 0])).max() == pytest.approx(0.03 * found.chunk.scale)
    homing = replace(moving, source="episode")
    assert gate.admit(homing, NOW, tool).chunk is homing


def test_what_breaks_a_limit_at_its_speed_does_not_where_the_run_is_slow_enough(wide, chunk):
    moving = chunk(column(0, ramp(3.0)))  # 6 times the limit
    tool = moving.actions[0, :3]
    assert not Gate(wide).admit(moving, NOW, tool).verdict.ok
    assert Gate(wide, slow=0.15).admit(moving, NOW, tool).verdict.action is Action.NONE
    found = Gate(wide, slow=0.2).admit(moving, NOW, tool)
    assert found.verdict.action is Action.SCALE and found.verdict.measured > 0.5 and found.chunk.scale <= 1 / 6


@pytest.mark.parametrize("slow", [0.2, 1.0])
def test_what_is_no_chunk_of_the_task_is_refused_and_never_slowed(ur5, chunk, slow):
    gate = Gate(ur5, slow=slow)
    for bad, rule in (
        (chunk(column(4, np.nan)), "finite"),
        (replace(chunk(), actions=chunk().actions[:, :9]), "shape"),
        (replace(chunk(), actions=np.zeros((65, 10))), "shape"),
        (chunk(frame_id="elsewhere"), "frame"),
    ):
        found = gate.admit(bad, NOW, TOOL)
        assert (found.verdict.ok, found.verdict.rule, found.chunk) == (False, rule, bad)
    huge = chunk(column(1, [1e300, -1e300] * 8))
    assert not gate.admit(huge, NOW, TOOL).verdict.ok


@pytest.mark.parametrize("rule", ORDERS)
def test_every_rule_of_motion_has_a_response(ur5, rule):
    assert getattr(ur5.limits.above, rule) == "scale"
    with pytest.raises(TaskError, match=f"{rule} is 'slow'; valid is one of warn, scale, stop"):
        AboveLimits(**{rule: "slow"})


def test_a_least_scale_that_no_chunk_has_room_for_is_refused():
    with pytest.raises(TaskError, match=r"least_scale is 0\.1; valid is a number, 0\.25 or more"):
        AboveLimits(least_scale=0.1)
