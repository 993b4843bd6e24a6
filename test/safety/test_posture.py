"""The joints behind commanded poses: what the robot cannot do is refused, in the screen as in the envelope."""

from dataclasses import replace

import numpy as np
import pytest
from joint_task import HOME, SYSTEMS, joint_task, model_of

from bid_ros.core.chunk import ActionChunk
from bid_ros.core.rotation import matrix_to_6d
from bid_ros.core.task import load_task
from bid_ros.safety.envelope import Envelope
from bid_ros.safety.gate import Gate
from bid_ros.safety.screen import Screen
from bid_ros.safety.verdict import Action

NOW = 1_000_000_000_000


class Posed:
    """A pose task of a robot, whose workspace is wide, and chunks from home."""

    def __init__(self, root, robot):
        task = load_task(root / "config" / SYSTEMS[robot] / "task.yaml")
        wide = {"workspace_min": (-3.0,) * 3, "workspace_max": (3.0,) * 3, "max_acceleration": 50.0, "max_tilt": 3.1}
        wide["min_self_distance"] = None
        self.task = replace(task, start=None, limits=replace(task.limits, **wide))
        self.arm, self.home = model_of(joint_task(robot)), HOME[robot]
        self.place, self.rotation = self.arm.forward(self.home)

    def rows(self, way, count=15):
        """Rows that go ``way`` (3,) m a row from home."""
        rows = np.zeros((count, self.task.action_dim))
        rows[:, :3] = self.place + np.arange(count)[:, None] * np.array(way)
        rows[:, 3:9], rows[:, 9] = matrix_to_6d(self.rotation), 0.04
        return rows

    def check(self, rows, arm=None, task=None, joints="home"):
        envelope = Envelope(task or self.task, arm or self.arm)
        chunk = ActionChunk(NOW, self.task.dt_ns, rows)
        return envelope.check(chunk, NOW, rows[0, :3], self.home if isinstance(joints, str) else joints, self.rotation)

    def limited(self, **limits):
        return replace(self.arm, limits=replace(self.arm.limits, **limits))


@pytest.fixture(params=["franka", "ur"])
def posed(root, request):
    return Posed(root, request.param)


def test_an_ordinary_motion_passes(posed):
    for way in ((0.0, 0.02, 0.0), (0.01, 0.0, -0.01), (-0.01, -0.02, 0.01)):
        assert posed.check(posed.rows(way)).ok


def test_without_measured_joints_nothing_passes_and_it_says_so(posed):
    for joints in (None, posed.home[1:], np.full(len(posed.home), np.nan)):
        verdict = posed.check(posed.rows((0, 0.01, 0)), joints=joints)
        assert verdict.rule == "measurement" and "joints" in verdict.reason


def test_an_arm_that_nobody_knows_is_not_judged(posed):
    chunk = ActionChunk(NOW, posed.task.dt_ns, posed.rows((0.0, 0.01, 0.0)))
    assert Envelope(posed.task).check(chunk, NOW, chunk.actions[0, :3]).ok


def test_a_place_out_of_reach_is_named(posed):
    rows = posed.rows((0.0, 0.0, 0.0))
    rows[5:, 0] += 1.5
    limits = replace(posed.task.limits, max_speed=50.0, max_acceleration=500.0, max_jerk=1e5)
    verdict = posed.check(rows, task=replace(posed.task, limits=limits))
    assert verdict.rule == "reach" and verdict.row >= 5 and f"of action {verdict.row}" in verdict.reason


def test_rows_that_have_passed_are_counted_too(posed):
    rows = posed.rows((0.0, 0.0, 0.0))
    rows[9:, 0] += 1.5
    limits = replace(posed.task.limits, max_speed=50.0, max_acceleration=500.0, max_jerk=1e5)
    envelope = Envelope(replace(posed.task, limits=limits), posed.arm)
    chunk = ActionChunk(NOW - 3 * posed.task.dt_ns, posed.task.dt_ns, rows)
    verdict = envelope.check(chunk, NOW, rows[0, :3], posed.home, posed.rotation)
    assert (verdict.rule, verdict.row) == ("reach", 9) and "of action 9" in verdict.reason


def test_the_robot_s_own_limits_of_the_joints_hold(posed):
    rows = posed.rows((0.0, 0.03, 0.0))
    base = float(posed.home[0])
    wide = np.array(posed.arm.limits.low), np.array(posed.arm.limits.high)
    low = wide[0].copy()
    low[0] = base - 0.02
    high = wide[1].copy()
    high[0] = base + 0.02
    near = posed.limited(low=tuple(low), high=tuple(high))
    assert posed.check(rows, near).rule == "joint_position"
    slow = posed.limited(speed=(0.2,) * len(posed.home))
    verdict = posed.check(rows, slow)
    assert verdict.rule == "joint_speed" and verdict.measured > 0.2 == verdict.limit
    weak = posed.limited(acceleration=(0.01,) * len(posed.home))
    assert posed.check(rows, weak).rule == "joint_acceleration"


def test_a_motion_too_fast_for_the_joints_is_slowed(posed):
    rows = posed.rows((0.0, 0.03, 0.0))
    fastest = posed.check(rows, posed.limited(speed=(0.01,) * len(posed.home))).measured
    arm = posed.limited(speed=(0.7 * fastest,) * len(posed.home))
    found = Gate(posed.task, arm).admit(ActionChunk(NOW, posed.task.dt_ns, rows), NOW, rows[0, :3], posed.home)
    assert found.verdict.action is Action.SCALE and found.verdict.rule == "joint_speed"
    assert 0.4 < found.chunk.scale <= 0.75
    assert posed.check(found.chunk.actions, arm).ok


def test_a_singular_posture_is_refused(posed):
    limits = replace(posed.task.limits, min_singular_value=0.5)
    verdict = posed.check(posed.rows((0.0, 0.01, 0.0)), task=replace(posed.task, limits=limits))
    assert verdict.rule == "singularity" and 0 < verdict.measured < 0.5 == verdict.limit
    assert verdict.reason.endswith("the least is 0.5000")


def test_the_screen_drops_what_the_envelope_refuses(posed):
    ways = [(0.0, y, z) for y in (-0.045, -0.02, 0.0, 0.02, 0.045) for z in (-0.01, 0.0, 0.01)]
    motions = np.stack([posed.rows(way) for way in ways])
    arm = posed.limited(speed=(0.45,) * len(posed.home))
    screen = Screen(posed.task, posed=arm)
    samples = np.concatenate([motions[:, :1], motions], axis=1)  # one row of the past
    assert screen.rest(samples).all() and screen.free(samples[0])  # nothing is measured: the safety node judges
    screen.measured = posed.home
    assert screen.passes(samples).all(), "in all samples it would take too long"
    passed = screen.rest(samples)
    assert 0 < passed.sum() < len(ways)
    assert passed.tolist() == [posed.check(rows, arm).ok for rows in motions]
    assert passed.tolist() == [screen.free(sample) for sample in samples]
    assert Screen(posed.task).free is None and Screen(posed.task).rest is None
