"""What is recommended: still scenes and moving ones, one mode and several, long chunks and short ones."""

import pytest

from bid_ros.evaluation.recommendation import FEW_MODES, LONGEST_S, PAGE, described, recommend


@pytest.mark.parametrize(("modes", "decoder"), [(1.0, "ema"), (FEW_MODES, "ema"), (FEW_MODES + 0.01, "vanilla")])
def test_several_modes_are_not_averaged(modes, decoder):
    still, moving = recommend(modes, 16, 0.1)
    assert (still.decoder, still.samples, still.action_horizon) == (decoder, 1, 8)
    assert (moving.decoder, moving.samples, moving.action_horizon) == ("bid", 16, 1)
    assert still.options == f"--decoder {decoder} --samples 1 --action-horizon 8"


def test_a_policy_of_one_chunk_leaves_nothing_to_choose():
    still, moving = recommend(1.0, 16, 0.1, samples=1)
    assert (still.decoder, moving.decoder, moving.samples) == ("ema", "vanilla", 1)


def test_what_safety_would_stop_is_not_recommended():
    assert recommend(1.0, 16, 0.1, refused={"ema": 0.01, "vanilla": 0.0})[0].decoder == "vanilla"
    still = recommend(1.0, 16, 0.1, refused={"ema": 0.01, "vanilla": 0.02, "bid": 0.0})[0]
    assert (still.decoder, still.samples, still.action_horizon) == ("bid", 16, 8)
    assert recommend(1.0, 16, 0.1, samples=1, refused={"ema": 0.01, "vanilla": 0.02})[0].decoder == "vanilla"


@pytest.mark.parametrize(
    ("horizon", "dt_s", "rows"),
    [(16, 0.05, 8), (9, 0.1, 4), (16, 0.2, 4), (100, 0.02, 40), (1, 0.1, 1), (50, 2.0, 1)],
)
def test_half_a_prediction_is_executed_but_never_longer_than_was_measured(horizon, dt_s, rows):
    still, _ = recommend(1.0, horizon, dt_s)
    assert still.action_horizon == rows
    assert rows == 1 or rows * dt_s <= LONGEST_S


def test_the_text_says_what_was_seen_and_where_the_evidence_is():
    policy = {"modes": [1.2, 1.1, 1.3], "disagreement": [0.1, 0.0, 0.2]}
    decoders = {"ema": {"measures": {"refused": [0.0] * 3}}, "bid": {"measures": {"refused": None}}}
    text = described({"samples": 16, "policy": policy, "decoders": decoders}, 16, 0.1)
    assert "`--decoder ema --samples 1 --action-horizon 8`" in text
    assert "`--decoder bid --samples 16 --action-horizon 1`" in text
    assert "16 samples show 1.20 modes (1.10 to 1.30)" in text
    assert "10 % of their pairs" in text
    assert PAGE in text
