"""The denoiser: what it listens to, and rows that are given clean."""

import pytest
import torch

from bid_ros.core.errors import BidError
from bid_ros.learning import NetworkConfig
from bid_ros.learning.denoiser import Denoiser, prefix_share

SMALL = NetworkConfig(widths=(16, 32), kernel=3, condition=32, step_embedding=16, keypoints=8, image_width=8)


def test_one_condition_for_all_samples_equals_one_for_each() -> None:
    denoiser = Denoiser(8, 4, SMALL).eval()
    sample, condition = torch.randn(5, 8, 4), torch.randn(1, 32)
    shared = denoiser(sample, torch.tensor([7]), condition)
    repeated = denoiser(sample, torch.full((5,), 7), condition.expand(5, -1))
    torch.testing.assert_close(shared, repeated, atol=1e-5, rtol=1e-5)


def test_denoiser_listens_to_step_and_condition() -> None:
    denoiser = Denoiser(8, 4, SMALL).eval()
    sample, condition = torch.randn(2, 8, 4), torch.randn(1, 32)
    base = denoiser(sample, torch.tensor([7]), condition)
    assert (denoiser(sample, torch.tensor([90]), condition) - base).abs().max() > 1e-4
    assert (denoiser(sample, torch.tensor([7]), -condition) - base).abs().max() > 1e-4


def test_a_horizon_that_cannot_be_halved_is_refused() -> None:
    with pytest.raises(BidError, match="horizon is 9; valid for 2 widths is a multiple of 2"):
        Denoiser(9, 4, SMALL)


def test_no_given_row_is_the_same_as_before() -> None:
    torch.manual_seed(0)
    denoiser = Denoiser(8, 4, SMALL, clean_step=100).eval()
    sample, step, condition = torch.randn(5, 8, 4), torch.tensor([7]), torch.randn(1, 32)
    assert torch.equal(denoiser(sample, step, condition, torch.tensor([0])), denoiser(sample, step, condition))


def test_a_chunk_of_given_rows_is_one_at_the_clean_step() -> None:
    torch.manual_seed(0)
    denoiser = Denoiser(8, 4, SMALL, clean_step=100).eval()
    sample, condition = torch.randn(2, 8, 4), torch.randn(1, 32)
    whole = denoiser(sample, torch.tensor([7]), condition, torch.tensor([8]))
    torch.testing.assert_close(whole, denoiser(sample, torch.tensor([100]), condition))


def test_each_sample_has_its_own_number_of_given_rows() -> None:
    torch.manual_seed(0)
    denoiser = Denoiser(8, 4, SMALL, clean_step=-1).eval()
    sample, step, condition = torch.randn(3, 8, 4), torch.tensor([7]), torch.randn(1, 32)
    counts = torch.tensor([0, 1, 3])
    together = denoiser(sample, step.expand(3), condition.expand(3, -1), counts)
    alone = [denoiser(sample[i : i + 1], step, condition, counts[i : i + 1]) for i in range(3)]
    torch.testing.assert_close(together, torch.cat(alone), atol=1e-5, rtol=1e-5)
    assert (alone[2] - denoiser(sample[2:], step, condition)).abs().max() > 1e-4, "the level of a row is seen"
    assert prefix_share(counts, 4).tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1, 0]]
    assert prefix_share(counts, 4, 2).tolist() == [[0, 0], [0.5, 0], [1, 0.5]]
