"""The denoiser: what it listens to, and rows that are given clean."""

import pytest
import torch

from bid_ros.core.errors import BidError
from bid_ros.learning import NetworkConfig
from bid_ros.learning.denoiser import Denoiser

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
