"""The lens: an ideal one of a field of view, and one that distorts."""

import cv2
import numpy as np
import pytest

from bid_ros.cameras.lens import Lens
from bid_ros.cameras.model import CameraModel
from bid_ros.core.errors import CameraError


def test_an_ideal_lens_puts_points_where_the_model_of_the_cropped_image_does():
    crop = (280, 0, 720, 720)
    lens, model = Lens.ideal(60.0, (1280, 720), crop), CameraModel(np.zeros(3), np.eye(3), 60.0, 720, 720)
    points = np.array([[0.1, -0.2, 1.0], [0.0, 0.0, 2.0]])
    placed, _ = cv2.projectPoints(points, np.zeros(3), np.zeros(3), lens.matrix, None)
    # OpenCV counts from the middle of the first pixel, the model from its corner.
    np.testing.assert_allclose(placed[:, 0] + 0.5 - [280, 0], model.project(points)[0], atol=1e-9)
    assert lens.fovy(crop) == pytest.approx(60.0)


def test_straightened_pixels_are_those_of_the_same_lens_without_distortion():
    lens = Lens((640, 480), (500.0, 510.0), (321.0, 238.0), (-0.25, 0.08, 0.001, -0.002, 0.0))
    points = np.random.default_rng(0).uniform([-0.5, -0.4, 1.0], [0.5, 0.4, 1.2], (20, 3))
    bent, straight = (
        cv2.projectPoints(points, np.zeros(3), np.zeros(3), lens.matrix, given)[0][:, 0]
        for given in (np.array(lens.distortion), None)
    )
    assert np.abs(bent - straight).max() > 5
    np.testing.assert_allclose(lens.straightened(bent), straight, atol=0.05)


def test_a_lens_that_cannot_be_is_one_sentence():
    with pytest.raises(CameraError, match="valid are px above 0"):
        Lens((0, 480), (500.0, 500.0), (320.0, 240.0))
