"""Whole chunks of joints against the limits of robot and task, and the tool's through forward kinematics."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from joint_task import HOME, around_home, joint_chunk, joint_task, model_of

from bid_ros.control.joint_chunks import JointChunks, tool_task
from bid_ros.core.errors import ArmError, TaskError
from bid_ros.core.feature import Feature
from bid_ros.core.rotation import matrix_to_6d
from bid_ros.safety.envelope import Envelope
from bid_ros.safety.joints import JointEnvelope
from bid_ros.safety.screen import Screen

NOW = 1_000_000_000_000
ROWS = 16
RAMP = np.arange(ROWS)[:, None]


@pytest.fixture(params=["franka", "ur"])
def robot(request):
    return request.param


class Bench:
    """An envelope around the home of a robot."""

    def __init__(self, robot, **limits):
        self.home, self.task = HOME[robot], around_home(robot, **limits)
        self.model = model_of(self.task)
        self.envelope = Envelope(self.task, arm=self.model)
        self.tool = self.model.forward(self.home)[0]

    def check(self, joints, measured=None, tool=None, **fields):
        chunk = joint_chunk(self.task, joints, **fields)
        here = self.home if measured is None else measured
        return self.envelope.check(chunk, NOW, self.tool if tool is None else tool, here)

    def moved(self, joint, rows):
        """Return the home, with a joint moved by ``rows``."""
        joints = np.tile(self.home, (ROWS, 1))
        joints[:, joint] += rows
        return joints


def test_a_slow_motion_of_every_joint_passes(robot):
    bench = Bench(robot)
    assert bench.check(bench.home + 0.01 * RAMP).ok


def test_a_position_beyond_its_end_says_joint_value_and_limits(robot):
    bench = Bench(robot)
    high = bench.model.limits.high[3]
    joints = np.tile(bench.home, (ROWS, 1))
    joints[5, 3] = high + 0.01
    verdict = bench.check(joints)
    assert (verdict.rule, verdict.measured, verdict.limit) == ("joint_position", high + 0.01, high)
    name = bench.model.limits.names[3]
    assert f"joint 4 ({name}) is {high + 0.01:.3f} rad in action 5" in verdict.reason
    assert f"to {high:.3f} rad" in verdict.reason


def test_the_limit_itself_passes(robot):
    bench = Bench(robot, workspace_min=(-3.0,) * 3)
    low = bench.model.limits.low[0]
    wide = replace(bench.task.limits, workspace_min=(-3.0,) * 3, workspace_max=(3.0,) * 3)
    envelope = Envelope(replace(bench.task, limits=wide), arm=bench.model)
    joints = np.tile(bench.home, (ROWS, 1))
    joints[:, 0] = low
    tool = bench.model.forward(joints[0])[0]
    assert envelope.check(joint_chunk(bench.task, joints), NOW, tool, joints[0]).ok
    joints[3, 0] = np.nextafter(low, -9)
    assert envelope.check(joint_chunk(bench.task, joints), NOW, tool, joints[0]).rule == "joint_position"


def test_speed_and_acceleration_say_joint_value_and_limit(robot):
    bench = Bench(robot, max_joint_speed=0.4, max_speed=9.0, max_turn_rate=9.0)
    verdict = bench.check(bench.moved(5, 0.041 * RAMP[:, 0]))
    assert verdict.rule == "joint_speed" and verdict.limit == 0.4
    assert verdict.measured == pytest.approx(0.41)
    assert f"joint 6 ({bench.model.limits.names[5]}) turns at 0.410 rad/s" in verdict.reason
    assert "the limit is 0.400 rad/s" in verdict.reason
    bench = Bench(robot, max_joint_acceleration=2.0)
    verdict = bench.check(bench.moved(5, 0.03 * (RAMP[:, 0] == 7)))
    assert verdict.rule == "joint_acceleration" and verdict.limit == 2.0
    assert verdict.measured == pytest.approx(6.0)
    assert "joint 6" in verdict.reason and "6.000 rad/s^2" in verdict.reason and "2.000 rad/s^2" in verdict.reason


def test_the_robot_s_own_limit_holds_where_the_task_allows_more():
    bench = Bench("franka", max_joint_speed=99.0, max_joint_acceleration=99.0)
    verdict = bench.check(bench.moved(0, 0.28 * np.minimum(RAMP[:, 0], 4)))
    assert (verdict.rule, verdict.limit) == ("joint_speed", 2.62)
    verdict = bench.check(bench.moved(0, 0.2 * (RAMP[:, 0] == 8)))
    assert (verdict.rule, verdict.limit) == ("joint_acceleration", 10.0)


def test_the_tool_s_workspace_holds_through_forward_kinematics(robot):
    bench = Bench(robot)
    limits = replace(bench.task.limits, workspace_max=(*(bench.tool[:2] + 0.4), bench.tool[2] + 0.01))
    envelope = Envelope(replace(bench.task, limits=limits), arm=bench.model)
    joints = bench.moved(1, -0.006 * RAMP[:, 0])  # the shoulder goes back: the tool rises
    assert bench.check(joints).ok
    verdict = envelope.check(joint_chunk(bench.task, joints), NOW, bench.tool, bench.home)
    assert verdict.rule == "workspace" and "z is" in verdict.reason
    heights = bench.model.forward(joints)[0][:, 2]
    assert verdict.measured == pytest.approx(heights.max())


def test_the_tool_s_speed_and_tilt_hold_too(robot):
    bench = Bench(robot, max_speed=0.02)
    verdict = bench.check(bench.moved(0, 0.02 * RAMP[:, 0]))
    assert verdict.rule == "speed" and verdict.limit == 0.02
    bench = Bench(robot)
    limits = replace(bench.task.limits, max_tilt=0.05)
    # The wrist that bends the tool away from straight down, from where it points down.
    down = np.array(HOME[robot])
    wrist = 5 if robot == "franka" else 3
    joints = np.tile(down, (ROWS, 1))
    joints[:, wrist] += 0.02 * RAMP[:, 0]
    verdict = Envelope(replace(bench.task, limits=limits), arm=bench.model).check(
        joint_chunk(bench.task, joints), NOW, bench.tool, bench.home
    )
    assert verdict.rule == "tilt"


def test_another_posture_with_the_same_tool_is_a_jump(robot):
    """The tool stays where it is; only the joints tell that the arm would swing round."""
    bench = Bench(robot)
    verdict = bench.check(
        np.tile(bench.home, (ROWS, 1)), measured=bench.home + 0.31 * (np.arange(len(bench.home)) == 2)
    )
    assert verdict.rule == "joint_jump" and "joint 3" in verdict.reason
    assert verdict.measured == pytest.approx(0.31) and verdict.limit == 0.3


def test_unknown_joints_and_an_unknown_tool_are_refused(robot):
    bench = Bench(robot)
    chunk = joint_chunk(bench.task, np.tile(bench.home, (ROWS, 1)))
    assert bench.envelope.check(chunk, NOW, bench.tool, None).rule == "measurement"
    assert bench.envelope.check(chunk, NOW, None, bench.home).rule == "measurement"
    assert bench.envelope.check(chunk, NOW, bench.tool, bench.home[1:]).rule == "measurement"
    assert bench.envelope.check(chunk, NOW, bench.tool, np.full(len(bench.home), np.nan)).rule == "joint_jump"


def test_rows_that_have_passed_need_not_keep_the_limits(robot):
    bench = Bench(robot)
    joints = np.tile(bench.home, (ROWS, 1))
    joints[0, 0] += 5.0
    assert bench.check(joints, stamp_ns=NOW - 2 * bench.task.dt_ns).ok
    assert not bench.check(joints).ok


def broken_at_a_row(bench):
    """Yield a rule, motions ``(ROWS, joints)`` that break it, and the row where they do."""
    high = np.tile(bench.home, (ROWS, 1))
    high[9, 3] = bench.model.limits.high[3] + 0.01
    yield "joint_position", high, 9
    yield "joint_speed", bench.moved(5, 0.25 * (RAMP[:, 0] >= 10)), 9
    yield "joint_acceleration", bench.moved(5, 0.06 * (RAMP[:, 0] == 10)), 9


@pytest.mark.parametrize("passed", [0, 3])
def test_a_refusal_names_the_row_of_the_chunk_however_many_have_passed(robot, passed):
    bench = Bench(robot, max_joint_speed=2.0, max_joint_acceleration=10.0)
    for rule, joints, row in broken_at_a_row(bench):
        verdict = bench.check(joints, stamp_ns=NOW - passed * bench.task.dt_ns)
        assert (verdict.rule, verdict.row) == (rule, row)
        assert f"action {row}" in verdict.reason


def test_a_jump_is_measured_to_the_joints_for_now_between_two_rows(robot):
    bench = Bench(robot)
    moving, stamp = bench.moved(2, 0.03 * RAMP[:, 0]), NOW - round(3.5 * bench.task.dt_ns)
    here = bench.home.copy()
    here[2] += 0.03 * 3.5
    tool = bench.model.forward(here)[0]
    assert bench.check(moving, here, tool, stamp_ns=stamp).ok
    here[2] -= 0.31
    verdict = bench.check(moving, here, tool, stamp_ns=stamp)
    assert verdict.rule == "joint_jump" and verdict.measured == pytest.approx(0.31)


def test_the_joints_may_come_after_the_gripper(robot):
    bench = Bench(robot)
    envelope = Envelope(replace(bench.task, action=bench.task.action[::-1]), arm=bench.model)
    chunk = joint_chunk(bench.task, bench.home + 0.01 * RAMP)
    turned = replace(chunk, actions=np.roll(chunk.actions, 1, axis=1))
    assert envelope.check(turned, NOW, bench.tool, bench.home).ok
    assert not envelope.check(chunk, NOW, bench.tool, bench.home).ok


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_absurd_values_are_refused_without_a_warning(robot, value):
    bench = Bench(robot)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bench.check(bench.moved(2, value)).rule in ("finite", "joint_position")


def test_the_gripper_has_its_limits(robot):
    bench = Bench(robot)
    assert bench.check(np.tile(bench.home, (ROWS, 1)), width=0.3).rule == "gripper"


def test_a_task_of_joints_needs_an_arm_that_fits():
    task = joint_task("franka")
    with pytest.raises(TaskError, match="whose limits are not known"):
        Envelope(task)
    with pytest.raises(TaskError, match="commands 7 joints; valid are the 6"):
        Envelope(task, arm=model_of(joint_task("ur")))
    with pytest.raises(TaskError, match="or of joints, gripper"):
        Envelope(replace(task, action=(*task.action, Feature("tool", "position"))), arm=model_of(task))


def test_a_task_of_another_number_of_joints_is_refused():
    six = replace(joint_task("franka"), action=(Feature("joint_positions", "joints", (6,)),))
    with pytest.raises(TaskError, match=r"action 'joint_positions' has shape \(6,\); valid is \(7,\)"):
        model_of(six)


def test_limits_of_joints_say_what_is_valid():
    limits = model_of(joint_task("ur")).limits
    with pytest.raises(ArmError, match="valid is one of each for each joint"):
        replace(limits, low=limits.low[1:])
    with pytest.raises(ArmError, match="shoulder_pan_joint are 7"):
        replace(limits, low=(7.0, *limits.low[1:]))


def test_the_screen_keeps_the_samples_that_the_envelope_keeps(robot):
    bench = Bench(robot)
    good = bench.home + 0.01 * RAMP
    motions = np.stack(
        [good, bench.moved(3, 9.0), bench.moved(2, 0.25 * (RAMP[:, 0] == 5)), bench.moved(0, 0.2 * RAMP[:, 0])]
    )
    samples = np.concatenate([motions, np.full((4, ROWS, 1), 0.04)], axis=2)
    passed = Screen(bench.task, bench.model).passes(samples)
    judged = [
        Envelope(bench.task, arm=bench.model).check(joint_chunk(bench.task, row[1:]), NOW, bench.tool, row[1]).ok
        for row in motions
    ]
    assert passed.tolist() == judged == [True, False, False, False]


def test_samples_of_poses_are_screened_by_the_joints_that_they_need(robot):
    bench = Bench(robot, max_joint_speed=0.6)
    tool = tool_task(bench.task)
    chunks = JointChunks(bench.task, bench.model)
    chunks.begin(bench.home, 0)
    place, rotation = bench.model.forward(bench.home)
    samples = np.tile([*place, *matrix_to_6d(rotation), 0.04], (3, ROWS, 1))
    samples[1, :, 2] += 0.02 * RAMP[:, 0]  # 0.2 m/s: too fast for a joint, not for the tool
    samples[2, :, 0] += 0.08 * RAMP[:, 0]  # too fast for the tool
    assert Screen(tool).passes(samples).tolist() == [True, True, False]
    joints = JointEnvelope(bench.model.limits, bench.task.limits)
    fastest = np.abs(np.diff(chunks.solve(samples[1:2])[0], axis=1)).max() / 0.1
    assert Screen(tool, made=(chunks, joints)).passes(samples).tolist() == [True, bool(fastest <= 0.6), False]
    slow = JointEnvelope(bench.model.limits, replace(bench.task.limits, max_joint_speed=0.9 * fastest))
    assert Screen(tool, made=(chunks, slow)).passes(samples).tolist() == [True, False, False]


def test_samples_that_turn_the_tool_too_fast_are_screened_out(robot):
    turning = Bench(robot, max_turn_acceleration=0.5)
    samples = np.concatenate([np.tile(turning.home, (2, ROWS, 1)), np.full((2, ROWS, 1), 0.04)], axis=2)
    samples[1, :, len(turning.home) - 1] += 0.01 * (np.arange(ROWS) % 2)  # the last joint turns the tool on the spot
    assert Screen(turning.task, turning.model).passes(samples).tolist() == [True, False]
    free = replace(turning.task, limits=replace(turning.task.limits, max_turn_acceleration=100.0))
    assert Screen(free, turning.model).passes(samples).tolist() == [True, True]


def test_a_tilt_limit_of_half_a_turn_and_beyond_lets_every_pose_pass(robot):
    bench = Bench(robot)
    rows = np.concatenate([np.tile(bench.home, (1, ROWS, 1)), np.full((1, ROWS, 1), 0.04)], axis=2)
    level = bench.home.copy()
    level[-2] += 1.5  # the last but one tilts the tool
    tilted = np.concatenate([np.tile(level, (1, ROWS, 1)), rows[..., -1:]], axis=2)
    wide = {"workspace_min": (-3.0,) * 3, "workspace_max": (3.0,) * 3}
    for most, passes in ((0.6, False), (np.pi, True), (5.0, True)):
        task = replace(bench.task, limits=replace(bench.task.limits, max_tilt=most, **wide))
        assert Screen(task, bench.model).passes(np.concatenate([rows, tilted])).tolist() == [True, passes]
