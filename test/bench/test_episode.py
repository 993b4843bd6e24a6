from __future__ import annotations

import numpy as np

from bid_ros.bench.episode import ActionNoise


def test_is_the_noise_of_the_published_code(root):
    with np.load(root / "test" / "data" / "noise_visible.npz") as golden:
        noise = ActionNoise(float(golden["strength"]), np.random.RandomState(int(golden["seed"])))
        for expected in golden["steps"]:
            np.testing.assert_allclose(noise.offsets(golden["pred"][0]), expected[0], atol=1e-12)


def test_strength_zero_adds_nothing_and_draws_nothing():
    rng = np.random.default_rng(0)
    assert not ActionNoise(0.0, rng).offsets(np.arange(8.0).reshape(4, 2)).any()
    assert rng.random() == np.random.default_rng(0).random()
