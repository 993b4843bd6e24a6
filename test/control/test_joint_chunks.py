from dataclasses import replace

import numpy as np
import pytest
from joint_task import HOME, joint_task, model_of

from bid_ros.control.homing import HomingPlan
from bid_ros.control.joint_chunks import JointChunks, tool_task
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import ArmError, TaskError
from bid_ros.core.feature import Feature
from bid_ros.core.rotation import DOWN_6D, matrix_to_6d
from bid_ros.safety.envelope import Envelope

DT = 50_000_000


def wide(task, place):
    box = {"workspace_min": tuple(place - 0.5), "workspace_max": tuple(place + 0.5)}
    return replace(task, limits=replace(task.limits, **box), start=None)


@pytest.fixture(params=["franka", "ur"])
def robot(request):
    return request.param


def test_the_tool_task_commands_the_pose_in_the_place_of_the_joints(robot):
    task = joint_task(robot)
    tool = tool_task(task)
    assert [item.kind for item in tool.action] == ["position", "rotation_6d", "gripper"]
    assert tool.observation == task.observation and tool.limits == task.limits
    assert tool_task(tool) is tool


@pytest.mark.parametrize(("robot", "twist"), [("franka", 0.0), ("franka", 0.25), ("ur", 0.0)], indirect=["robot"])
def test_homing_becomes_a_motion_of_joints_that_the_safety_node_lets_pass(robot, twist):
    """Also where a redundant arm begins in another posture than its usual one."""
    task = joint_task(robot)
    model = model_of(task)
    home = HOME[robot].copy()
    if robot == "franka":  # the elbow swung round, the tool still pointing down
        position, rotation = model.forward(home)
        swung = home + twist * np.array([-1, 0, 1, 0, 0, 0, 0])
        home = model.chain.inverse(position[None], rotation[None], swung, swung)[0]
    place, rotation = model.forward(home)
    task = wide(task, place)
    envelope = Envelope(task, arm=model)
    goal = place + np.array([0.05, 0.1, -0.08])
    plan = HomingPlan(place, matrix_to_6d(rotation), goal, DOWN_6D, 0.04, 0, task.limits)
    chunks = JointChunks(task, model)
    chunks.begin(home, 0)
    joints = home
    for now in range(0, round((plan.duration + 4.0) * 1e9), DT):
        tool = plan.chunk_at(now, 10, DT)
        chunk = chunks.convert(tool)
        place, rotation = model.forward(chunk.actions[:, : model.joints])
        np.testing.assert_allclose(place, tool.actions[:, :3], atol=2e-5)
        np.testing.assert_allclose(matrix_to_6d(rotation), tool.actions[:, 3:9], atol=2e-4)
        assert (chunk.actions[:, -1] == 0.04).all()
        verdict = envelope.check(chunk, now, model.forward(joints)[0], joints)
        assert verdict.ok, verdict.reason
        np.testing.assert_allclose(chunk.actions[0, : model.joints], joints, atol=0.08)
        joints = chunk.actions[1, : model.joints]
    usual = model.chain.inverse(goal[None], model.forward(joints)[1][None], joints, model.rest)
    np.testing.assert_allclose(joints, usual[0], atol=1e-3)


def test_chunks_that_overlap_agree(robot):
    task = joint_task(robot)
    model = model_of(task)
    position, rotation = model.forward(HOME[robot])
    rows = np.tile([*position, *matrix_to_6d(rotation), 0.04], (16, 1))
    rows[:, 1] += 0.01 * np.arange(16)
    chunks = JointChunks(task, model)
    chunks.begin(HOME[robot], 0)
    first = chunks.convert(ActionChunk(10**11, DT, rows))
    later = chunks.convert(ActionChunk(10**11 + 5 * DT, DT, rows[5:]))
    np.testing.assert_allclose(first.actions[5:], later.actions, atol=1e-4)


def test_a_pose_out_of_reach_is_one_sentence(robot):
    task = joint_task(robot)
    chunks = JointChunks(task, model_of(task))
    chunks.begin(HOME[robot], 0)
    rows = np.tile([5.0, 0.0, 0.3, *DOWN_6D, 0.04], (4, 1))
    with pytest.raises(ArmError, match="out of the arm's reach"):
        chunks.convert(ActionChunk(0, DT, rows))


def test_a_task_that_commands_more_is_refused():
    task = joint_task("franka")
    with pytest.raises(TaskError, match="valid are joints"):
        JointChunks(tool_task(task), model_of(task))
    with pytest.raises(TaskError, match="valid are joints"):
        JointChunks(replace(task, action=(*task.action, Feature("tool", "position"))), model_of(task))


def test_many_samples_are_solved_as_each_alone(robot):
    task = joint_task(robot)
    model = model_of(task)
    position, rotation = model.forward(HOME[robot])
    random = np.random.default_rng(0)
    samples = np.tile([*position, *matrix_to_6d(rotation), 0.04], (6, 8, 1))
    samples[:, :, :3] += np.cumsum(random.normal(0, 0.005, (6, 8, 3)), axis=1)
    samples[4, 3, 0] += 3.0
    chunks = JointChunks(task, model)
    chunks.begin(HOME[robot], 0)
    joints, reached = chunks.solve(samples)
    assert reached.tolist() == [True, True, True, True, False, True]
    for sample, found in zip(samples[:4], joints, strict=False):
        alone = chunks.convert(ActionChunk(0, task.dt_ns, sample)).actions[:, : model.joints]
        np.testing.assert_allclose(found, alone, atol=2e-3)
