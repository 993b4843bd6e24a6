"""The parts of an arm stay off one another: distances against ones computed otherwise, and refusals."""

import time
from dataclasses import replace

import numpy as np
import pytest
from envelope_chunks import NOW
from joint_task import HOME, joint_chunk, joint_task, model_of

from bid_ros.control.arm_model import ArmModel
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import TaskError
from bid_ros.core.rotation import matrix_from_vector, matrix_to_6d
from bid_ros.core.shapes import ToolPart
from bid_ros.safety.envelope import Envelope
from bid_ros.safety.gate import Gate
from bid_ros.safety.screen import Screen
from bid_ros.safety.self_collision import SelfCollision

TOOLS = {
    "franka": (ToolPart("hand", (0.0, -0.07, -0.07), 0.033, (0.0, 0.07, -0.07)),),
    "ur": (
        ToolPart("gripper", (0.0, 0.0, -0.13), 0.05, (0.0, 0.0, -0.07)),
        ToolPart("camera", (0.09, 0.0, -0.1), 0.025),
    ),
}
WIDE = {"workspace_min": (-2.0,) * 3, "workspace_max": (2.0,) * 3, "max_tilt": 3.2}


def asking(task, least=0.01, **limits):
    limited = replace(task.limits, min_self_distance=least, keep_out=(), **WIDE, **limits)
    return replace(task, limits=limited, tool_shape=TOOLS[task.robot], start=None)


@pytest.fixture(params=["franka", "ur"])
def robot(request):
    return request.param


def folded(robot, model: ArmModel, check: SelfCollision):
    """Return joints inside the limits, at which two parts touch, and joints near them at which none do."""
    random = np.random.default_rng(2)
    low, high = np.maximum(model.limits.low, -3.0), np.minimum(model.limits.high, 3.0)
    for joints in random.uniform(low, high, (2000, model.joints)):
        if check.nearest(joints)[0] < 0.0:
            ways = np.linspace(np.array(HOME[robot]), joints, 400)
            first = next(number for number, way in enumerate(ways) if check.nearest(way)[0] < 0.01)
            return ways[first], ways[max(0, first - 3)]
    raise AssertionError("no posture touches itself")


def axes(model: ArmModel, joints, task):
    """Return the ends ``(S, 2, 3)``, radii and joints of all capsules, base frame, by the arm's own kinematics."""
    found = []
    place, rotation = np.zeros(3), np.eye(3)
    frames = [(place, rotation)]
    for frame, angle in zip(model.chain.frames[:-1], joints, strict=True):
        place, rotation = place + rotation @ frame.position, rotation @ frame.rotation
        rotation = rotation @ matrix_from_vector([0.0, 0.0, angle])
        frames.append((place, rotation))
    for shape in model.shapes():
        place, rotation = frames[shape.joint]
        way = 0.5 * getattr(shape.geometry, "halfLength", 0.0) * 2.0 * shape.rotation[:, 2]
        ends = [place + rotation @ (shape.position + sign * way) for sign in (-1, 1)]
        found.append((np.array(ends), shape.geometry.radius, shape.joint))
    tool, turn = model.forward(joints)
    for part in task.tool_shape:
        ends = [tool + turn @ np.array(end) for end in (part.begin, part.end or part.begin)]
        found.append((np.array(ends), part.radius, model.joints))
    return found


def test_the_nearest_parts_are_those_of_sampled_capsules(robot):
    task = asking(joint_task(robot))
    model = model_of(task)
    check = SelfCollision.asked(task, model)
    along, random = np.linspace(0, 1, 120)[:, None], np.random.default_rng(0)
    for joints in np.array(HOME[robot]) + random.uniform(-0.5, 0.5, (6, model.joints)):
        parts, least = axes(model, joints, task), np.inf
        for one, (ends, radius, joint) in enumerate(parts):
            for other_ends, other_radius, other in parts[one + 1 :]:
                if abs(joint - other) > 1 and (joint, other) not in model.never_meet:
                    lines = [each[0] + along * (each[1] - each[0]) for each in (ends, other_ends)]
                    apart = np.linalg.norm(lines[0][:, None] - lines[1], axis=2).min()
                    least = min(least, apart - radius - other_radius)
        assert check.nearest(joints)[0] == pytest.approx(least, abs=2e-3)


def test_a_chunk_of_joints_that_folds_the_arm_into_itself_is_refused(robot):
    task = asking(joint_task(robot))
    model = model_of(task)
    check = SelfCollision.asked(task, model)
    touching, free = folded(robot, model, check)
    envelope, plain = (
        Envelope(each, model) for each in (task, replace(task, limits=replace(task.limits, min_self_distance=None)))
    )
    way = np.linspace(free, touching, 4)[np.minimum(np.arange(8), 3)]
    for rows, rule in ((np.tile(free, (8, 1)), ""), (way, "self_collision")):
        chunk = joint_chunk(task, rows)
        place, turn = model.forward(rows[0])
        assert plain.check(chunk, chunk.stamp_ns, place, rows[0], turn).ok
        verdict = envelope.check(chunk, chunk.stamp_ns, place, rows[0], turn)
        assert verdict.rule == rule
    assert verdict.row >= 1 and verdict.measured < verdict.limit == 0.01
    assert verdict.reason.startswith("'") and verdict.reason.endswith(
        "near each other at action 3; the least is 10.0 mm"
    )
    later = envelope.check(chunk, chunk.stamp_ns + task.dt_ns, place, rows[0], turn)
    assert (later.rule, later.row) == ("self_collision", 3), "a row has passed, which is counted too"
    assert not Gate(task, model).admit(chunk, chunk.stamp_ns, place, rows[0], turn).verdict.ok


def test_a_chunk_of_poses_is_judged_by_the_predicted_joints(task):
    task = asking(task, max_speed=5.0, max_acceleration=50.0, max_jerk=1e4)
    model = model_of(joint_task("franka"))
    check = SelfCollision.asked(task, model)
    touching, free = folded("franka", model, check)
    envelope = Envelope(task, ArmModel(model.chain, model.limits, tuple(free), model.shapes, model.never_meet))
    ways = np.linspace(free, touching, 4)[np.minimum(np.arange(16), 3)]
    places, turns = model.forward(ways)
    rows = np.concatenate([places, matrix_to_6d(turns), np.full((16, 1), 0.04)], axis=1)
    for count, rule in ((16, "self_collision"), (1, "")):
        shown = rows if count == 16 else np.tile(rows[0], (16, 1))
        verdict = envelope.check(ActionChunk(NOW, task.dt_ns, shown), NOW, places[0], free, turns[0])
        assert verdict.rule == rule, verdict.reason


def test_one_chunk_takes_less_than_three_milliseconds(robot):
    task = asking(joint_task(robot))
    model = model_of(task)
    check, took = SelfCollision.asked(task, model), []
    rows = np.tile(HOME[robot], (1, 16, 1))
    for _ in range(60):
        begin = time.perf_counter()
        list(check.bounds(rows))
        took.append(time.perf_counter() - begin)
    assert np.median(took) <= 3e-3


def test_the_screen_tells_whether_a_prediction_is_free(robot):
    task = asking(joint_task(robot))
    model = model_of(task)
    touching, free = folded(robot, model, SelfCollision.asked(task, model))
    screen = Screen(task, model)
    for joints, ok in ((free, True), (touching, False)):
        prediction = np.zeros((task.horizon, task.action_dim))
        prediction[:, task.columns("joints")] = joints
        assert screen.free(prediction) is ok
    assert Screen(asking(task, None), model).free is None


def test_a_rule_without_geometry_is_one_sentence(robot):
    task = asking(joint_task(robot))
    model = model_of(task)
    unknown = ArmModel(model.chain, model.limits, model.rest)
    sentence = rf"min_self_distance is 0\.01 m, but the shapes of the links of robot '{robot}' are not known; valid is"
    with pytest.raises(TaskError, match=sentence):
        Envelope(task, unknown)
    assert Envelope(asking(task, None), unknown)


def test_joints_that_are_not_finite_are_kept_by_no_bound(robot):
    task = asking(joint_task(robot))
    check = SelfCollision.asked(task, model_of(task))
    rows = np.tile(HOME[robot], (2, 4, 1))
    rows[1, 2, 0] = np.nan
    (bound,) = check.bounds(rows)
    assert bound.kept.tolist() == [True, False]
