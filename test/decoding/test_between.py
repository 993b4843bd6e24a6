"""Decisions between the steps of the grid: every decoder continues the last one at the instants of the new rows."""

import numpy as np
import pytest

from bid_ros.decoding import BidConfig, DecoderConfig, DecodeRequest, DecodingError, LeadConfig, build_decoder, select

DT, H, D, TO, N = 100_000_000, 16, 3, 2, 8
STAMP = 1_700_000_000_000_000_000
VELOCITY = np.array([0.06, -0.02])


def request(passed_ns):
    return DecodeRequest(STAMP + round(passed_ns), DT, TO, H, D)


def samples(seed, count=N):
    return np.random.default_rng(seed).normal(size=(count, H, D))


def decoder_of(name, **settings):
    return build_decoder(name, DecoderConfig(samples=N, memory="between", **settings))


def between(actions, share):
    """Rows (H - 1, D) of a decision that is ``share`` of a step old."""
    return (1 - share) * actions[:-1] + share * actions[1:]


@pytest.mark.parametrize("text", ["bid", "vanilla", "ema", "bid+lead", "keystone"])
def test_the_text_of_every_decoder_may_say_it(text):
    assert build_decoder(f"{text}:memory=between").name == f"{text}:memory=between"
    with pytest.raises(DecodingError, match="valid is one of nearest, between"):
        build_decoder(f"{text}:memory=best")


@pytest.mark.parametrize("name", ["vanilla", "ema", "ema:ensemble=0.1", "warmstart", "bid", "bid+ema", "bid+lead"])
def test_at_whole_steps_every_decoder_is_the_same_bit_for_bit(name):
    one, other = decoder_of(name), build_decoder(name, DecoderConfig(samples=N))
    for step in (0, 1, 2, 4, 5):
        for decoder in (one, other):
            decoder.proposal = decoder.propose(request(step * DT))
        assert one.proposal.strong == other.proposal.strong
        np.testing.assert_array_equal(one.proposal.start, other.proposal.start)
        drawn = samples(step, one.proposal.strong)
        found, wanted = (decoder.choose(request(step * DT), drawn, None) for decoder in (one, other))
        np.testing.assert_array_equal(found.actions, wanted.actions)


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_bid_compares_rows_of_the_same_instants(share):
    decoder = decoder_of("bid")
    first = decoder.choose(request(0), samples(0), None)
    found = decoder.choose(request(share * DT), samples(1), samples(2))
    wanted = select(samples(1), samples(2), between(first.actions, share), BidConfig(executed=1, observation_steps=TO))
    np.testing.assert_allclose(found.selection.total, wanted.total)
    assert found.index == wanted.index and found.executed == 1


def test_the_average_blends_rows_of_the_same_instants():
    decoder = decoder_of("ema", ema_weight=0.25)
    first = decoder.choose(request(0), samples(0, 1), None)
    found = decoder.choose(request(0.5 * DT), samples(1, 1), None)
    np.testing.assert_allclose(found.actions[:-1], 0.25 * samples(1)[0, :-1] + 0.75 * between(first.actions, 0.5))
    np.testing.assert_array_equal(found.actions[-1], samples(1)[0, -1])


def test_an_ensemble_counts_the_predictions_that_are_made_in_a_step():
    """With m = 0 all count the same, so the average of predictions k = 0, 1, 2, ... of an instant is k / 2."""
    decoder = decoder_of("ema:ensemble=0.0")
    for k in range(5):
        found = decoder.choose(request(k * DT / 2), np.full((1, H, D), float(k)), None)
    np.testing.assert_allclose(found.actions[0], 2.0)


def test_a_warm_start_begins_at_the_instants_of_the_new_rows():
    decoder = decoder_of("warmstart")
    first = decoder.choose(request(0), samples(0, 1), None)
    start = decoder.propose(request(0.5 * DT)).start
    np.testing.assert_allclose(start[:-1], between(first.actions, 0.5))
    np.testing.assert_array_equal(start[-1], start[-2])


@pytest.mark.parametrize("decisions_a_step", [2, 3, 5])
def test_a_lead_finds_the_same_velocity_however_often_it_decides(decisions_a_step):
    decoder = decoder_of("lead", lead=LeadConfig(time_s=0.2))
    for k in range(60 * decisions_a_step):
        passed_ns, aim = k * DT / decisions_a_step, np.full((1, H, D), 0.5)
        aim[..., :2] += VELOCITY * passed_ns * 1e-9
        decoder.choose(request(passed_ns), aim, None)
    np.testing.assert_allclose(decoder.velocity, VELOCITY, rtol=1e-3)


def test_the_action_horizon_counts_steps_and_not_decisions():
    decoder = decoder_of("vanilla", action_horizon=2)
    decided = []
    for tick in range(13):  # three in a step, with stamps that jitter
        at = tick * DT / 3 + (-1) ** tick * 2e6
        if decoder.propose(request(at)).strong:
            decoder.choose(request(at), samples(tick, 1), None)
            decided.append(tick)
    assert decided == [0, 6, 12]


def test_with_a_horizon_of_1_every_call_is_a_decision():
    decoder = decoder_of("vanilla")
    for tick in range(7):
        assert decoder.propose(request(tick * DT / 3)).strong == 1
        decoder.choose(request(tick * DT / 3), samples(tick, 1), None)
