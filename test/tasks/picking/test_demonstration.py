from collections import Counter

import numpy as np
import pytest

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import BidError
from bid_ros.core.paths import share
from bid_ros.core.rotation import DOWN_6D
from bid_ros.core.task import load_task
from bid_ros.episodes.log import scene_of
from bid_ros.robots.robotiq.registers import MAX_OPENING
from bid_ros.safety.envelope import Envelope
from bid_ros.tasks.picking import geometry as twin
from bid_ros.tasks.picking.demonstration import ScriptedPicker
from bid_ros.tasks.picking.string_path import picking_layout
from bid_ros.tasks.picking.styles import PickingConfig
from bid_ros.tasks.scripted import draw_manner, way_points

CONFIG = PickingConfig()
STRATEGIES = CONFIG.strategies
START = np.array([0.48, -0.05, 0.28])
CUP = np.array([0.52, -0.15, 0.0])
SAUCER = np.array([0.48, 0.20, 0.0])
NOW = 5_000 * NANOSECONDS
# These seeds have every strategy on both ways, and a start straight above the cup.
SEEDS = (0, 2, 3, 4, 5, 6, 7, 8, 9)
FEW = [("clean", 0), *(("diverse", seed) for seed in SEEDS)]
REST = sorted({*range(41)} - {*SEEDS})
CASES = [*FEW, *(pytest.param("diverse", seed, marks=pytest.mark.long) for seed in REST)]
PHASES = ["approach", "descend", "grasp", "lift", "carry", "lower", "release", "retreat", "hold"]


@pytest.fixture(scope="module")
def task():
    return load_task(share("config", "ur5_pick", "task.yaml"))


def scene(task, seed):
    """Start, cup and saucer as in an episode; every eighth start is straight above the cup."""
    layout, start = picking_layout(seed, 0.0), scene_of(task, seed)
    if seed % 8 == 7:
        start[:2] = layout.cup_start
    return start, np.append(layout.cup_start, 0.0), np.append(layout.saucer, 0.0)


def planned(style="clean", seed=0, start=START, cup=CUP, saucer=SAUCER):
    picker = ScriptedPicker(style, seed)
    picker.plan(start, cup, saucer, NOW)
    return picker


def sampled(picker, dt=0.01):
    """Times, tool positions, widths and phases of the whole demonstration."""
    times = np.arange(0.0, picker.duration, dt)
    actions = picker.chunk_at(NOW, len(times), round(dt * NANOSECONDS)).actions
    begins = [picker.begin_of(phase) for phase in PHASES]
    phases = [PHASES[index - 1] for index in np.searchsorted(begins, times, side="right")]
    return times, actions[:, :3], actions[:, 9], phases


def sideways(positions, place):
    return np.linalg.norm(positions[:, :2] - place[:2], axis=1)


@pytest.mark.parametrize(("style", "seed"), CASES)
def test_every_chunk_of_every_demonstration_passes_the_envelope(task, style, seed):
    envelope = Envelope(task)
    picker = planned(style, seed, *scene(task, seed))
    for dt_ns, steps in ((50_000_000, 10), (task.dt_ns, 16)):
        for now in range(NOW, NOW + round(picker.duration * 1e9) + NANOSECONDS, 50_000_000):
            chunk = picker.chunk_at(now, steps, dt_ns)
            verdict = envelope.check(chunk, now, chunk.actions[0, :3])
            assert verdict.ok, f"{verdict.reason} at {(now - NOW) / 1e9:.2f} s"


@pytest.mark.parametrize(("style", "seed"), CASES)
def test_the_fingers_never_hit_the_cup_on_the_way_down(task, style, seed):
    start, cup, saucer = scene(task, seed)
    times, positions, widths, _ = sampled(planned(style, seed, start, cup, saucer))
    before = times < times[np.argmax(widths == 0.0)]
    low = before & (positions[:, 2] - twin.FINGERTIP_BELOW_TOOL < twin.CUP_HEIGHT + 0.003)
    room = MAX_OPENING / 2 - twin.CUP_RADIUS
    assert low.any() and sideways(positions[low], cup).max() < 0.5 * room


@pytest.mark.parametrize(("style", "seed"), CASES)
def test_it_closes_and_opens_on_the_last_centimetres_of_a_descent_and_not_at_rest(task, style, seed):
    start, cup, saucer = scene(task, seed)
    _, positions, widths, phases = sampled(planned(style, seed, start, cup, saucer))
    closing, opening = (int(index) + 1 for index in np.flatnonzero(np.diff(widths)))
    assert widths[0] == widths[-1] == 0.085 and widths[closing] == 0.0
    assert list(dict.fromkeys(phases)) == PHASES
    assert phases[closing] == "grasp" and phases[opening] == "release"
    speeds = np.linalg.norm(np.diff(positions, axis=0), axis=1) / 0.01
    for index, place, height, highest in (
        (closing, cup, twin.GRASP_TOOL_HEIGHT, 0.016),
        (opening, saucer, CONFIG.release_z, 0.010),
    ):
        assert sideways(positions[[index]], place)[0] < 0.004
        assert height + 0.0005 < positions[index, 2] < height + highest
        assert speeds[index] > 0.01
    np.testing.assert_allclose(positions[-1], [*saucer[:2], CONFIG.release_z + CONFIG.retreat], atol=1e-6)
    assert phases.count("hold") >= 68


@pytest.mark.parametrize(("style", "seed"), CASES)
def test_it_rests_only_while_the_fingers_move_or_in_a_pause(task, style, seed):
    picker = planned(style, seed, *scene(task, seed))
    _, positions, _, phases = sampled(picker)
    resting = np.linalg.norm(np.diff(positions, axis=0), axis=1) / 0.01 < 0.002
    ending = np.array([phase == "hold" for phase in phases[:-1]])
    rest_s = 0.01 * (resting & ~ending).sum()
    moves = 14  # each of which leaves and reaches rest at full acceleration, so within hundredths of a second
    assert rest_s < CONFIG.grasp + CONFIG.release + sum(picker.manner.pauses) + 0.03 * moves


@pytest.mark.parametrize(("style", "seed"), CASES)
def test_the_cup_is_carried_over_the_saucer_s_edge(task, style, seed):
    start, cup, saucer = scene(task, seed)
    _, positions, widths, phases = sampled(planned(style, seed, start, cup, saucer))
    held = (widths == 0.0) & (np.array(phases) != "grasp")
    foot = positions[held, 2] - twin.GRASP_TOOL_HEIGHT
    away = sideways(positions[held], saucer)
    assert foot.min() > -1e-6
    edge = (away > 0.035) & (away < twin.SAUCER_RADIUS + twin.CUP_RADIUS)
    assert (foot[edge] > twin.SAUCER_HEIGHT + 0.01).all()


@pytest.mark.parametrize(("style", "seed"), CASES)
def test_the_motion_is_smooth(task, style, seed):
    _, positions, _, _ = sampled(planned(style, seed, *scene(task, seed)))
    for order, limit in ((1, 0.36), (2, 4.0)):
        peak = np.linalg.norm(np.diff(positions, order, axis=0), axis=1).max() / 0.01**order
        assert peak <= limit, f"derivative {order} peaks at {peak:.3f}"


def test_the_few_seeds_have_every_strategy_on_both_ways():
    drawn = [draw_manner(*case, CONFIG).strategies for case in FEW[1:]]
    assert [set(way) for way in zip(*drawn, strict=True)] == [set(STRATEGIES)] * 2


def test_clean_demonstrations_do_not_depend_on_the_seed():
    first, second = planned(seed=1), planned(seed=2)
    assert first.manner == second.manner and first.duration == second.duration
    assert 4.5 < first.duration < 7.5


def test_diverse_demonstrations_differ_and_each_is_reproducible():
    manners = [draw_manner("diverse", seed, CONFIG) for seed in range(200)]
    for way in range(2):
        counts = Counter(manner.strategies[way] for manner in manners)
        assert set(counts) == set(STRATEGIES) and min(counts.values()) >= 30
    speeds = [manner.speed for manner in manners]
    assert 0.6 <= min(speeds) < 0.65 and 1.5 < max(speeds) <= 1.6
    assert all(any(manner.pauses[place] for manner in manners) for place in range(4))
    assert max(pause for manner in manners for pause in manner.pauses) <= 0.8
    assert any(not any(manner.pauses) for manner in manners)
    assert manners == [draw_manner("diverse", seed, CONFIG) for seed in range(200)]


def test_most_diverse_demonstrations_arrive_beside_cup_and_saucer_and_correct_it(task):
    shares = np.zeros(4)
    for seed in range(100):
        start, cup, saucer = scene(task, seed)
        picker = planned("diverse", seed, start, cup, saucer)
        times, positions, _, _ = sampled(picker)
        missed = np.linalg.norm(picker.manner.misses, axis=1)
        shares += missed > 0
        coming = times < picker.begin_of("grasp")
        hovering = coming & (np.abs(positions[:, 2] - CONFIG.above_z) < 0.01)
        assert sideways(positions[hovering], cup).max() > 0.3 * missed[0] - 1e-9, "the miss is not shown"
        lowered = int(np.argmax(times >= picker.begin_of("release")))
        assert sideways(positions[[lowered]], saucer)[0] < 0.002, "the miss is not corrected"
    np.testing.assert_allclose(shares / 100, [miss.share for miss in CONFIG.misses], atol=0.15)


def test_the_strategies_are_different_ways():
    end = np.array([0.52, 0.10, 0.14])
    ways = {strategy: way_points(START, end, strategy, 0.08, CONFIG)[1] for strategy in STRATEGIES}
    along = (end - START)[:2] / np.linalg.norm((end - START)[:2])
    left = np.array([-along[1], along[0]])
    aside = {strategy: float((middle[:2] - START[:2]) @ left) for strategy, middle in ways.items()}
    assert aside["left"] == pytest.approx(0.08) and aside["right"] == pytest.approx(-0.08)
    assert aside["straight"] == aside["high"] == pytest.approx(0.0)
    assert ways["high"][2] == pytest.approx(START[2] + 0.08)


def test_most_diverse_demonstrations_take_five_to_eleven_seconds(task):
    durations = [planned("diverse", seed, *scene(task, seed)).duration for seed in range(100)]
    assert min(durations) > 4.0 and max(durations) < 16.0
    assert np.mean([5.0 <= duration <= 11.0 for duration in durations]) > 0.8
    assert np.std(durations) > 1.0


def test_the_pose_at_a_time_is_the_chunk_s():
    picker = planned("diverse", 3)
    times, positions, widths, phases = sampled(picker, dt=0.25)
    for index, time in enumerate(times):
        position, rotation, width, phase = picker.pose_at(time)
        np.testing.assert_allclose(position, positions[index], atol=1e-9)
        np.testing.assert_allclose(rotation, DOWN_6D)
        assert (width, phase) == (widths[index], phases[index])


def test_chunks_carry_the_source_and_the_task_s_columns(task):
    chunk = planned().chunk_at(NOW, 10, 50_000_000)
    assert (chunk.source, chunk.frame_id, chunk.stamp_ns) == ("teleop", task.base_frame, NOW)
    np.testing.assert_allclose(chunk.actions[0, task.columns("position")], START)
    np.testing.assert_allclose(chunk.actions[0, task.columns("rotation_6d")], [1, 0, 0, 0, -1, 0])
    np.testing.assert_allclose(chunk.actions[0, task.columns("gripper")], 0.085)


def test_a_new_plan_forgets_the_old_one():
    picker = planned()
    picker.chunk_at(NOW, 10, 50_000_000)
    other = START + np.array([0, 0.02, 0])
    picker.plan(other, CUP, SAUCER, NOW + 60 * NANOSECONDS)
    fresh = planned(start=other)
    later = picker.chunk_at(NOW + 61 * NANOSECONDS, 10, 50_000_000)
    first = fresh.chunk_at(NOW + NANOSECONDS, 10, 50_000_000)
    np.testing.assert_array_equal(later.actions, first.actions)
    assert later.sequence == first.sequence == 0


ASK = [lambda p: p.duration, lambda p: p.pose_at(0.0), lambda p: p.chunk_at(0, 1, 1), lambda p: p.begin_of("lift")]


@pytest.mark.parametrize("ask", ASK)
def test_without_a_plan_every_question_is_an_error(ask):
    picker = ScriptedPicker("clean", 0)
    with pytest.raises(BidError, match="plan"):
        ask(picker)
    picker.plan(START, CUP, SAUCER, NOW)
    ask(picker)


def test_an_unknown_phase_is_refused():
    with pytest.raises(BidError, match="'dance'; valid are approach, descend"):
        planned().begin_of("dance")


@pytest.mark.parametrize(
    ("style", "seed", "words"), [("bid", 0, "'bid'; valid are clean, diverse"), ("diverse", -1, "-1; valid is 0")]
)
def test_unknown_styles_and_seeds_are_refused(style, seed, words):
    with pytest.raises(BidError, match=words):
        ScriptedPicker(style, seed)


@pytest.mark.parametrize(
    ("start", "cup", "saucer", "words"),
    [
        ([0.5, 0.0, 0.09], CUP, SAUCER, "0.090 m; valid is at least 0.093 m"),
        ([0.5, np.nan, 0.3], CUP, SAUCER, "finite"),
        (START, [np.inf, 0.0, 0.0], SAUCER, "finite"),
        (START, CUP, [0.0, np.nan], "finite"),
    ],
)
def test_places_that_cannot_be_planned_from_are_refused(start, cup, saucer, words):
    with pytest.raises(BidError, match=words):
        ScriptedPicker("clean", 0).plan(start, cup, saucer, NOW)
