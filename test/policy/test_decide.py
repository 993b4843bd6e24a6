from dataclasses import replace

import numpy as np
import pytest
from installed import TORCH

from bid_ros.control.slowing import Pace
from bid_ros.core.errors import DecodingError, ObservationError
from bid_ros.core.observation import Observation
from bid_ros.core.rotation import matrix_from_6d
from bid_ros.decoding import DecoderConfig, DecodeRequest, build_decoder, decoder_names, feature_weights
from bid_ros.policy.bundle import load_bundle
from bid_ros.policy.decide import DecisionMaker, bundle_decoder
from bid_ros.policy.diffusion.policy import DiffusionPolicy
from bid_ros.policy.publishable import publishable

STEP = 100_000_000
START = 5 * STEP


def build(policy, task, name="bid", seed=0, weak=True, **config):
    return DecisionMaker(policy, build_decoder(name, DecoderConfig(samples=8, **config)), task, seed=seed, weak=weak)


@pytest.mark.parametrize("name", decoder_names())
def test_every_decoder_decides_on_real_samples(name, policy, tiny, task, observe):
    if build_decoder(name).needs.gradients:
        with pytest.raises(DecodingError, match="needs the network's gradient, which runtime 'onnx"):
            build(policy, task, name)
        if not TORCH:
            return
        policy = DiffusionPolicy(load_bundle(tiny, task), task, "torch")
    maker = build(policy, task, name)
    for tick in range(3):
        record = maker.decide(observe(START + tick * STEP))
        assert record is not None
        assert record.chunk.stamp_ns == record.stamp_ns == START + tick * STEP
        assert record.chunk.sequence == tick
        assert record.chunk.frame_id == "base"
        assert record.chunk.actions.shape == (15, 10)
        assert record.strong.shape[1:] == record.choice.actions.shape == (16, 10)
        assert (record.choice.previous is None) == (tick == 0)
        np.testing.assert_allclose(record.chunk.actions[:, :3], np.tile([0.5, 0.1, 0.3], (15, 1)), atol=0.02)


def test_bid_gets_strong_and_weak_samples(policy, task, observe):
    record = build(policy, task).decide(observe())
    assert record.strong.shape == record.weak.shape == (8, 16, 10)
    assert record.choice.selection.total.shape == (8,)
    np.testing.assert_array_equal(record.choice.actions, record.strong[record.choice.index])


def test_the_weak_policy_can_be_withheld(policy, task, observe):
    assert build(policy, task, weak=False).decide(observe()).weak is None


def test_what_is_published_starts_at_the_current_step(policy, task, observe):
    record = build(policy, task, "vanilla").decide(observe())
    np.testing.assert_array_equal(record.chunk.actions[:, :3], record.choice.actions[1:, :3])


def test_published_rotations_are_rotations_and_widths_within_limits(task):
    actions = np.zeros((16, 10))
    actions[:, 3:9] = [1.1, 0.1, 0, 0.2, -0.9, 0]
    actions[:8, 9], actions[8:, 9] = -0.01, 0.2
    kept = actions.copy()
    chunk = publishable(actions, START, task, 0)
    np.testing.assert_array_equal(actions, kept)
    columns = chunk.actions[:, 3:9]
    np.testing.assert_allclose(np.linalg.norm(columns[:, :3], axis=1), 1)
    np.testing.assert_allclose(np.sum(columns[:, :3] * columns[:, 3:], axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(matrix_from_6d(columns), matrix_from_6d(kept[1:, 3:9]), atol=1e-12)
    np.testing.assert_array_equal(chunk.actions[:, 9], [0.0] * 7 + [task.limits.gripper_max] * 8)


def test_features_are_found_wherever_they_are(task):
    turned = replace(task, action=(task.action[2], task.action[1]))
    chunk = publishable(np.tile([0.5, 2, 0, 0, 0, 3, 0], (16, 1)), START, turned, 0)
    np.testing.assert_allclose(chunk.actions[0], [0.08, 1, 0, 0, 0, 1, 0])


def test_nothing_is_decided_while_the_last_chunk_goes_on(policy, task, observe):
    maker = build(policy, task, "vanilla", action_horizon=3)
    records = [maker.decide(observe(START + tick * STEP)) for tick in range(4)]
    assert [record is not None for record in records] == [True, False, False, True]
    assert [record.chunk.sequence for record in records if record] == [0, 1]


def decisions(maker, observe, count=3):
    return [maker.decide(observe(START + tick * STEP)).choice.actions for tick in range(count)]


def test_the_same_seed_decides_the_same(policy, task, observe):
    np.testing.assert_array_equal(decisions(build(policy, task), observe), decisions(build(policy, task), observe))
    other = decisions(build(policy, task, seed=1), observe)
    assert np.abs(np.subtract(other, decisions(build(policy, task), observe))).max() > 1e-4


def test_a_reset_leaves_nothing_of_the_episode_behind(policy, task, observe):
    maker = build(policy, task, "bid+ema")
    first = decisions(maker, observe)
    maker.decide(observe(START + 7 * STEP))
    maker.reset(0)
    record = maker.decide(observe())
    assert record.choice.previous is None
    assert record.chunk.sequence == 4
    maker.reset(0)
    np.testing.assert_array_equal(decisions(maker, observe), first)


def test_episodes_do_not_share_their_noise_nor_depend_on_the_length_of_the_last(policy, task, observe):
    long, short = build(policy, task), build(policy, task)
    first = decisions(long, observe, 5)
    decisions(short, observe, 1)
    long.reset()
    short.reset()
    second = decisions(long, observe, 2)
    np.testing.assert_array_equal(second, decisions(short, observe, 2))
    assert np.abs(np.subtract(second, first[:2])).max() > 1e-4


def test_a_measured_delay_reaches_the_decoder_and_leaves_a_step_to_decide(policy, task, observe):
    maker = build(policy, task, "bid+delay")
    first = maker.decide(observe(START)).choice
    for delay, rows in ((3, 4), (99, 15)):
        maker.delay = delay
        maker._decoder.reset()
        maker._decoder._memory.remember(START, STEP, first.actions)
        kept = maker.decide(observe(START + STEP)).choice.actions
        same = (kept[:15] == first.actions[1:]).all(axis=1)
        assert same[:rows].all() and not same[rows:].any()


def test_screened_samples_are_not_candidates_unless_nothing_is_left(policy, task, observe):
    seen, passes = [], np.array([True, False, True, True, False, True, True, True])

    def screen(strong):
        seen.append(strong)
        return passes

    maker = DecisionMaker(policy, build_decoder("bid", DecoderConfig(samples=8)), task, screen=screen)
    record = maker.decide(observe(START))
    np.testing.assert_array_equal(record.strong, seen[0][passes])
    assert record.screened == 2 and len(record.weak) == 6 and record.choice.selection.total.shape == (6,)
    np.testing.assert_array_equal(record.choice.actions, record.strong[record.choice.index])
    passes[:] = False
    record = maker.decide(observe(START + STEP))
    assert record.screened == 0 and len(record.strong) == 8


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_limit_draws_fewer_samples_and_decides_among_them(policy, task, observe, limit):
    maker = build(policy, task)
    assert maker.decide(observe(START)).strong.shape[0] == 8
    maker.limit = limit
    record = maker.decide(observe(START + STEP))
    assert record.strong.shape[0] == record.weak.shape[0] == limit
    assert 0 <= record.choice.index < limit and record.choice.previous is not None
    maker.limit = None
    assert maker.decide(observe(START + 2 * STEP)).strong.shape[0] == 8


def test_times_are_those_of_the_clock(policy, task, observe):
    ticks = iter([0, 3, 5, 12, 20, 35])
    decoder = build_decoder("bid", DecoderConfig(samples=8))
    record = DecisionMaker(policy, decoder, task, clock=lambda: next(ticks)).decide(observe())
    assert (record.encode_ns, record.sample_ns, record.choose_ns) == (3, 7, 15)


def test_a_failed_decision_is_not_remembered(policy, task, observe):
    maker = build(policy, task)
    with pytest.raises(ObservationError, match="is missing"):
        maker.decide(Observation(START, {}))
    record = maker.decide(observe(START + STEP))
    assert record.choice.previous is None
    assert record.chunk.sequence == 0


@pytest.mark.parametrize(("graph", "weak"), [("weak", 8), ("strong", 0)])
def test_a_bundle_s_decoder_asks_for_weak_samples_where_there_is_a_weak_policy(tiny, task, graph, weak):
    bundle = load_bundle(tiny, task)
    decoder = bundle_decoder("bid", replace(bundle, weak=bundle.weak if graph == "weak" else None), task, 8, 1)
    proposal = decoder.propose(DecodeRequest(START, STEP, 2, 16, 10))
    assert (proposal.strong, proposal.weak) == (8, weak)


def test_a_bundle_s_decoder_weighs_actions_by_their_spread(tiny, task):
    bundle = load_bundle(tiny, task)
    random = np.random.default_rng(4)
    batches = [random.normal(size=(2, 8, 16, 10)) for _ in range(2)]
    totals = []
    weights = feature_weights(bundle.action_spread, [3, 6, 1])
    for decoder in (
        bundle_decoder("bid", bundle, task, 8, 1),
        build_decoder("bid", DecoderConfig(samples=8, weights=weights)),
        build_decoder("bid", DecoderConfig(samples=8)),
    ):
        for tick, (strong, weak) in enumerate(batches):
            choice = decoder.choose(DecodeRequest(START + tick * STEP, STEP, 2, 16, 10), strong, weak)
        totals.append(choice.selection.total)
    np.testing.assert_array_equal(totals[0], totals[1])
    assert not np.allclose(totals[0], totals[2])


def test_a_lead_stays_clear_of_the_edge_of_the_workspace(tiny, task):
    lead = bundle_decoder("lead", load_bundle(tiny, task), task, 1, 1)._lead
    np.testing.assert_allclose(lead.low, np.array(task.limits.workspace_min[:2]) + 0.01)
    np.testing.assert_allclose(lead.high, np.array(task.limits.workspace_max[:2]) - 0.01)


def test_a_bundle_s_decoder_that_cannot_be_is_refused(tiny, task):
    with pytest.raises(DecodingError, match="decoder 'best' does not exist"):
        bundle_decoder("best", load_bundle(tiny, task), task, 8, 1)


def slowed(record, task, row=1, longer=6):
    """Return the chunk that safety forwards of a decision, slowed from one of its rows on."""
    rows = record.chunk.actions
    pace = Pace(row, len(rows) - 1 - row, len(rows) - 1 - row + longer)
    return replace(record.chunk, actions=pace.slowed(rows, task, len(rows) + longer), scale=pace.scale), pace


@pytest.mark.parametrize("name", ["vanilla", "ema", "bid", "bid+lead", "bid+delay", "warmstart"])
def test_the_next_decision_coheres_with_what_is_executed_of_a_slowed_one(name, policy, task, observe):
    maker, other = build(policy, task, name), build(policy, task, name)
    record, same = maker.decide(observe(START)), other.decide(observe(START))
    chunk, pace = slowed(record, task)
    maker.forwarded(chunk)
    following, unslowed = (each.decide(observe(START + STEP)) for each in (maker, other))
    before = following.choice.previous
    # Row 0 of a prediction is the row before the current one, and one step has passed.
    np.testing.assert_array_equal(before[:2], unslowed.choice.previous[:2])
    remembered = np.concatenate([same.choice.actions[:1], unslowed.choice.previous])
    np.testing.assert_allclose(before, pace.after(1).slowed(remembered, task, 16)[1:], atol=1e-12)
    np.testing.assert_allclose(before[:, :3], chunk.actions[:15, :3], atol=1e-9)
    assert np.abs(before - unslowed.choice.previous).max() > 1e-6


def test_only_the_last_decision_can_be_slowed_and_only_before_the_next_one(policy, task, observe):
    maker, other = build(policy, task, "bid"), build(policy, task, "bid")
    first, _ = maker.decide(observe(START)), other.decide(observe(START))
    chunk, _ = slowed(first, task)
    maker.forwarded(replace(chunk, stamp_ns=START - STEP))
    maker.forwarded(first.chunk)  # not slowed
    maker.forwarded(replace(chunk, scale=0.123))  # of another chunk
    second, same = (each.decide(observe(START + STEP)) for each in (maker, other))
    np.testing.assert_array_equal(second.choice.previous, same.choice.previous)
    maker.forwarded(chunk)  # too late
    third, same = (each.decide(observe(START + 2 * STEP)) for each in (maker, other))
    np.testing.assert_array_equal(third.choice.previous, same.choice.previous)
    assert not maker._paces


def test_what_is_forwarded_may_be_known_before_the_decision_is_made_as_in_a_replay(policy, task, observe):
    maker, live = build(policy, task, "bid"), build(policy, task, "bid")
    chunk, _ = slowed(live.decide(observe(START)), task)
    live.forwarded(chunk)
    maker.forwarded(chunk)
    maker.decide(observe(START))
    replayed, decided = (each.decide(observe(START + STEP)) for each in (maker, live))
    np.testing.assert_array_equal(replayed.choice.previous, decided.choice.previous)
    np.testing.assert_array_equal(replayed.choice.actions, decided.choice.actions)


@pytest.mark.parametrize("name", ["bid", "bid+lead", "keystone"])
def test_the_next_best_is_chosen_where_the_best_may_not_be(policy, task, observe, name):
    config = DecoderConfig(samples=8)
    plain = DecisionMaker(policy, build_decoder(name, config), task)
    asked, allowed = [], [False, False, True]

    def free(prediction):
        asked.append(prediction)
        return allowed[len(asked) - 1]

    maker = DecisionMaker(policy, build_decoder(name, config), task, free=free)
    first, record = plain.decide(observe(START)), maker.decide(observe(START))
    np.testing.assert_array_equal(asked[0], first.choice.actions)
    np.testing.assert_array_equal(record.choice.actions, asked[2])
    assert record.screened == 2 and len(record.strong) == 6
    rest = DecisionMaker(policy, build_decoder(name, config), task)
    draft = rest.begin(observe(START))
    left = rest.finish(draft, record.strong, record.weak)
    np.testing.assert_array_equal(left.choice.actions, record.choice.actions)
    allowed[:] = [True] * 9
    asked.clear()
    later = [each.decide(observe(START + STEP)) for each in (maker, rest)]
    assert later[0].choice.executed == 1 and later[0].choice.previous is not None
    np.testing.assert_array_equal(later[0].choice.previous, later[1].choice.previous)


@pytest.mark.parametrize("passing", [(), (1, 4)], ids=["none", "two"])
def test_once_a_choice_may_not_be_the_others_are_judged_together(policy, task, observe, passing):
    plain = DecisionMaker(policy, build_decoder("bid", DecoderConfig(samples=8)), task)
    asked = []

    def rest(samples):
        asked.append(samples)
        return np.isin(np.arange(len(samples)), passing)

    maker = DecisionMaker(
        policy,
        build_decoder("bid", DecoderConfig(samples=8)),
        task,
        free=lambda prediction: bool(asked),
        rest=rest,
    )
    first, record = plain.decide(observe(START)), maker.decide(observe(START))
    assert [len(samples) for samples in asked] == [7], "once"
    if passing:
        np.testing.assert_array_equal(record.strong, asked[0][list(passing)])
    else:
        np.testing.assert_array_equal(record.choice.actions, first.choice.actions)
    later = [each.decide(observe(START + STEP)) for each in (maker, plain)]
    assert all(each.choice.executed == 1 for each in later), "it has decided once"


def test_the_last_candidate_is_left_to_the_safety_node(policy, task, observe):
    maker = DecisionMaker(policy, build_decoder("bid", DecoderConfig(samples=4)), task, free=lambda prediction: False)
    record = maker.decide(observe(START))
    assert record.screened == 3 and len(record.strong) == 1
