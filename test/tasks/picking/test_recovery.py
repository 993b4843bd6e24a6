"""Demonstrations that begin after a grasp went wrong."""

import numpy as np
import pytest

from bid_ros.core.paths import share
from bid_ros.core.task import load_task
from bid_ros.safety.envelope import Envelope
from bid_ros.tasks.picking import TASK
from bid_ros.tasks.picking.demonstration import ScriptedPicker
from bid_ros.tasks.picking.geometry import GRASP_TOOL_HEIGHT, RIM_Z
from bid_ros.tasks.picking.lockstep import PickingLockstep
from bid_ros.tasks.picking.recovery import BESIDE, HIGHEST, OFF_AXIS, draw_recovery
from bid_ros.tasks.picking.score import PickingScore
from bid_ros.tasks.picking.string_path import picking_layout
from bid_ros.tasks.picking.styles import PickingConfig

CONFIG = PickingConfig()
CUP, SAUCER = np.array([0.50, -0.10]), np.array([0.49, 0.20])
SEEDS = range(200)
HELD, MISSED_LOW, MISSED_HIGH = 3, 2, 4
LONG = pytest.mark.long


def drawn(seed):
    return draw_recovery(seed, CUP, SAUCER, GRASP_TOOL_HEIGHT, CONFIG.clear_z)


def test_each_kind_of_recovery_is_frequent_and_a_seed_s_is_always_the_same():
    held = [drawn(seed).held for seed in SEEDS]
    low = [not recovery.held and recovery.position[2] < RIM_Z for recovery in map(drawn, SEEDS)]
    assert 50 < sum(held) < 90 and 50 < sum(low) < 100 and sum(held) + sum(low) < 160
    for seed in SEEDS:
        np.testing.assert_array_equal(drawn(seed).position, drawn(seed).position)


def test_closed_fingers_are_clear_of_the_cup_and_a_held_cup_is_off_the_middle():
    for recovery in map(drawn, SEEDS):
        away = np.abs(recovery.position[:2] - CUP)
        if recovery.held:
            assert OFF_AXIS[0] <= away[0] <= OFF_AXIS[1] and away[1] == 0.0
            assert recovery.position[2] == GRASP_TOOL_HEIGHT
        elif recovery.position[2] < CONFIG.clear_z:
            assert np.linalg.norm(away) >= BESIDE[0] and recovery.position[2] >= GRASP_TOOL_HEIGHT
        else:
            assert recovery.position[2] <= HIGHEST


def test_only_recoveries_begin_elsewhere():
    bodies = {"cup": np.append(CUP, 0.0), "saucer": np.append(SAUCER, 0.0)}
    for style in TASK.demonstrator.styles:
        steps = TASK.demonstrator.preparation(style, HELD, bodies)
        assert [width for _, width in steps] == ([0.085, 0.0] if style == "recover" else []), style


@pytest.mark.parametrize(
    "seed", [HELD, MISSED_LOW, MISSED_HIGH, *(pytest.param(seed, marks=LONG) for seed in (10, 15))]
)
def test_a_recovery_ends_with_the_cup_on_the_saucer(seed):
    task = load_task(share("config", "ur5_pick", "task.yaml"))
    layout = picking_layout(seed, 0.0)
    bodies = {"cup": np.append(layout.cup_start, 0.0), "saucer": np.append(layout.saucer, 0.0)}
    steps = TASK.demonstrator.preparation("recover", seed, bodies)
    place = np.append(steps[0][0][:2], 0.25)
    scene, trial, envelope = PickingLockstep(layout, place), PickingScore(), Envelope(task)
    for position, width in steps:
        for share_done in np.linspace(0.0, 1.0, 150):
            scene.cycle(place + share_done * (position - place), width)
        for _ in range(60):
            truth = scene.cycle(position, width)
        place = position
    assert np.linalg.norm(truth.bodies["cup"][0][:2] - layout.cup_start) < 0.002, "the preparation pushed the cup"
    assert truth.gripper_width == pytest.approx(0.060 if len(steps) == 2 else 0.0, abs=0.002)
    picker = ScriptedPicker("recover", seed)
    picker.plan(truth.tool_position, truth.bodies["cup"][0], truth.bodies["saucer"][0], 0)
    for now_ns in range(0, round(picker.duration * 1e9), 50_000_000):
        chunk = picker.chunk_at(now_ns, 16, task.dt_ns)
        verdict = envelope.check(chunk, now_ns, chunk.actions[0, :3])
        assert verdict.ok, verdict.reason
    outcome, phases = "pending", []
    for t in np.arange(0.0, picker.duration + 0.3, 0.01):
        position, _, width, phase = picker.pose_at(t)
        phases.append(phase)
        before = truth
        truth = scene.cycle(position, width)
        if phase == "rise" and width > 0.0:
            assert before.tool_position[2] > RIM_Z, "the fingers open beside the cup"
        outcome = trial.update(truth.stamp_ns, truth.bodies, truth.tool_position, truth.gripper_width)
    assert outcome == "success"
    assert (phases[0] == "lift") == (len(steps) == 2)
