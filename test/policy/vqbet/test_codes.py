from __future__ import annotations

import numpy as np
import pytest

from bid_ros.core.errors import BundleError
from bid_ros.policy.vqbet import FAMILY
from bid_ros.policy.vqbet.codes import CodeForecast, VqBetSettings, chunks_of, draw_codes, forecast_size, split_forecast

ROWS, WIDTH = 3, 2


@pytest.fixture
def forecast() -> CodeForecast:
    """Codes 0 and 1 are equally likely first; the second code is then surely 1 or surely 0."""
    sure = np.array([[0.0, 60.0], [60.0, 0.0]], np.float32)
    offsets = np.arange(2 * 2 * ROWS * WIDTH, dtype=np.float32).reshape(2, 2, ROWS, WIDTH)
    return CodeForecast(np.zeros(2, np.float32), sure, offsets)


def test_the_second_code_belongs_to_the_first(forecast):
    codes = draw_codes(forecast, 1.0, np.random.default_rng(0).random((64, 2)))
    assert set(map(tuple, codes.tolist())) == {(0, 1), (1, 0)}
    assert 20 < codes[:, 0].sum() < 44


def test_a_code_is_the_first_whose_cumulated_probability_reaches_the_number():
    logits = np.log(np.array([0.2, 0.5, 0.3], np.float32))
    forecast = CodeForecast(logits, np.tile(logits, (3, 1)), np.zeros((2, 3, 1, 1), np.float32))
    uniforms = np.array([[0.1, 0.19], [0.21, 0.69], [0.71, 0.999999], [0.0, 1.0]])
    assert draw_codes(forecast, 1.0, uniforms).tolist() == [[0, 0], [1, 1], [2, 2], [0, 2]]


def test_temperature_sharpens_and_flattens():
    logits = np.array([0.0, 1.0], np.float32)
    forecast = CodeForecast(logits, np.tile(logits, (2, 1)), np.zeros((2, 2, 1, 1), np.float32))
    uniforms = np.random.default_rng(0).random((4000, 2))
    shares = [draw_codes(forecast, value, uniforms).mean(axis=0) for value in (0.5, 1.0, 10.0)]
    for share, value in zip(shares, (0.5, 1.0, 10.0), strict=True):
        np.testing.assert_allclose(share, 1 / (1 + np.exp(-1 / value)), atol=0.03)


def test_a_chunk_is_what_its_codes_stand_for_plus_both_offsets(forecast):
    table = np.random.default_rng(0).standard_normal((2, 2, ROWS, WIDTH), dtype=np.float32)
    chunks = chunks_of(np.array([[0, 1], [1, 1]]), table, forecast)
    np.testing.assert_allclose(chunks[0], table[0, 1] + forecast.offsets[0, 0] + forecast.offsets[1, 1], rtol=1e-6)
    np.testing.assert_allclose(chunks[1], table[1, 1] + forecast.offsets[0, 1] + forecast.offsets[1, 1], rtol=1e-6)


def test_the_numbers_of_a_forecast_have_their_places(forecast):
    flat = np.concatenate([part.ravel() for part in forecast])[None]
    assert flat.shape == (1, forecast_size(2, ROWS, WIDTH))
    for part, again in zip(forecast, split_forecast(flat, 2, ROWS, WIDTH), strict=True):
        np.testing.assert_array_equal(part, again)


def test_settings_that_are_not_valid():
    assert FAMILY.settings({"codes": 16, "temperature": 0.5}) == VqBetSettings(16, 0.5)
    with pytest.raises(BundleError, match="temperature is 0"):
        FAMILY.settings({"codes": 16, "temperature": 0.0})
    with pytest.raises(BundleError, match="vqbet: the field 'codes' is missing"):
        FAMILY.settings({"temperature": 0.5})
    with pytest.raises(BundleError, match="unknown field 'sampling_steps'"):
        FAMILY.settings({"codes": 16, "temperature": 0.5, "sampling_steps": 8})
