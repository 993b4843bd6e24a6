"""Delay-aware BID against its formula: masked coherence, frozen steps."""

from __future__ import annotations

import numpy as np
import pytest

from bid_ros.decoding import BidConfig, DecoderConfig, DecodeRequest, DecodingError, build_decoder, select
from bid_ros.decoding.prefix import prefix_weights

DT, H, D, TO = 100_000_000, 16, 3, 2


def two_decisions(config: DecoderConfig, executed: int = 2, name: str = "bid+delay", measured: int | None = None):
    """First choice, samples of the second decision, second choice. ``measured``: delay of the second request."""
    decoder, rng = build_decoder(name, config), np.random.default_rng(5)
    first = decoder.choose(DecodeRequest(0, DT, TO, H, D), *rng.normal(size=(2, 8, H, D)))
    strong, weak = rng.normal(size=(2, 8, H, D))
    return first, strong, decoder.choose(DecodeRequest(executed * DT, DT, TO, H, D, measured), strong, weak)


@pytest.mark.parametrize("delay", [0, 1, 3])
@pytest.mark.parametrize("variant", ["paper", "reference_v1", "reference_v2", "corrected"])
def test_coherence_is_the_masked_distance_from_the_current_step_on(delay, variant):
    first, strong, choice = two_decisions(DecoderConfig(samples=8, delay=delay, variant=variant))
    mask = prefix_weights(delay, 13)
    distances = np.linalg.norm(strong[:, 1:14] - first.actions[3:], axis=-1)
    wanted = distances @ (mask if variant == "paper" else mask / mask.sum())
    np.testing.assert_allclose(choice.selection.backward, wanted)


@pytest.mark.parametrize(("delay", "rows"), [(0, 1), (1, 2), (4, 5)])
def test_steps_executed_meanwhile_stay_as_they_were_decided(delay, rows):
    first, strong, choice = two_decisions(DecoderConfig(samples=8, delay=delay))
    np.testing.assert_array_equal(choice.actions[:rows], first.actions[2 : 2 + rows])
    np.testing.assert_array_equal(choice.actions[rows:], strong[choice.selection.index][rows:])


@pytest.mark.parametrize("measured", [0, 1, 4])
def test_a_measured_delay_counts_instead_of_the_settings(measured):
    _, _, wanted = two_decisions(DecoderConfig(samples=8, delay=measured))
    _, _, found = two_decisions(DecoderConfig(samples=8, delay=2), measured=measured)
    np.testing.assert_array_equal(found.actions, wanted.actions)
    np.testing.assert_array_equal(found.selection.total, wanted.selection.total)
    with pytest.raises(DecodingError, match="delay is -1; valid is a whole number of at least 0, or None"):
        DecodeRequest(0, DT, TO, H, D, -1)


def test_frozen_steps_end_with_the_previous_decision():
    first, strong, choice = two_decisions(DecoderConfig(samples=8, delay=6), executed=13)
    np.testing.assert_array_equal(choice.actions[:3], first.actions[13:])
    np.testing.assert_array_equal(choice.actions[3:], strong[choice.selection.index][3:])


def test_the_delay_makes_committed_steps_count_alike():
    """One sample breaks with step 0, the other more with step 3: only if both are committed is the second worse."""
    strong, config = np.zeros((2, 12, 1)), {"mode_size": 1, "executed": 0, "terms": "backward"}
    strong[0, 0], strong[1, 3] = 1.0, 1.5
    chosen = [select(strong, None, np.zeros((12, 1)), BidConfig("paper", delay=q, **config)).index for q in (0, 4)]
    assert chosen == [1, 0]


def test_other_decoders_ignore_the_delay():
    plain, delayed = (two_decisions(DecoderConfig(samples=8, delay=delay), name="bid")[2] for delay in (0, 5))
    np.testing.assert_array_equal(plain.selection.total, delayed.selection.total)


def test_a_delay_that_leaves_nothing_to_execute_is_refused():
    with pytest.raises(DecodingError, match="delay is 15 steps; valid is at most 14"):
        two_decisions(DecoderConfig(samples=8, delay=15))
    two_decisions(DecoderConfig(samples=8, delay=14))
