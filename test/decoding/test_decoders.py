"""One contract for every registered decoder, then what is special about each."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.decoding import (
    BidConfig,
    DecoderConfig,
    DecodeRequest,
    DecodingError,
    build_decoder,
    decoder_names,
    select,
)

DT = 100_000_000
START = 1_700_000_000_000_000_000
H, D, TO = 16, 3, 2


def request_at(step: float, horizon: int = H, dim: int = D) -> DecodeRequest:
    return DecodeRequest(START + round(step * DT), DT, TO, horizon, dim)


def samples(seed: int, count: int = 8) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, H, D))


def decide(decoder, step, seed, weak=True):
    """One decision as the policy node makes it; the samples drawn and the choice."""
    request = request_at(step)
    proposal = decoder.propose(request)
    strong = samples(seed, proposal.strong)
    others = samples(seed + 1000, proposal.weak) if weak and proposal.weak else None
    return strong, others, decoder.choose(request, strong, others)


CONFIG = DecoderConfig(samples=8)
BLENDING = ("ema", "bid+ema", "bid+delay")
SELECTING = tuple(name for name in decoder_names() if name.startswith("bid"))
WARM = ("warmstart", "bid+warmstart")


# --- The contract -----------------------------------------------------------------------------------------------------


@pytest.fixture(params=decoder_names())
def name(request):
    return request.param


def test_decoder_keeps_its_name(name):
    assert build_decoder(name, CONFIG).name == name


@pytest.mark.parametrize("weak", [True, False])
def test_first_decision_is_a_sample_and_the_next_continues_it(name, weak):
    decoder = build_decoder(name, CONFIG)
    strong, _, first = decide(decoder, 0, 1, weak)
    np.testing.assert_array_equal(first.actions, strong[first.index])
    assert first.previous is None
    assert first.executed == 0
    _, _, second = decide(decoder, 1, 2, weak)
    assert second.actions.shape == (H, D)
    assert second.executed == 1
    np.testing.assert_array_equal(second.previous, first.actions[1:])
    assert (second.index == -1) == (name in BLENDING)
    assert (second.selection is not None) == (name in SELECTING)


def test_skipped_decisions_overlap_by_time(name):
    decoder = build_decoder(name, CONFIG)
    _, _, first = decide(decoder, 0, 1)
    _, _, second = decide(decoder, 4.2, 2)
    assert second.executed == 4
    np.testing.assert_array_equal(second.previous, first.actions[4:])


def test_an_episode_leaves_nothing_behind(name):
    decoder, fresh = build_decoder(name, CONFIG), build_decoder(name, CONFIG)
    decide(decoder, 0, 1)
    decide(decoder, 1, 2)
    decoder.reset()
    assert decoder.propose(request_at(2)).start is None
    _, _, after = decide(decoder, 2, 3)
    _, _, wanted = decide(fresh, 2, 3)
    np.testing.assert_array_equal(after.actions, wanted.actions)
    assert after.previous is None


def test_proposing_changes_nothing(name):
    decoder, other = build_decoder(name, CONFIG), build_decoder(name, CONFIG)
    for each in (decoder, other):
        decide(each, 0, 1)
    for step in (1, 2, 3):
        decoder.propose(request_at(step))
    np.testing.assert_array_equal(decide(decoder, 1, 2)[2].actions, decide(other, 1, 2)[2].actions)


@pytest.mark.parametrize("horizon", [2, 8, 15])
def test_action_horizon_is_kept_in_time(name, horizon):
    decoder = build_decoder(name, DecoderConfig(samples=8, action_horizon=horizon))
    decide(decoder, 0, 1)
    for step in range(1, horizon):
        proposal = decoder.propose(request_at(step + 0.3))
        assert (proposal.strong, proposal.weak) == (0, 0)
    _, _, choice = decide(decoder, horizon + 0.3, 2)
    assert choice.executed == horizon
    assert decoder.propose(request_at(horizon + 1)).strong == 0


def test_action_horizon_sees_skipped_time(name):
    decoder = build_decoder(name, DecoderConfig(samples=8, action_horizon=8))
    decide(decoder, 0, 1)
    assert decoder.propose(request_at(9)).strong > 0
    assert decoder.propose(request_at(40)).strong > 0


def test_closed_loop_decides_every_time_it_is_asked(name):
    decoder = build_decoder(name, CONFIG)
    decide(decoder, 0, 1)
    _, _, choice = decide(decoder, 0.4, 2)  # rounds to the same step of the grid
    assert choice.executed == 0


def test_too_long_action_horizon_is_refused(name):
    decoder = build_decoder(name, DecoderConfig(action_horizon=16))
    with pytest.raises(DecodingError, match="action_horizon is 16; valid is at most 15"):
        decoder.propose(request_at(0))


@pytest.mark.parametrize("shape", [(8, H, D + 1), (8, H - 1, D), (0, H, D), (H, D)])
def test_samples_of_another_shape_are_refused(name, shape):
    with pytest.raises(DecodingError, match="strong samples have shape"):
        build_decoder(name, CONFIG).choose(request_at(0), np.zeros(shape), None)


@pytest.mark.parametrize("shape", [(8, H, D + 1), (8, H - 1, D), (H, D)])
def test_weak_samples_of_another_shape_are_refused(name, shape):
    with pytest.raises(DecodingError, match="weak samples have shape"):
        build_decoder(name, CONFIG).choose(request_at(0), samples(1), np.zeros(shape))


def test_samples_of_single_precision_are_decided_in_double(name):
    wide, narrow = build_decoder(name, CONFIG), build_decoder(name, CONFIG)
    for step in range(3):
        strong, weak = samples(step).astype(np.float32), samples(step + 9).astype(np.float32)
        wanted = wide.choose(request_at(step), strong.astype(np.float64), weak.astype(np.float64))
        choice = narrow.choose(request_at(step), strong, weak)
        assert choice.actions.dtype == np.float64
        np.testing.assert_array_equal(choice.actions, wanted.actions)


def test_the_smallest_request_is_decided(name):
    decoder = build_decoder(name, DecoderConfig(samples=8, delay=0))
    request = DecodeRequest(START, 1, 1, 1, 1)
    assert request.executable == 1
    strong = np.arange(8.0).reshape(8, 1, 1)
    assert decoder.choose(request, strong, strong).actions.shape == (1, 1)
    assert decoder.propose(DecodeRequest(START + 1, 1, 1, 1, 1)).strong > 0


def test_a_refused_decision_is_not_remembered(name):
    decoder = build_decoder(name, CONFIG)
    strong = samples(1)
    strong[0, 3, 1] = np.nan
    with pytest.raises(DecodingError, match="1 values that are not finite"):
        decoder.choose(request_at(0), strong, None)
    assert decide(decoder, 1, 2)[2].previous is None


def test_changing_the_policy_without_reset_is_refused(name):
    decoder = build_decoder(name, CONFIG)
    decide(decoder, 0, 1)
    with pytest.raises(DecodingError, match="reset the decoder"):
        decoder.propose(request_at(1, dim=D + 1))


def test_the_choice_owns_its_actions(name):
    strong = samples(1)
    choice = build_decoder(name, CONFIG).choose(request_at(0), strong, None)
    kept = choice.actions.copy()
    strong[:] = 0.0
    np.testing.assert_array_equal(choice.actions, kept)


# --- Each decoder -----------------------------------------------------------------------------------------------------


def test_an_open_loop_executes_every_executable_row(name):
    decoder = build_decoder(name, DecoderConfig(samples=8, action_horizon="all"))
    decide(decoder, 0, 1)
    assert [decoder.propose(request_at(step)).strong > 0 for step in (1, 14, 15)] == [False, False, True]


@pytest.mark.parametrize("plain", ["vanilla", "ema", "warmstart", "warmstart:warm_start=clean"])
def test_decoders_without_selection_draw_one_sample(plain):
    proposal = build_decoder(plain, CONFIG).propose(request_at(0))
    assert (proposal.strong, proposal.weak) == (1, 0)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, (8, 8)),
        ({"weak_samples": 0}, (8, 0)),
        ({"weak_samples": 8}, (8, 8)),
        ({"terms": "positive"}, (8, 0)),
        ({"terms": "negative"}, (8, 8)),
        ({"samples": 1}, (1, 0)),
    ],
)
def test_bid_asks_for_the_samples_it_uses(settings, wanted):
    proposal = build_decoder("bid", DecoderConfig(**{"samples": 8} | settings)).propose(request_at(0))
    assert (proposal.strong, proposal.weak) == wanted


@pytest.mark.parametrize("weak", [True, False])
@pytest.mark.parametrize(
    "settings",
    [
        {"weights": (1.0, 3.0, 0.5), "decay": 0.8},
        {"metric": "cosine", "mode_size": 2},
        {"metric": "l1", "variant": "paper", "trim": "nearest"},
        {"terms": "positive", "variant": "reference_v1"},
    ],
)
def test_bid_is_select_with_its_settings_and_the_time_that_passed(settings, weak):
    decoder = build_decoder("bid", DecoderConfig(samples=8, **settings))
    _, _, first = decide(decoder, 0, 1, weak)
    strong, others, choice = decide(decoder, 3, 2, weak)
    config = BidConfig(executed=3, observation_steps=TO, **settings)
    wanted = select(strong, others, first.actions[3:], config)
    assert choice.index == wanted.index
    np.testing.assert_array_equal(choice.selection.total, wanted.total)


@pytest.mark.parametrize("variant", ["paper", "reference_v1", "reference_v2", "corrected"])
@pytest.mark.parametrize("steps", [1, H - TO])
def test_rows_that_are_made_up_are_not_compared(variant, steps):
    def second(fill: float, made_up: int):
        decoder = build_decoder("bid", DecoderConfig(samples=8, variant=variant))
        requests = [DecodeRequest(START + step * DT, DT, TO, H, D, made_up=made_up) for step in (0, steps)]
        for seed, request in enumerate(requests):
            strong, weak = samples(seed), samples(seed + 1000)
            strong[:, : TO - 1] *= fill
            weak[:, : TO - 1] *= fill
            choice = decoder.choose(request, strong, weak)
        return strong, choice

    strong, wanted = second(1.0, TO - 1)
    _, found = second(50.0, TO - 1)
    assert found.index == wanted.index
    np.testing.assert_array_equal(found.selection.total, wanted.selection.total)
    np.testing.assert_array_equal(wanted.actions, strong[wanted.index])  # all rows are decided, as ever
    _, compared = second(50.0, 0)
    assert not np.allclose(compared.selection.forward, wanted.selection.forward, equal_nan=True)


def test_nothing_is_compared_where_no_predicted_row_overlaps():
    decoder = build_decoder("bid", DecoderConfig(samples=8, variant="paper", action_horizon="all"))
    for seed, step in ((1, 0), (2, H - TO + 1)):
        request = DecodeRequest(START + step * DT, DT, TO, H, D, made_up=TO - 1)
        choice = decoder.choose(request, samples(seed), samples(seed + 1000))
    assert choice.executed == H - TO + 1
    np.testing.assert_array_equal(choice.selection.backward, np.zeros(8))


def test_bid_with_one_sample_is_vanilla():
    bid, vanilla = (build_decoder(name, DecoderConfig(samples=1)) for name in ("bid", "vanilla"))
    for step in range(3):
        np.testing.assert_array_equal(decide(bid, step, step)[2].actions, decide(vanilla, step, step)[2].actions)


def test_an_average_with_the_weight_1_is_vanilla():
    averaged, vanilla = (build_decoder(name, DecoderConfig(ema_weight=1.0)) for name in ("ema", "vanilla"))
    for step in range(3):
        np.testing.assert_array_equal(decide(averaged, step, step)[2].actions, decide(vanilla, step, step)[2].actions)


def test_the_paper_variant_takes_fewer_samples_than_two_modes():
    decoder = build_decoder("bid", DecoderConfig(samples=5, mode_size=3, variant="paper"))
    decide(decoder, 0, 1)
    assert decide(decoder, 1, 2)[2].selection.kept.all()


@pytest.mark.parametrize(("count", "mode_size"), [(2, 1), (3, 1), (4, 2), (6, 3), (64, 3)])
def test_mode_size_follows_the_samples(count, mode_size):
    config = DecoderConfig(samples=count)
    assert config.bid(1, TO).mode_size == mode_size
    decoder = build_decoder("bid", config)
    decide(decoder, 0, 1)
    assert decide(decoder, 1, 2)[2].selection.kept.sum() == count // mode_size


def test_ema_blends_the_overlap_and_remembers_the_blend():
    decoder = build_decoder("ema", DecoderConfig(ema_weight=0.25))
    first = decide(decoder, 0, 1)[2].actions
    new, _, second = decide(decoder, 2, 2)
    np.testing.assert_allclose(second.actions[:14], 0.25 * new[0, :14] + 0.75 * first[2:])
    np.testing.assert_array_equal(second.actions[14:], new[0, 14:])
    newer, _, third = decide(decoder, 3, 3)
    np.testing.assert_allclose(third.actions[:15], 0.25 * newer[0, :15] + 0.75 * second.actions[1:])


@pytest.mark.parametrize("decay", [0.0, 0.01, 0.7, -0.3])
def test_an_ensemble_averages_all_predictions_of_an_instant(decay):
    """Against the definition: each row is the weighted mean of what every decision until now said of its instant."""
    decoder = build_decoder(f"ema:ensemble={decay}")
    said = {}
    for number, step in enumerate((0, 1, 2, 5, 6)):
        new, _, choice = decide(decoder, step, number)
        for row in range(H):
            said.setdefault(step + row, []).append(new[0, row])
        for row in range(H):
            weights = np.exp(-decay * np.arange(len(said[step + row])))
            wanted = np.average(said[step + row], axis=0, weights=weights)
            np.testing.assert_allclose(choice.actions[row], wanted, rtol=1e-9, atol=1e-12)
    decoder.reset()
    new, _, choice = decide(decoder, 7, 9)
    np.testing.assert_array_equal(choice.actions, new[0])


def test_an_ensemble_of_extreme_decay_is_the_oldest_or_the_newest_prediction():
    for decay, newest in ((10, False), (-10, True)):
        decoder = build_decoder("ema", DecoderConfig(ensemble=decay))
        chunks = [decide(decoder, step, step)[::2] for step in range(60)]
        new, choice = chunks[-1]
        wanted = new[0, 0] if newest else chunks[-H][0][0, H - 1]
        np.testing.assert_allclose(choice.actions[0], wanted, atol=1e-3)


def test_bid_ema_selects_before_it_blends():
    decoder = build_decoder("bid+ema", CONFIG)
    first = decide(decoder, 0, 1)[2].actions
    strong, weak, choice = decide(decoder, 1, 2)
    index = select(strong, weak, first[1:], BidConfig(executed=1, observation_steps=TO)).index
    assert choice.selection.index == index
    np.testing.assert_allclose(choice.actions[:15], 0.5 * strong[index, :15] + 0.5 * first[1:])


@pytest.mark.parametrize("warm", WARM)
@pytest.mark.parametrize("mode", ["clean", "renoise"])
def test_warm_start_is_the_shifted_decision_with_its_last_row_repeated(warm, mode):
    decoder = build_decoder(warm, DecoderConfig(samples=8, warm_start=mode))
    cold = decoder.propose(request_at(0))
    assert (cold.start, cold.start_mode) == (None, "noise")
    first = decide(decoder, 0, 1)[2].actions
    proposal = decoder.propose(request_at(3))
    assert proposal.start_mode == mode
    assert (proposal.strong, proposal.weak) == (cold.strong, cold.weak)
    np.testing.assert_array_equal(proposal.start[:13], first[3:])
    np.testing.assert_array_equal(proposal.start[13:], np.repeat(first[15:], 3, axis=0))


@pytest.mark.parametrize("cold", ["vanilla", "ema", "bid", "bid+ema", "bid+delay"])
def test_other_decoders_start_from_noise(cold):
    decoder = build_decoder(cold, CONFIG)
    decide(decoder, 0, 1)
    assert decoder.propose(request_at(1)).start is None


# --- Configuration ----------------------------------------------------------------------------------------------------


def test_unknown_name_lists_the_valid_ones():
    with pytest.raises(DecodingError, match=r"'bird' does not exist; valid are vanilla, ema, warmstart, bid, bid\+ema"):
        build_decoder("bird")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"samples": 0}, "samples is 0"),
        ({"weak_samples": 4}, "weak_samples is 4; valid are 0 and samples, 16"),
        ({"action_horizon": 0}, "action_horizon is 0"),
        ({"delay": -1}, "delay is -1"),
        ({"ema_weight": 0.0}, "ema_weight is 0.0"),
        ({"ema_weight": 1.1}, "ema_weight is 1.1"),
        ({"warm_start": "cold"}, "warm_start is 'cold'; valid is one of renoise, clean"),
        ({"samples": 5, "mode_size": 3}, "mode_size is 3; valid with 5 samples is at most 2$"),
        ({"samples": 2, "mode_size": 2}, "mode_size is 2; valid with 2 samples is at most 1$"),
        ({"decay": 2.0}, "decay is 2.0"),
        ({"variant": "v3"}, "variant is 'v3'"),
        ({"weights": (np.nan,)}, r"weights\[0\] is nan"),
        ({"weights": (0.0,)}, "weights are"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(DecodingError, match=message):
        DecoderConfig(**settings)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((0, 2, 16, 3), "dt_ns is 0"),
        ((DT, 0, 16, 3), "observation_steps is 0"),
        ((DT, 2, 1, 3), "horizon is 1"),
        ((DT, 2, 16, 3, None, 2), "made_up is 2; valid is 0 to 1"),
    ],
)
def test_impossible_requests_are_refused(values, message):
    with pytest.raises(DecodingError, match=message):
        DecodeRequest(START, *values)


def test_weights_are_kept_as_they_were_given():
    given = [1.0, 2.0, 3.0]
    config = DecoderConfig(weights=given)
    given[0] = 5.0
    assert config.weights == (1.0, 2.0, 3.0)


@pytest.mark.parametrize("name", decoder_names())
def test_a_decoder_says_whether_its_samples_start_warm(name):
    """What it says is what it does once it has a previous decision."""
    decoder = build_decoder(name, DecoderConfig(samples=4, weak_samples=4))
    decoder.choose(request_at(0), samples(0, decoder.propose(request_at(0)).strong), None)
    assert decoder.needs.starts == (decoder.propose(request_at(1)).start_mode != "noise")
