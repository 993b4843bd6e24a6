"""What is recommended: still scenes and moving ones, one mode and several, jitter and none, long chunks and short."""

import math

import pytest

from bid_ros.evaluation.recommendation import (
    FEW_MODES,
    LITTLE_JITTER,
    LONGEST_S,
    PAGE,
    described,
    half_prediction,
    jitter_of,
    recommend,
)

JITTER = 2.0


def found(refused=None, samples=16, most=None, took=None, robot=True, jerk=50.0):
    """Return the summary of an evaluation with 1.2 modes; refused and took are by decoder."""
    names = {*(refused or {}), *(took or {})}
    cells = {"refused": refused or {}, "decision_ms": took or {}}
    decoders = {
        name: {"measures": {key: [of[name]] * 3 if name in of else None for key, of in cells.items()}} for name in names
    }
    policy = {"modes": [1.2, 1.1, 1.3], "disagreement": [0.1, 0.0, 0.2], "jerk": [jerk, 40.0, 60.0]}
    about = {"samples": samples, "most_samples": most, "rows": 15, "dt_s": 0.1, "robot": robot}
    return {"policy": policy, "decoders": decoders, "demonstrated_jerk": 25.0, "episodes": 6, **about}


@pytest.mark.parametrize(
    ("modes", "decoder", "samples"), [(1.0, "ema", 1), (FEW_MODES, "ema", 1), (FEW_MODES + 0.01, "bid", 16)]
)
def test_several_modes_are_not_averaged(modes, decoder, samples):
    still, moving = recommend(modes, JITTER, 15, 0.1)
    assert (still.decoder, still.samples, still.action_horizon) == (decoder, samples, 8)
    assert (moving.decoder, moving.samples, moving.action_horizon) == ("bid", 16, 1)
    assert still.options == f"--decoder {decoder} --samples {samples} --action-horizon 8"


def test_a_policy_of_one_chunk_leaves_nothing_to_choose():
    still, moving = recommend(1.0, JITTER, 15, 0.1, samples=1)
    assert (still.decoder, moving.decoder, moving.samples) == ("ema", "vanilla", 1)


def test_averages_that_safety_would_stop_are_not_recommended():
    still = recommend(1.0, JITTER, 15, 0.1, refused={"ema": 0.01})[0]
    assert (still.decoder, still.samples, still.action_horizon) == ("bid", 16, 8)
    assert "Safety would stop averages" in still.why
    assert recommend(1.0, JITTER, 15, 0.1, samples=1, refused={"ema": 0.01})[0].decoder == "vanilla"


@pytest.mark.parametrize("modes", [1.0, 2.0])
def test_decisions_that_are_smooth_by_themselves_are_made_at_every_step(modes):
    still, moving = recommend(modes, LITTLE_JITTER, 15, 0.1, refused={"ema": 0.01})
    assert still.options == moving.options == "--decoder bid --samples 16 --action-horizon 1"
    assert still.scene == "still" and "1.20 times their jerk" in still.why
    assert recommend(modes, LITTLE_JITTER, 15, 0.1, samples=1)[0].decoder == "vanilla"
    assert recommend(modes, LITTLE_JITTER + 0.01, 15, 0.1)[0].action_horizon == 8


def test_jitter_is_relative_to_the_demonstrations():
    assert jitter_of(found(jerk=30.0)) == pytest.approx(1.2)
    still = found() | {"demonstrated_jerk": 0.0}
    assert jitter_of(still) == jitter_of(found() | {"demonstrated_jerk": None}) == math.inf
    assert "no jerk to compare" in described(still)
    assert "has 2.00 times the demonstrations' jerk" in described(found())


@pytest.mark.parametrize(
    ("rows", "dt_s", "half"),
    [(15, 0.05, 8), (5, 0.1, 3), (15, 0.2, 4), (15, 0.3, 2), (100, 0.02, 40), (1, 0.1, 1), (50, 2.0, 1), (3, 0.1, 2)],
)
def test_half_a_prediction_is_executed_but_never_longer_than_was_measured(rows, dt_s, half):
    assert half_prediction(rows, dt_s) == half
    assert half == 1 or half * dt_s <= LONGEST_S + 1e-9


def test_the_text_says_what_was_seen_and_where_the_evidence_is():
    text = described(found({"ema": 0.0, "bid": 0.0}))
    assert "`--decoder ema --samples 1 --action-horizon 8`" in text
    assert "`--decoder bid --samples 16 --action-horizon 1`" in text
    assert "N = 16 shows 1.20 modes (1.10 to 1.30)" in text
    assert "10 % of the pairs" in text
    assert PAGE in text
    assert "But" not in text and "Whether" not in text


def test_what_speaks_against_it_is_said():
    assert "`--decoder bid --samples 16 --action-horizon 8`" in described(found({"ema": 0.01, "bid": 0.0}))
    assert "not seen: --decoder did not name ema." in described(found({"bid": 0.0}))
    assert "But safety would have stopped 2.0 % of its decisions." in described(found({"bid": 0.02, "ema": 0.0}))
    assert "But a decision took 130 ms here, and has 100 ms: draw fewer samples." in described(found(took={"bid": 130}))
    assert "But" not in described(found(took={"ema": 130})), "eight actions last 800 ms"


def test_where_no_safety_node_keeps_limits_nothing_is_said_of_it():
    """Of a bench no decoder has the measure ``refused``."""
    text = described(found(took={"ema": 1, "bid": 1}, robot=False))
    assert "--decoder ema" in text and "afety would" not in text


def test_a_single_episode_has_no_interval_and_a_bench_is_no_rehearsal():
    text = described(found(robot=False) | {"episodes": 1})
    assert "shows 1.20 modes. " in text and "with `bid bench`." in text
    assert "with `bid rehearse` or `bid up`." in described(found())


def test_few_samples_say_nothing_about_modes():
    assert "2 of 16 samples hide modes (--samples 16)" in described(found(samples=2))
    assert "--decoder vanilla --samples 1 --action-horizon 1" in described(found(samples=1, most=1))
