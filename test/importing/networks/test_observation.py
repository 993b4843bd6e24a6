"""Preparation of images and key points, against plain definitions."""

import numpy as np
import pytest
import torch

from bid_ros.core.errors import BidError
from bid_ros.importing.networks.observation import ImportedSpatialSoftmax, Preparation

ONE, ZERO = (1.0, 1.0, 1.0), (0.0, 0.0, 0.0)


def image(height, width):
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, (1, height, width, 3), np.uint8))


@pytest.mark.parametrize(("size", "wanted"), [((40, 50), (20, 30)), ((40, 50), (60, 70)), ((41, 33), (41, 20))])
def test_an_image_is_resized_with_smoothing(size, wanted):
    given = image(*size)
    plain = given.permute(0, 3, 1, 2).float() / 255
    expected = torch.nn.functional.interpolate(plain, size=wanted, mode="bilinear", align_corners=False, antialias=True)
    found = Preparation(size, ONE, ZERO, wanted)(given)
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=0)


def test_colours_are_scaled_and_the_middle_is_kept():
    given = image(11, 8)
    found = Preparation((11, 8), (2.0, 1.0, 0.5), (-1.0, 0.0, 3.0), None, (4, 6))(given)
    colours = given[0, 4:8, 1:7].float().numpy() / 255  # (11 - 4) / 2 is rounded to the even 4
    expected = colours * np.array([2, 1, 0.5]) + np.array([-1, 0, 3])
    np.testing.assert_allclose(found[0].permute(1, 2, 0).numpy(), expected, atol=1e-6)


def test_a_crop_larger_than_the_image_is_refused():
    with pytest.raises(BidError, match=r"cropped to \(12, 6\); valid is up to their size \(11, 8\)"):
        Preparation((11, 8), ONE, ZERO, None, (12, 6))


def test_a_key_point_lies_where_its_map_is_high():
    pool = ImportedSpatialSoftmax(1, 5, 9, 1)
    torch.nn.init.constant_(pool.nets.weight, 100.0)
    torch.nn.init.zeros_(pool.nets.bias)
    maps = torch.zeros(1, 1, 5, 9)
    maps[0, 0, 4, 2] = 1
    np.testing.assert_allclose(pool(maps)[0].tolist(), [-0.5, 1.0], atol=1e-6)  # x before y
