"""The rows that samples agree on are executed before the next decision."""

import numpy as np
import pytest

from bid_ros.core.errors import DecodingError
from bid_ros.decoding import DecoderConfig, DecodeRequest, build_decoder
from bid_ros.decoding.agreement import agreed_rows

DT, H, D, TO, N = 100_000_000, 16, 3, 2, 8
ROWS = H - (TO - 1)


def request(step):
    return DecodeRequest(10**18 + step * DT, DT, TO, H, D)


def fan(agreed, apart=1.0):
    """Samples ``(N, H, D)`` that are equal in the first ``agreed`` executable rows, and ``apart`` or more later."""
    found = np.tile(np.linspace(0, 1, H)[:, None], (N, 1, D))
    found[:, TO - 1 + agreed :, 0] += apart * 2 * np.arange(N)[:, None]
    return found


@pytest.mark.parametrize(("agreed", "largest", "rows"), [(4, 0.5, 4), (0, 0.5, 0), (ROWS, 0.5, ROWS), (4, 100.0, ROWS)])
def test_rows_count_as_long_as_the_samples_are_near_the_chosen_one(agreed, largest, rows):
    samples = fan(agreed)[:, TO - 1 :]
    assert agreed_rows(samples, samples[0], largest, None) == rows


def test_weights_say_what_counts():
    samples = fan(4)[:, TO - 1 :]
    assert agreed_rows(samples, samples[0], 0.5, (0.0, 1.0, 1.0)) == ROWS
    assert agreed_rows(samples, samples[0], 0.5, (0.01, 1.0, 1.0)) == ROWS
    assert agreed_rows(samples, samples[0], 0.5, (1.0, 0.0, 0.0)) == 4


@pytest.mark.parametrize("name", ["bid", "keystone", "bid+ema", "bid+delay"])
@pytest.mark.parametrize(("agreed", "least", "wait"), [(5, 1, 5), (0, 1, 1), (2, 4, 4), (ROWS, 1, ROWS - 2)])
def test_the_next_decision_comes_when_the_agreed_rows_have_passed(name, agreed, least, wait):
    config = DecoderConfig(samples=N, action_horizon=least, agreement=0.5)
    decoder = build_decoder(name, config)
    assert decoder.propose(request(0)).strong == N
    decoder.choose(request(0), fan(agreed), fan(agreed) if decoder.propose(request(0)).weak else None)
    steps = [step for step in range(1, H + 1) if decoder.propose(request(step)).strong]
    assert steps[0] == wait
    decoder.reset()
    assert decoder.propose(request(1)).strong == N


def test_nobody_agrees_with_a_single_candidate():
    """As when all others were screened out."""
    decoder = build_decoder("bid", DecoderConfig(samples=N, agreement=0.5))
    decoder.choose(request(0), fan(ROWS), fan(ROWS))
    decoder.choose(request(9), fan(ROWS)[:1], None)
    assert decoder.propose(request(10)).strong == N


def test_it_is_written_with_the_decoder_and_off_unless_it_is():
    decoder = build_decoder("bid:agreement=0.5", DecoderConfig(samples=N))
    decoder.choose(request(0), fan(3), fan(3))
    assert [decoder.propose(request(step)).strong for step in range(1, 5)] == [0, 0, N, N]
    usual = build_decoder("bid", DecoderConfig(samples=N))
    usual.choose(request(0), fan(3), fan(3))
    assert usual.propose(request(1)).strong == N


@pytest.mark.parametrize(
    "text", ["bid:agreement=0", "bid:agreement=-1", "keystone:agreement=nan", "vanilla:agreement=1"]
)
def test_a_distance_that_is_none_or_a_decoder_of_one_sample_is_refused(text):
    with pytest.raises(DecodingError, match="agreement"):
        build_decoder(text, DecoderConfig())
