"""The common loop of the decoders: what it remembers, and what it hands to the selection."""

import numpy as np
import pytest

from bid_ros.decoding import BidConfig, DecoderConfig, DecodeRequest, build_decoder, select

DT, H, D, TO = 100_000_000, 16, 3, 2
STAMP = 1_700_000_000_000_000_000


def request(step, **fields):
    return DecodeRequest(STAMP + step * DT, DT, TO, H, D, **fields)


def samples(seed, count=8):
    return np.random.default_rng(seed).normal(size=(count, H, D))


@pytest.mark.parametrize("name", ["vanilla", "bid", "keystone"])
def test_the_next_decision_continues_what_was_executed(name):
    """Safety slowed the decision: the memory holds the slower one. That of another stamp is not the last decision."""
    decoder = build_decoder(name, DecoderConfig(samples=8))
    first = decoder.choose(request(0), samples(0), None)
    decoder.executed(STAMP, lambda rows: 0.5 * rows)
    decoder.executed(STAMP + DT, lambda rows: rows + 9.0)
    second = decoder.choose(request(2), samples(1), None)
    assert second.executed == 2
    np.testing.assert_array_equal(second.previous, 0.5 * first.actions[2:])
    if name == "bid":
        wanted = select(samples(1), None, 0.5 * first.actions[2:], BidConfig(executed=2, observation_steps=TO))
        np.testing.assert_array_equal(second.selection.total, wanted.total)


@pytest.mark.parametrize(("count", "mode_size", "kept"), [(8, 3, 2), (5, 2, 2), (4, 2, 2), (3, 1, 3), (2, 1, 2)])
def test_fewer_samples_than_asked_for_are_judged_by_smaller_modes(count, mode_size, kept):
    """As when the screen dropped the others."""
    decoder = build_decoder("bid", DecoderConfig(samples=8))
    first = decoder.choose(request(0), samples(0), None)
    found = decoder.choose(request(1), samples(1, count), samples(2, count))
    config = BidConfig(mode_size=mode_size, executed=1, observation_steps=TO)
    wanted = select(samples(1, count), samples(2, count), first.actions[1:], config)
    assert found.index == wanted.index and found.selection.kept.sum() == kept
    np.testing.assert_array_equal(found.selection.total, wanted.total)


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("name", ["bid", "bid+delay"])
def test_rows_that_are_made_up_are_left_out_of_the_selection(name, delay):
    decoder = build_decoder(name, DecoderConfig(samples=8, delay=delay))
    first = decoder.choose(request(0, made_up=1), samples(0), None)
    found = decoder.choose(request(2, made_up=1), samples(1), samples(2))
    counted = delay if name == "bid+delay" else None
    config = BidConfig(executed=2, observation_steps=TO - 1, delay=counted)
    wanted = select(samples(1)[:, 1:], samples(2)[:, 1:], first.actions[2:][1:], config)
    np.testing.assert_array_equal(found.selection.total, wanted.total)
    assert found.selection.index == wanted.index
