"""Objects of a task file in the twin of each robot: laid out by the seed, moved, judged, and in nobody's way."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from bid_ros.core.errors import ArmError, TaskError
from bid_ros.core.objects import SceneObject, SuccessRule
from bid_ros.core.rotation import matrix_from_6d, quaternion_from_matrix
from bid_ros.robots.franka.model import LIMBS
from bid_ros.robots.gripper import GripperThresholds
from bid_ros.sim.limbs import ToolReach
from bid_ros.system.folder import find_system
from bid_ros.tasks.base import PENDING, STEP_NS
from bid_ros.tasks.registry import build_score, build_stage, kind_of
from bid_ros.tasks.table.furniture import ObjectScene
from bid_ros.tasks.table.layout import object_layout
from bid_ros.tasks.table.pushing import push_demonstrator
from bid_ros.tasks.twins import scene_model

UP = np.array([0.0, 0.0, 0.0, 1.0])
LYING = np.array([0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5)])
AWAY = np.array([0.4, -0.2, 0.3])
BLOCK = SceneObject("block", "box", (0.04, 0.04, 0.04), (0.40, -0.20), (0.48, -0.10), start_turn=1.0)
BALL = SceneObject("ball", "sphere", (0.04, 0.04, 0.04), (0.50, -0.20), (0.52, -0.18))
BIN = SceneObject("bin", "cylinder", (0.12, 0.12, 0.06), (0.44, 0.05), (0.46, 0.15), moved_by="nobody", hollow=True)
TRAY = SceneObject("tray", "box", (0.10, 0.08, 0.03), (0.60, 0.02), (0.62, 0.03), hollow=True, mass=0.3)
CART = SceneObject("cart", "cylinder", (0.05, 0.05, 0.03), (0.56, -0.22), (0.66, -0.10), moved_by="person")
MARK = SceneObject("mark", "mark", (0.10, 0.20), (0.55, 0.15), (0.55, 0.15))
WIDE = replace(BLOCK, name="wide", start_min=(0.44, -0.15), start_max=(0.44, -0.15), size=(0.2, 0.2, 0.2))
ALL = (BLOCK, BALL, BIN, TRAY, CART, MARK)
CUBE = "".join(f"v {x} {y} {z}\n" for x in (0, 10) for y in (0, 20) for z in (0, 40)) + "".join(
    f"f {face}\n" for face in ("1 2 4 3", "5 7 8 6", "1 5 6 2", "3 4 8 7", "1 3 7 5", "2 6 8 4")
)


def table(name="franka_place", objects=ALL, success=()):
    return replace(find_system(name).task, kind="table", objects=objects, success=success)


@pytest.fixture(params=["franka_place", "ur5_pick"])
def task(request):
    return table(request.param)


def settled(task, layout, seconds=0.5):
    """Return where everything is some time after the layout; the arm hangs where it hangs."""
    model = scene_model(task)
    model.opt.gravity[:] = (0.0, 0.0, -9.81)
    data = mujoco.MjData(model)
    world = ObjectScene(task).world(model, data)
    world.lay_out(layout)
    world.start_path()
    for _ in range(round(seconds / model.opt.timestep)):
        world.before_step()
        mujoco.mj_step(model, data)
    return world.ground_truth(0).bodies


def test_a_seed_puts_everything_in_its_place_and_it_stays_there(task):
    layout = object_layout(ALL, 7)
    bodies = settled(task, layout)
    assert tuple(bodies) == kind_of(task).bodies == tuple(item.name for item in ALL)
    for item in ALL:
        first, turn = layout.poses[item.name]
        assert (first[:2] >= item.start_min).all() and (first[:2] <= item.start_max).all()
        assert abs(turn) <= item.start_turn and first[2] == item.height / 2
        np.testing.assert_allclose(bodies[item.name][0], first, atol=1e-3)


def test_seeds_differ_and_one_seed_is_the_same_everywhere():
    one, again, other = (object_layout(ALL, seed).poses["block"] for seed in (3, 3, 4))
    assert (one[0] == again[0]).all() and one[1] == again[1] and not (one[0] == other[0]).all()


def test_a_person_moves_an_object_round_and_round_in_its_region():
    layout = object_layout(ALL, 5, 0.05)
    path = np.array([layout.circles["cart"].position(t) for t in np.arange(0.0, 20.0, 0.1)])
    assert (path >= CART.start_min).all() and (path <= CART.start_max).all() and np.ptp(path[:, 0]) > 0.03
    np.testing.assert_allclose(np.linalg.norm(np.diff(path[10:], axis=0), axis=1), 0.005, atol=2e-4)
    moved = settled(table(), layout, 2.0)["cart"][0]
    np.testing.assert_allclose(moved[:2], layout.circles["cart"].position(2.0), atol=1e-3)


@pytest.mark.parametrize(
    ("objects", "seed", "speed", "sentence"),
    [
        (ALL, -1, 0.0, "episode seed is -1; valid is 0 or more"),
        (ALL, 0, 0.5, r"cart speed is 0.5 m/s; valid is 0 \(static\) to 0.1"),
        ((BLOCK,), 0, 0.03, "target speed is 0.03 m/s; valid is 0, as a person moves no object"),
        ((BLOCK, WIDE), 0, 0.0, "no room for 'wide' beside the others; valid is a larger start region"),
    ],
)
def test_an_episode_that_cannot_be_laid_out_is_one_sentence(objects, seed, speed, sentence):
    with pytest.raises(TaskError, match=sentence):
        object_layout(objects, seed, speed)


def test_a_gripper_in_the_way_is_one_sentence_and_nothing_changes():
    task = table(objects=(replace(BLOCK, size=(0.1, 0.1, 0.5)),))
    model = scene_model(task)
    data = mujoco.MjData(model)
    world = ObjectScene(task).world(model, data)
    ToolReach(model, data, LIMBS).home(LIMBS.home)
    before = data.qpos.copy()
    layout = object_layout(task.objects, 0)
    layout.poses["block"][0][:2] = data.body("robot0_hand").xpos[:2]
    with pytest.raises(ArmError, match="the gripper is where 'block' is to be in the next episode of the twin: raise"):
        world.lay_out(layout)
    np.testing.assert_array_equal(data.qpos, before)


@pytest.mark.parametrize("name", ["gripper", "world"])
def test_a_name_of_the_robot_is_refused(name):
    with pytest.raises(TaskError, match=f"'{name}' is a part of the robot in its twin; valid is another name"):
        scene_model(table("ur5_pick", (replace(BLOCK, name=name),)))


def test_an_object_may_be_called_as_a_joint_of_the_robot():
    assert scene_model(table("ur5_pick", (replace(BLOCK, name="elbow"),))).body("elbow").id


def test_a_mesh_has_the_size_and_the_middle_that_the_file_says(tmp_path):
    (tmp_path / "brick.obj").write_text(CUBE)
    brick = SceneObject("brick", "mesh", (0.05, 0.06, 0.07), (0.5, 0.0), (0.5, 0.0), mesh=str(tmp_path / "brick.obj"))
    task = table(objects=(brick,))
    model = scene_model(task)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    geom = int(model.body("brick").geomadr[0])
    points = model.mesh_vert @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]
    np.testing.assert_allclose(points.max(axis=0), [0.525, 0.03, 0.07], atol=1e-6)
    np.testing.assert_allclose(points.min(axis=0), [0.475, -0.03, 0.0], atol=1e-6)
    assert model.body("brick").mass[0] == pytest.approx(0.1)
    np.testing.assert_allclose(settled(task, object_layout((brick,), 1))["brick"][0], [0.5, 0.0, 0.035], atol=1e-3)
    (tmp_path / "text.obj").write_text("not a mesh")
    with pytest.raises(TaskError, match=r"'brick': mesh .*text\.obj cannot be read: "):
        scene_model(table(objects=(replace(brick, mesh=str(tmp_path / "text.obj")),)))


def test_a_ball_over_a_bin_falls_into_it_and_physics_calls_it_inside():
    task = table(objects=(BALL, BIN), success=(SuccessRule("ball", "inside", "bin"),))
    layout = object_layout(task.objects, 2)
    layout.poses["ball"][0][:] = layout.poses["bin"][0] + [0.01, 0.01, 0.1]
    first = {name: (middle, UP) for name, (middle, _) in layout.poses.items()}
    assert judged(task, first) == PENDING
    bodies = settled(task, layout, 1.0)
    assert judged(task, bodies) == "success" and 0.0 < bodies["ball"][0][2] < 0.05


def judged(task, bodies, tool=AWAY, width=0.08, seconds=0.6):
    """Return the outcome of a state that lasts."""
    score = build_score(task)
    return [score.update(step * STEP_NS, bodies, tool, width) for step in range(round(seconds * 100))][-1]


def at(*place, turn=UP):
    return np.array(place), turn


@pytest.mark.parametrize(
    ("rule", "block", "tool", "width", "holds"),
    [
        (("above", "mark"), at(0.59, 0.20, 0.02), AWAY, 0.08, True),
        (("above", "mark"), at(0.61, 0.20, 0.02), AWAY, 0.08, False),
        (("above", "mark"), at(0.59, 0.20, 0.30), AWAY, 0.08, True),
        (("inside", "mark"), at(0.57, 0.20, 0.02), AWAY, 0.08, True),
        (("inside", "mark"), at(0.59, 0.20, 0.02), AWAY, 0.08, False),
        (("inside", "mark"), at(0.57, 0.20, 0.10), AWAY, 0.08, False),
        (("above", "bin"), at(0.45, 0.10, 0.08), AWAY, 0.08, True),
        (("inside", "bin"), at(0.45, 0.10, 0.08), AWAY, 0.08, False),
        (("inside", "bin"), at(0.45, 0.10, 0.03), AWAY, 0.08, True),
        (("inside", "bin"), at(0.45, 0.17, 0.03), AWAY, 0.08, False),
        (("upright",), at(0.45, 0.10, 0.02), AWAY, 0.08, True),
        (("upright",), at(0.45, 0.10, 0.02, turn=np.array([0.1, 0.0, 0.0, 0.995])), AWAY, 0.08, False),
        (("held",), at(0.45, 0.10, 0.05), np.array([0.45, 0.10, 0.06]), 0.04, True),
        (("held",), at(0.45, 0.10, 0.02), np.array([0.45, 0.10, 0.03]), 0.04, False),
        (("held",), at(0.45, 0.10, 0.05), np.array([0.45, 0.10, 0.06]), 0.08, False),
        (("held",), at(0.45, 0.10, 0.05), AWAY, 0.04, False),
        (("released",), at(0.45, 0.10, 0.05), np.array([0.45, 0.10, 0.06]), 0.04, False),
        (("released",), at(0.45, 0.10, 0.05), np.array([0.45, 0.10, 0.06]), 0.08, True),
        (("released",), at(0.45, 0.10, 0.02), AWAY, 0.04, True),
    ],
)
def test_a_rule_holds_while_it_says_so(rule, block, tool, width, holds):
    name, *target = rule
    task = table(objects=(BLOCK, BIN, MARK), success=(SuccessRule("block", name, *target),))
    bodies = {"block": block, "bin": at(0.45, 0.10, 0.03), "mark": at(0.55, 0.15, 0.0)}
    assert judged(task, bodies, tool, width) == ("success" if holds else PENDING)


def test_all_rules_hold_at_once_each_for_its_own_time():
    rules = SuccessRule("block", "above", "mark", 0.2), SuccessRule("block", "released", for_s=0.4)
    score = build_score(table(objects=(BLOCK, MARK), success=rules))
    there = {"block": at(0.55, 0.15, 0.02), "mark": at(0.55, 0.15, 0.0)}
    beside = there | {"block": at(0.45, 0.15, 0.02)}
    outcomes = [score.update(ms * 1_000_000, beside if ms < 100 else there, AWAY, 0.08) for ms in range(0, 600, 10)]
    assert outcomes.index("success") == 40, "0.4 s after the first one"
    assert score.progress(beside) == "block to mark  100 mm"
    score.reset()
    assert score.update(700_000_000, there, AWAY, 0.08) == PENDING


@pytest.mark.parametrize("block", [at(0.45, 0.10, 0.02, turn=LYING), at(0.9, 0.10, 0.02)])
def test_what_has_fallen_over_or_is_out_of_reach_is_dropped_unless_it_is_held(block):
    task = table(objects=(BLOCK,), success=(SuccessRule("block", "upright", for_s=5.0),))
    assert judged(task, {"block": block}) == "dropped"
    assert judged(task, {"block": block}, block[0], 0.04) == PENDING


def test_a_task_with_objects_and_without_rules_has_no_judge():
    score = build_score(table())
    assert score.timeout == "not judged" and score.update(0, {}, AWAY, 0.08) == PENDING


def test_a_robot_whose_limbs_nobody_knows_cannot_be_rehearsed(monkeypatch):
    from bid_ros.robots.registry import ROBOTS

    robot = ROBOTS.find("ur")
    monkeypatch.setitem(ROBOTS._own, "ur", replace(robot, twin=replace(robot.twin, limbs="")))
    with pytest.raises(TaskError, match="robot 'ur' cannot be rehearsed with objects; run them in its twin: bid up"):
        build_stage(table("ur5_pick"), GripperThresholds(0.03, 0.07))


def test_a_grasp_in_lockstep_lifts_what_it_holds(task):
    """The stage's fingers hold a block by friction alone, with the hand of either robot."""
    block = replace(BLOCK, start_min=(0.45, -0.1), start_max=(0.45, -0.1), start_turn=0.0)
    lift = (SuccessRule("block", "held", for_s=0.3),)
    stage = build_stage(replace(task, objects=(block,), success=lift), GripperThresholds(0.03, 0.07))
    try:
        stage.begin(1, np.array([0.45, -0.1, 0.20]), 0.0)
        down = np.array([1.0, 0.0, 0.0, 0.0])
        heights = [*np.linspace(0.20, 0.03, 80), *[0.03] * 80, *np.linspace(0.03, 0.15, 80), *[0.15] * 60]
        outcomes = [
            stage.step(np.array([0.45, -0.1, height]), down, 0.08 if step < 80 else 0.0)
            for step, height in enumerate(heights)
        ]
        assert "success" in outcomes and not any(outcomes[:160])
        assert stage.bodies["block"][2] == pytest.approx(0.14, abs=0.01)
        assert stage.width == pytest.approx(0.04, abs=0.003)
    finally:
        stage.close()


@pytest.mark.parametrize(("rule", "seed"), [("above", 3), ("inside", 6)])
def test_a_turned_bar_is_pushed_to_its_place_on_a_turned_mark(rule, seed):
    bar = replace(BLOCK, size=(0.16, 0.04, 0.05), start_min=(0.42, -0.1), start_max=(0.48, 0.1), start_turn=1.57)
    mark = replace(
        MARK, size=(0.2, 0.3) if rule == "inside" else (0.03, 0.4), start_min=(0.6, 0.0), start_max=(0.6, 0.0)
    )
    mark = replace(mark, start_turn=0.5 if rule == "inside" else 0.0)
    task = table(objects=(bar, mark), success=(SuccessRule("block", rule, "mark"),))
    stage = build_stage(task, GripperThresholds(0.03, 0.07))
    try:
        stage.begin(seed, np.array([0.45, 0.0, 0.28]), 0.0)
        pusher = push_demonstrator(task).plan("push", seed, stage.measured[0], stage.bodies, 0)
        outcome, times = "", iter(np.arange(0.0, pusher.duration, STEP_NS / 1e9))
        while not outcome and (time_s := next(times, None)) is not None:
            position, rotation, width, _ = pusher.pose_at(time_s)
            outcome = stage.step(position, quaternion_from_matrix(matrix_from_6d(rotation)), width)
        assert outcome == "success", stage.bodies
    finally:
        stage.close()
