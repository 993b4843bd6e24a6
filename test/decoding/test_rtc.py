"""Real-Time Chunking's side of a decision: what the sample is drawn towards."""

import numpy as np
import pytest

from bid_ros.decoding import DecoderConfig, DecodeRequest, build_decoder
from bid_ros.decoding.prefix import prefix_weights

DT = 100_000_000
H, D = 12, 3


def request(step, observation_steps=2):
    return DecodeRequest(step * DT, DT, observation_steps, H, D)


def test_the_first_decision_is_free():
    proposal = build_decoder("rtc").propose(request(0))
    assert (proposal.strong, proposal.weak, proposal.guidance) == (1, 0, None)


@pytest.mark.parametrize(("executed", "delay"), [(1, 1), (1, 0), (3, 2), (4, 9)])
def test_a_later_one_is_drawn_to_what_is_left_of_the_previous_one(executed, delay):
    decoder = build_decoder("rtc", DecoderConfig(delay=delay))
    chunk = np.random.default_rng(0).standard_normal((1, H, D))
    decoder.choose(request(0), chunk, None)
    guidance = decoder.propose(request(executed)).guidance
    rows = H - executed
    np.testing.assert_array_equal(guidance.target[:rows], chunk[0, executed:])
    np.testing.assert_array_equal(guidance.weights[1:rows], prefix_weights(min(delay, rows - 1), rows - 1))
    assert guidance.weights[0] == 1.0
    assert not guidance.weights[rows:].any()
    assert guidance.clip == 5.0


def test_a_measured_delay_counts_instead_of_the_settings():
    decoder = build_decoder("rtc", DecoderConfig(delay=1))
    decoder.choose(request(0), np.zeros((1, H, D)), None)
    guidance = decoder.propose(DecodeRequest(DT, DT, 2, H, D, delay=4)).guidance
    np.testing.assert_array_equal(guidance.weights[1 : H - 1], prefix_weights(4, H - 2))


def test_a_pause_longer_than_the_chunk_sets_it_free():
    decoder = build_decoder("rtc")
    decoder.choose(request(0), np.zeros((1, H, D)), None)
    assert decoder.propose(request(H)).guidance is None
    assert decoder.propose(request(H - 1)).guidance.weights.tolist() == [1.0] + [0.0] * (H - 1)


def test_no_row_beyond_the_previous_decision_is_drawn():
    """Of three rows of the past the previous decision still has the first."""
    decoder = build_decoder("rtc")
    decoder.choose(request(0, 4), np.ones((1, H, D)), None)
    guidance = decoder.propose(request(H - 1, 4)).guidance
    assert guidance.weights.tolist() == guidance.target[:, 0].tolist() == [1.0] + [0.0] * (H - 1)


def test_it_executes_the_sample_and_forgets_at_a_reset():
    decoder = build_decoder("rtc")
    chunk = np.random.default_rng(0).standard_normal((1, H, D))
    assert np.array_equal(decoder.choose(request(0), chunk, None).actions, chunk[0])
    decoder.reset()
    assert decoder.propose(request(1)).guidance is None
