"""The closed form and its refinement, on corners that are computed instead of seen."""

import numpy as np
import pytest

from bid_ros.calibration.board import Board
from bid_ros.calibration.detection import Sighting
from bid_ros.calibration.rigid import apart, from_vector, inverse
from bid_ros.calibration.solving import closed_form, solve
from bid_ros.cameras.lens import Lens
from bid_ros.core.errors import CalibrationError

BOARD = Board()
LENS = Lens((1280, 720), (900.0, 905.0), (650.0, 355.0), (-0.2, 0.05, 0.001, -0.001, 0.0))
CAMERA = from_vector(np.array([0.1, -0.2, 1.5, 0.05, 0.01, -0.06]))  # at the wrist
PLACED = from_vector(np.array([np.pi, 0.0, 0.3, 0.45, 0.12, 0.0]))  # on the table


def seen(pose, rng, noise):
    """Where the lens puts the corners: the model that OpenCV has, with noise in px."""
    import cv2

    turn, place = cv2.Rodrigues(pose[:3, :3])[0], pose[:3, 3]
    pixels, _ = cv2.projectPoints(BOARD.corners, turn, place, LENS.matrix, np.array(LENS.distortion))
    return Sighting(np.arange(len(BOARD.corners)), pixels[:, 0] + rng.normal(0, noise, (len(BOARD.corners), 2)))


def scene(count=12, axes=(1.0, 1.0, 1.0), noise=0.0, seed=0):
    """Motions and sightings: views of the board from about 0.4 m."""
    rng = np.random.default_rng(seed)
    middle = np.array([0.12, 0.09, 0.0, 1.0])
    motions, sightings = [], []
    for _ in range(count):
        turn = rng.uniform(-0.4, 0.4, 3) * np.array(axes)
        view = from_vector(np.array([*turn, *rng.uniform(-0.03, 0.03, 2), 0.4])) @ np.linalg.inv(
            from_vector(np.array([0, 0, 0, *middle[:3]]))
        )
        motions.append(CAMERA @ view @ inverse(PLACED))  # so that camera^-1 . motion . board is the view
        sightings.append(seen(view, rng, noise))
    return np.stack(motions), sightings


def test_exact_corners_give_the_exact_pose_through_a_lens_that_distorts():
    motions, sightings = scene()
    found = solve(motions, sightings, BOARD, LENS, on_tool=True)
    assert apart(found.camera, CAMERA) < (1e-5, 1e-2) and apart(found.board, PLACED) < (1e-5, 1e-2)
    assert max(item.max() for item in found.residuals) < 0.01 and found.kept.all()


def test_the_closed_form_alone_is_exact_for_exact_poses():
    motions, _ = scene()
    camera, board = closed_form(motions, inverse(CAMERA) @ motions @ PLACED)
    assert apart(camera, CAMERA) < (1e-9, 1e-6) and apart(board, PLACED) < (1e-9, 1e-6)


def test_the_spread_tells_how_far_it_is_off():
    errors, spreads = [], []
    for seed in range(6):
        motions, sightings = scene(noise=1.0, seed=seed)
        found = solve(motions, sightings, BOARD, LENS, on_tool=True)
        errors.append(1e3 * apart(found.camera, CAMERA)[0])
        spreads.append(found.position_mm)
    assert 0.4 < np.mean(spreads) / np.sqrt(np.mean(np.square(errors))) < 2.5, (errors, spreads)


def test_an_image_at_another_pose_is_named_and_takes_no_part():
    motions, sightings = scene(noise=0.2)
    good = solve(motions, sightings, BOARD, LENS, on_tool=True)
    motions[4, :3, 3] += [0.02, 0.0, 0.0]
    found = solve(motions, sightings, BOARD, LENS, on_tool=True)
    assert np.flatnonzero(~found.kept).tolist() == [4]
    assert apart(found.camera, good.camera)[0] < 5e-4


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"count": 7}, "seen in 7 images; valid are 8 or more"),
        ({"axes": (0.0, 0.0, 1.0)}, "about one axis and 0.0 about a second; valid are 4 or more about two"),
        ({"axes": (0.0, 0.0, 0.0)}, "turn by 0 degrees"),
    ],
)
def test_what_does_not_tell_the_pose_is_one_sentence(given, words):
    motions, sightings = scene(**given)
    with pytest.raises(CalibrationError, match=words):
        solve(motions, sightings, BOARD, LENS, on_tool=True)


def test_images_that_disagree_are_no_calibration():
    motions, sightings = scene(count=9)
    motions[::2, :3, 3] += np.random.default_rng(1).uniform(-0.1, 0.1, (5, 3))
    with pytest.raises(CalibrationError, match=r"agree with each other.*; valid (are|is)"):
        solve(motions, sightings, BOARD, LENS, on_tool=True)
