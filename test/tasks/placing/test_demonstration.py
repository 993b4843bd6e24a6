from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scripted_motion
from scripted_motion import NOW, assert_the_pose_at_a_time_is_the_chunk_s
from twin_layout import RELEASE_TOOL_HEIGHT

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import BidError
from bid_ros.core.task import load_task
from bid_ros.safety.envelope import Envelope
from bid_ros.tasks.placing import geometry as twin
from bid_ros.tasks.placing.demonstration import ScriptedTeleoperator
from bid_ros.tasks.placing.styles import PlacingConfig
from bid_ros.tasks.scripted import draw_manner

CONFIG = PlacingConfig()
STRATEGIES = CONFIG.strategies
START = np.array([0.45, -0.10, 0.32])
STARTS = load_task(Path(__file__).resolve().parents[3] / "config" / "franka_place" / "task.yaml").start
CUP = np.array([0.55, 0.05, 0.0])
# These seeds have every strategy, all but one of them twice, and two starts straight above the cup.
SEEDS = (0, 2, 3, 4, 5, 7, 8, 21, 23)
FEW = [("clean", 0), *(("diverse", seed) for seed in SEEDS)]
REST = sorted({*range(51)} - {*SEEDS})
CASES = [*FEW, *(pytest.param("diverse", seed, marks=pytest.mark.long) for seed in REST)]
PHASES = ["carry", "lower", "release", "retreat", "hold"]


def scene(seed):
    """Start and cup drawn from the task's ranges, as in an episode; every eighth start is straight above the cup."""
    random = np.random.default_rng([seed, 99])
    start = random.uniform(STARTS.tool_min, STARTS.tool_max)
    cup = np.append(random.uniform([twin.CUP_X[0], twin.CUP_Y[0]], [twin.CUP_X[1], twin.CUP_Y[1]]), 0.0)
    if seed % 8 == 7:
        start[:2] = cup[:2]
    return start, cup


def planned(style="clean", seed=0, start=START, cup=CUP):
    operator = ScriptedTeleoperator(style, seed)
    operator.plan(start, cup, NOW)
    return operator


@cache
def drawn(style, seed):
    """A demonstration of the scene of its seed; not to be changed."""
    return planned(style, seed, *scene(seed))


def sampled(operator, dt=0.01):
    return scripted_motion.sampled(operator, PHASES, dt)


@pytest.mark.parametrize(("style", "seed"), CASES)
def test_every_chunk_of_every_demonstration_passes_the_envelope(task, style, seed):
    envelope = Envelope(task)
    start, cup = scene(seed)
    operator = planned(style, seed, start, cup)
    for dt_ns, steps in ((50_000_000, 10), (task.dt_ns, 16)):
        for now in range(NOW, NOW + round(operator.duration * 1e9) + NANOSECONDS, 50_000_000):
            chunk = operator.chunk_at(now, steps, dt_ns)
            verdict = envelope.check(chunk, now, chunk.actions[0, :3])
            assert verdict.ok, f"{verdict.reason} at {(now - NOW) / 1e9:.2f} s"


@pytest.mark.parametrize(("style", "seed"), CASES)
def test_the_motion_is_slow_and_smooth_and_never_hits_the_rim(style, seed):
    start, cup = scene(seed)
    _, positions, _, phases = sampled(planned(style, seed, start, cup))
    for order, limit in ((1, 0.3), (2, 3.5)):
        peak = np.linalg.norm(np.diff(positions, order, axis=0), axis=1).max() / 0.01**order
        assert peak <= limit, f"derivative {order} peaks at {peak:.3f}"
    sideways = np.linalg.norm(positions[:, :2] - cup[:2], axis=1)
    end_of_object = positions[:, 2] - twin.OBJECT_BOTTOM_BELOW_TOOL
    near = (sideways > 0.006) & (sideways < twin.CUP_RIM_RADIUS + twin.CUP_WALL + twin.OBJECT_RADIUS)
    assert (end_of_object[near] > twin.CUP_HEIGHT + 0.01).all()
    # The cup's inner radius is a centimetre larger than the object's at the rim, and 6 mm where it is released.
    assert (sideways[end_of_object < twin.CUP_HEIGHT + 0.003] < 0.006).all(), "it touches the cup"
    assert phases[0] == "carry" and phases[-1] == "hold"


@pytest.mark.parametrize(("style", "seed"), CASES)
def test_it_opens_only_at_the_release_height_over_the_cup_and_then_retreats(style, seed):
    start, cup = scene(seed)
    _, positions, widths, phases = sampled(planned(style, seed, start, cup))
    opening = int(np.argmax(widths > 0.04))
    assert opening > 0
    np.testing.assert_allclose(positions[opening][:2], cup[:2], atol=1e-3)
    # It opens on the last centimetres, when the object's end is well inside the cup, and not when it has come to rest.
    assert CONFIG.release_z + 0.001 < positions[opening][2] < CONFIG.release_z + 0.02
    assert (widths[:opening] == 0.0).all() and (widths[opening:] == 0.08).all()
    assert list(dict.fromkeys(phases)) == PHASES
    np.testing.assert_allclose(positions[-1], [*cup[:2], CONFIG.release_z + CONFIG.retreat], atol=1e-6)
    assert phases.count("hold") >= 68


def test_the_few_seeds_have_every_strategy():
    assert {draw_manner(*case, CONFIG).strategies[0] for case in FEW[1:]} == set(STRATEGIES)


def test_the_pose_at_a_time_is_the_chunk_s():
    assert_the_pose_at_a_time_is_the_chunk_s(planned("diverse", 3), PHASES)


def test_clean_demonstrations_do_not_depend_on_the_seed():
    first, second = planned(seed=1), planned(seed=2)
    assert first.manner == second.manner and first.duration == second.duration
    assert 4.0 < first.duration < 6.5


def test_clean_goes_straight_to_the_cup():
    _, positions, _, phases = sampled(planned())
    way = positions[[phase == "carry" for phase in phases]][:, :2]
    along = (CUP[:2] - START[:2]) / np.linalg.norm(CUP[:2] - START[:2])
    aside = (way - START[:2]) @ np.array([-along[1], along[0]])
    assert np.abs(aside).max() < 1e-9


def test_diverse_demonstrations_differ_and_each_is_reproducible():
    manners = [draw_manner("diverse", seed, CONFIG) for seed in range(200)]
    counts = Counter(manner.strategies[0] for manner in manners)
    assert set(counts) == set(STRATEGIES) and min(counts.values()) >= 20
    speeds = [manner.speed for manner in manners]
    assert 0.6 <= min(speeds) < 0.65 and 1.5 < max(speeds) <= 1.6
    pauses = [pause for manner in manners for pause in manner.pauses if pause]
    assert 0.2 <= min(pauses) < 0.3 and 0.9 < max(pauses) <= 1.0
    assert all(any(manner.pauses[place] for manner in manners) for place in range(3))
    assert any(not any(manner.pauses) for manner in manners)
    assert manners == [draw_manner("diverse", seed, CONFIG) for seed in range(200)]


def test_most_diverse_demonstrations_take_four_to_nine_seconds():
    durations = [drawn("diverse", seed).duration for seed in range(100)]
    assert min(durations) > 3.5 and max(durations) < 14.0
    assert np.mean([4.0 <= duration <= 9.0 for duration in durations]) > 0.75
    assert np.std(durations) > 1.0


def seed_of(strategy, start=0):
    return next(s for s in range(start, 1000) if draw_manner("diverse", s, CONFIG).strategies[0] == strategy)


def aside(strategy):
    """Farthest sideways from the straight line, left of it positive, and the heights on the way."""
    _, positions, _, phases = sampled(planned("diverse", seed_of(strategy)))
    way = positions[[phase == "carry" for phase in phases]]
    along = (CUP[:2] - START[:2]) / np.linalg.norm(CUP[:2] - START[:2])
    sideways = (way[:, :2] - START[:2]) @ np.array([-along[1], along[0]])
    return sideways[np.abs(sideways).argmax()], way[:, 2]


def test_most_diverse_demonstrations_arrive_beside_the_cup_and_correct_it():
    over = []
    for seed in range(100):
        _, cup = scene(seed)
        operator = drawn("diverse", seed)
        _, positions, _, _ = sampled(operator, dt=0.02)
        sideways = np.linalg.norm(positions[:, :2] - cup[:2], axis=1)
        hovering = positions[:, 2] < CONFIG.above_z + 0.005
        missed = float(np.linalg.norm(operator.manner.misses[0]))
        over.append(missed)
        assert sideways[hovering].max() > 0.3 * missed - 1e-9, "the miss is not shown"
        assert sideways[-1] < 1e-6, "the miss is not corrected"
    assert 0.6 < np.mean(np.array(over) > 0) < 0.9
    assert min(miss for miss in over if miss) >= 0.012 and max(over) <= 0.045


def test_the_strategies_are_different_ways():
    assert aside("left")[0] > 0.05
    assert aside("right")[0] < -0.05
    assert aside("high")[1].max() > START[2] + 0.03
    assert aside("low")[1].min() < CONFIG.above_z - 0.03
    assert abs(aside("straight")[0]) < 0.05 and aside("straight")[1].max() < START[2] + 1e-6


def test_pauses_are_rests():
    seed = next(s for s in range(1000) if draw_manner("diverse", s, CONFIG).pauses[1] > 0.5)
    operator = planned("diverse", seed)
    _, positions, _, phases = sampled(operator)
    speeds = np.linalg.norm(np.diff(positions, axis=0), axis=1) / 0.01
    moving = np.flatnonzero(speeds > 0.01)
    carry = slice(moving[0], phases.index("lower") - 40)
    assert (speeds[carry] < 1e-6).sum() >= 100 * (operator.manner.pauses[1] - 0.05)


def test_the_gripper_opens_when_the_object_is_well_inside_the_cup():
    assert CONFIG.release_z == pytest.approx(RELEASE_TOOL_HEIGHT)


def test_chunks_carry_the_source_and_the_task_s_columns(task):
    chunk = planned().chunk_at(NOW, 10, 50_000_000)
    assert (chunk.source, chunk.frame_id, chunk.stamp_ns) == ("teleop", task.base_frame, NOW)
    np.testing.assert_allclose(chunk.actions[0, task.columns("position")], START)
    np.testing.assert_allclose(chunk.actions[0, task.columns("rotation_6d")], [1, 0, 0, 0, -1, 0])
    np.testing.assert_allclose(chunk.actions[0, task.columns("gripper")], 0.0)


def test_a_new_plan_forgets_the_old_one():
    operator = planned()
    operator.chunk_at(NOW, 10, 50_000_000)
    other = START + np.array([0, 0.02, 0])
    operator.plan(other, CUP, NOW + 60 * NANOSECONDS)
    fresh = planned(start=other)
    later, first = (
        operator.chunk_at(NOW + 61 * NANOSECONDS, 10, 50_000_000),
        fresh.chunk_at(NOW + NANOSECONDS, 10, 50_000_000),
    )
    np.testing.assert_array_equal(later.actions, first.actions)
    assert later.sequence == first.sequence == 0


@pytest.mark.parametrize("ask", [lambda o: o.duration, lambda o: o.pose_at(0.0), lambda o: o.chunk_at(0, 1, 1)])
def test_without_a_plan_every_question_is_an_error(ask):
    operator = ScriptedTeleoperator("clean", 0)
    with pytest.raises(BidError, match="plan"):
        ask(operator)
    operator.plan(START, CUP, NOW)
    ask(operator)


@pytest.mark.parametrize(
    ("style", "seed", "words"), [("bid", 0, "'bid'; valid are clean, diverse"), ("diverse", -1, "-1; valid is 0")]
)
def test_unknown_styles_and_seeds_are_refused(style, seed, words):
    with pytest.raises(BidError, match=words):
        ScriptedTeleoperator(style, seed)


@pytest.mark.parametrize(
    ("start", "cup", "words"),
    [
        ([0.5, 0.0, 0.1], CUP, "0.100 m; valid is at least 0.138 m"),
        ([0.5, np.nan, 0.3], CUP, "finite"),
        (START, [np.inf, 0.0, 0.0], "finite"),
    ],
)
def test_places_that_cannot_be_planned_from_are_refused(start, cup, words):
    with pytest.raises(BidError, match=words):
        ScriptedTeleoperator("clean", 0).plan(start, cup, NOW)
