import numpy as np
import pytest
import torch

from bid_ros.learning import AugmentConfig
from bid_ros.learning.augmentation import forget_history, jitter, offset_vectors, shift_images


def test_shift_moves_whole_samples_and_repeats_edges() -> None:
    image = (
        np.arange(6 * 7, dtype=np.uint8).reshape(1, 1, 6, 7, 1).repeat(3, axis=4).repeat(2, axis=1).repeat(32, axis=0)
    )
    shifted = shift_images(image, 2, np.random.default_rng(0))
    seen = set()
    for sample in shifted:
        assert (sample[0] == sample[1]).all(), "observation steps of a sample move together"
        row, column = np.argwhere(sample[0, :, :, 0] == image[0, 0, 3, 3, 0])[0]
        seen.add((row, column))
        padded = np.pad(image[0, 0], ((2, 2), (2, 2), (0, 0)), mode="edge")
        down, right = 3 - row, 3 - column
        np.testing.assert_array_equal(sample[0], padded[2 + down : 8 + down, 2 + right : 9 + right])
    assert len(seen) > 10


def test_jitter_is_seeded_bounded_and_off_at_zero() -> None:
    images = torch.rand(4, 2, 8, 8, 3) - 0.5
    strong = AugmentConfig(brightness=0.3, contrast=0.3, noise=0.1)

    def changed(config: AugmentConfig, seed: int) -> torch.Tensor:
        return jitter(images.clone(), config, torch.Generator().manual_seed(seed))

    assert torch.equal(changed(strong, 1), changed(strong, 1))
    assert not torch.equal(changed(strong, 1), changed(strong, 2))
    assert changed(strong, 1).abs().max() <= 0.5
    torch.testing.assert_close(changed(AugmentConfig(brightness=0, contrast=0, noise=0), 1), images, atol=1e-6, rtol=0)


def test_jitter_keeps_to_its_limits() -> None:
    grey = torch.zeros(64, 1, 8, 8, 3)
    bright = jitter(grey.clone(), AugmentConfig(brightness=0.2, contrast=0, noise=0), torch.Generator().manual_seed(0))
    assert 0.15 < bright.abs().max() <= 0.2
    noisy = jitter(grey.clone(), AugmentConfig(brightness=0, contrast=0, noise=0.05), torch.Generator().manual_seed(0))
    deviations = noisy.flatten(1).std(dim=1)
    assert 0.03 < deviations.max() < 0.07
    assert deviations.min() < 0.01


def test_vectors_are_offset_alike_at_all_steps_of_a_sample():
    values = np.zeros((500, 2, 3), dtype=np.float32)
    moved = offset_vectors(values, 0.1, np.random.default_rng(0))
    assert moved.dtype == np.float32
    assert moved.std() == pytest.approx(0.1, rel=0.1)
    assert (moved[:, 1] - moved[:, 0]).std() == pytest.approx(0.1 * 0.2 * 2**0.5, rel=0.1)
    assert offset_vectors(values, 0.0, np.random.default_rng(0)) is values


def test_some_samples_see_their_newest_row_at_every_step():
    rows = np.arange(3000).reshape(1000, 3)
    seen = forget_history(rows, 0.3, np.random.default_rng(0))
    forgot = (seen == rows[:, -1:]).all(axis=1)
    assert forgot.mean() == pytest.approx(0.3, abs=0.05)
    np.testing.assert_array_equal(seen[~forgot], rows[~forgot])
    assert forget_history(rows, 0.0, np.random.default_rng(0)) is rows
