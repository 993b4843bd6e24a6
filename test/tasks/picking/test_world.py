"""Whole episodes of picking by physics alone: static cups, pulled ones, and what goes wrong."""

from functools import cache

import numpy as np
import pytest
from picking_rig import Demonstration, demonstrate, rig, tool_start

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.twin.model import scene_model
from bid_ros.sim.renderer import SceneRenderer
from bid_ros.tasks.picking.demonstration import ScriptedPicker
from bid_ros.tasks.picking.geometry import CUP_RADIUS, GRASP_TOOL_HEIGHT, SAUCER_HEIGHT
from bid_ros.tasks.picking.lockstep import PickingLockstep
from bid_ros.tasks.picking.score import lean
from bid_ros.tasks.picking.string_path import picking_layout
from bid_ros.tasks.picking.world import SCENE

OPEN = 0.085
LONG = pytest.mark.long


@cache
def pulled(style: str, seed: int, speed: float) -> tuple[PickingLockstep, Demonstration]:
    """The scene after a demonstration with a pulled cup, and that; not to be changed."""
    scene = rig(seed, speed)
    return scene, demonstrate(scene, ScriptedPicker(style, seed))


@pytest.mark.parametrize(("style", "seed"), [("clean", 0), ("diverse", 3), pytest.param("diverse", 8, marks=LONG)])
def test_a_static_cup_is_picked_and_put_on_the_saucer(style: str, seed: int) -> None:
    scene = rig(seed, 0.0)
    demonstration = demonstrate(scene, ScriptedPicker(style, seed), knows=False)
    assert demonstration.outcome == "success"
    before = demonstration.of("approach", "descend")
    np.testing.assert_allclose(before[-1].bodies["cup"][0][:2], scene.layout.cup_start, atol=5e-4)
    end = scene.truth
    assert np.hypot(*(end.bodies["cup"][0][:2] - scene.layout.saucer)) < 0.004
    assert end.bodies["cup"][0][2] == pytest.approx(SAUCER_HEIGHT, abs=5e-4)


@pytest.mark.parametrize(
    ("style", "seed", "speed"), [("clean", 1, 0.02), ("clean", 5, 0.04), pytest.param("diverse", 2, 0.04, marks=LONG)]
)
def test_a_pulled_cup_is_picked_by_a_demonstrator_that_knows_where_it_is(style: str, seed: int, speed: float) -> None:
    scene, demonstration = pulled(style, seed, speed)
    assert demonstration.outcome == "success"
    grasp = next(truth for _, truth in demonstration.samples if truth.held)
    assert np.linalg.norm(grasp.bodies["cup"][0][:2] - scene.layout.cup_start) > 0.02, "the cup was not pulled"


def test_a_pulled_cup_is_missed_by_a_demonstrator_that_does_not_look() -> None:
    demonstration = demonstrate(rig(5, 0.04), ScriptedPicker("clean", 5), knows=False)
    assert demonstration.outcome != "success"
    assert not demonstration.samples[-1][1].held


def test_the_grasp_holds_the_cup_and_the_string_lets_go_for_good() -> None:
    _, demonstration = pulled("clean", 5, 0.04)
    truths = [truth for _, truth in demonstration.samples]
    assert max(truth.tension for truth in truths if not truth.held) > 0.2, "the string never pulled"
    assert all(truth.tension == 0.0 for truth in truths if truth.held)
    carried = demonstration.of("lift", "carry", "lower")
    grips = np.array([truth.bodies["cup"][0] - truth.tool_position for truth in carried])
    assert np.abs(grips - grips[0]).max() < 1e-3, "the cup slips"
    assert max(lean(truth.bodies["cup"][1]) for truth in carried) < 0.02
    assert all(truth.gripper_width == pytest.approx(2 * CUP_RADIUS, abs=1e-3) for truth in carried)
    # A string that still held the cup would pull it along by centimetres a second now.
    put_down = demonstration.of("retreat")
    assert len(put_down) > 50
    assert np.ptp([truth.bodies["cup"][0] for truth in put_down], axis=0).max() < 5e-4, "something pulls at the cup"


def test_an_arm_a_tenth_of_a_second_behind_its_gripper_still_succeeds() -> None:
    assert demonstrate(rig(3, 0.04), ScriptedPicker("diverse", 3), lag_s=0.1).outcome == "success"


def go(scene: PickingLockstep, place: np.ndarray, height: float) -> None:
    """Move the open tool, high over the table, to a place, then down to a height."""
    begin = scene.truth.tool_position
    over = np.array([*place, max(begin[2], 0.15)])
    for point in (*np.linspace(begin, over, 150), *np.linspace(over, [*place, height], 150)):
        scene.cycle(point, OPEN)


def test_a_finger_that_bumps_into_the_cup_is_no_grasp() -> None:
    scene = rig(0, 0.0)
    cup = scene.layout.cup_start
    go(scene, cup + np.array([0.0, 0.10]), GRASP_TOOL_HEIGHT)
    for y in np.linspace(0.10, 0.07, 100):
        truth = scene.cycle(np.array([cup[0], cup[1] + y, GRASP_TOOL_HEIGHT]), OPEN)
    assert truth.bodies["cup"][0][1] < cup[1] - 0.01, "the finger did not push the cup"
    assert not truth.held
    assert lean(truth.bodies["cup"][1]) < 0.05


def test_a_gripper_that_closes_on_nothing_has_not_grasped() -> None:
    scene = rig(0, 0.04)
    scene.start_path()
    for _ in range(100):
        truth = scene.cycle(tool_start(0), 0.0)
    assert truth.gripper_width < 0.002
    assert not truth.held and truth.tension > 0.1


def test_only_an_open_gripper_over_the_cups_lets_an_episode_be_laid_out() -> None:
    scene = rig(0, 0.0)
    for _ in range(60):
        scene.cycle(tool_start(0), 0.04)
    before = scene.truth
    with pytest.raises(ArmError, match=r"open 40 mm; .* more than 75 mm"):
        scene.lay_out(picking_layout(1))
    go(scene, np.array([0.6, 0.1]), 0.06)
    with pytest.raises(ArmError, match=r"tool is 60 mm over the table; .* 103 mm or more"):
        scene.lay_out(picking_layout(1))
    np.testing.assert_allclose(scene.truth.bodies["cup"][0], before.bodies["cup"][0], atol=1e-5)
    np.testing.assert_array_equal(scene.truth.bodies["saucer"][0], before.bodies["saucer"][0])


def test_the_next_episode_forgets_the_one_before() -> None:
    scene = rig(5, 0.04)
    demonstrate(scene, ScriptedPicker("clean", 5))
    assert scene.truth.held
    layout = picking_layout(6, 0.04)
    scene.lay_out(layout)
    place = scene.truth.tool_position
    for _ in range(30):
        truth = scene.cycle(place, OPEN)
    assert not truth.held
    np.testing.assert_allclose(truth.bodies["cup"][0][:2], layout.cup_start, atol=1e-4)
    scene.start_path()
    for _ in range(200):
        truth = scene.cycle(place, OPEN)
    assert np.linalg.norm(truth.bodies["cup"][0][:2] - layout.cup_start) > 0.04


def test_the_same_episode_is_the_same_to_the_last_bit() -> None:
    again = rig(1, 0.02)
    demonstrate(again, ScriptedPicker("clean", 1))
    ends = [scene.scene_state() for scene in (pulled("clean", 1, 0.02)[0], again)]
    np.testing.assert_array_equal(ends[0].qpos, ends[1].qpos)
    assert ends[0].stamp_ns == ends[1].stamp_ns > 4_000_000_000


def test_its_state_can_be_rendered() -> None:
    scene, renderer = rig(0, 0.0), SceneRenderer(scene_model(SCENE))
    state = scene.scene_state()
    images = renderer.render(state.qpos, state.mocap_pos, state.mocap_quat)
    renderer.close()
    assert {name: image.shape for name, image in images.items()} == dict.fromkeys(
        ("third_person", "wrist"), (96, 96, 3)
    )


def test_a_pose_out_of_reach_is_refused() -> None:
    with pytest.raises(ArmError, match="out of the arm's reach"):
        rig(0, 0.0).cycle(np.array([1.5, 0.0, 0.3]), OPEN)
