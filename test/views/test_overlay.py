import numpy as np
import pytest

from bid_ros.views.overlay import KEPT, PREVIOUS, SELECTED, TRIMMED, WEAK, CameraModel, draw_decision

# Looks straight down from 1 m; a picture of 96 px shows 1 m at the base plane, +x to the right and +y upwards.
CAMERA = CameraModel(np.array([0.0, 0.0, 1.0]), np.diag([1.0, -1.0, -1.0]), 2 * np.degrees(np.arctan(0.5)), 96, 96)
GREY = np.full((96, 96, 3), 90, np.uint8)
X = np.linspace(-0.4, 0.4, 16)


def line(y):
    return np.stack([X, np.full(16, y), np.zeros(16)], axis=1)


def drawn(**values):
    arguments = {"strong": np.stack([line(0.3), line(0.2)]), "selected": line(0.3), **values}
    return draw_decision(GREY, CAMERA, **arguments)


def distance_to(picture, y, color):
    """Smallest distance to a colour in the rows around height ``y`` of the base plane, middle of the picture."""
    row = round(240 - 480 * y)
    part = picture[row - 2 : row + 3, 100:380].astype(float)
    return np.abs(part - color).sum(axis=2).min()


def strongest_change(picture, y):
    """Largest change of a pixel (3,) against the grey background in the rows around height ``y``."""
    row = round(240 - 480 * y)
    change = picture[row - 2 : row + 3, 100:380].reshape(-1, 3).astype(float) - 90
    return change[np.linalg.norm(change, axis=1).argmax()]


def test_the_selected_chunk_is_where_the_camera_sees_it():
    assert distance_to(drawn(), 0.3, SELECTED) < 5
    assert distance_to(drawn(selected=line(-0.3)), -0.3, SELECTED) < 5
    assert distance_to(drawn(), -0.3, SELECTED) > 100


def test_every_kind_of_line_has_its_colour():
    strong = np.stack([line(0.3), line(0.2), line(0.1)])
    picture = drawn(
        strong=strong,
        kept=np.array([True, True, False]),
        weak=line(-0.1)[None],
        previous=line(-0.2),
        scores=np.array([1.0, 0.5, np.nan]),
    )
    colours = {0.2: KEPT, 0.1: TRIMMED, -0.1: WEAK, -0.2: PREVIOUS}
    for y, color in colours.items():
        change = strongest_change(picture, y)
        alike = {
            name: change @ (np.array(name) - 90) / np.linalg.norm(np.array(name) - 90) for name in colours.values()
        }
        assert max(alike, key=alike.get) == color


def test_a_better_score_is_more_opaque():
    for scores, best, worst in (([0.0, 1.0, 2.0], 0.2, -0.2), ([2.0, 1.0, 0.0], -0.2, 0.2)):
        picture = drawn(strong=np.stack([line(0.2), line(0.0), line(-0.2)]), scores=np.array(scores))
        assert distance_to(picture, best, KEPT) < distance_to(picture, worst, KEPT)


@pytest.mark.parametrize("shape", [(96, 96, 3), (480, 480, 3), (90, 120, 3)])
@pytest.mark.parametrize("height", [240, 383])
def test_the_picture_is_enlarged_with_even_sizes(shape, height):
    picture = draw_decision(np.zeros(shape, np.uint8), CAMERA, line(0)[None], line(0), height=height)
    assert picture.dtype == np.uint8
    assert picture.shape[0] % 2 == 0 and picture.shape[1] % 2 == 0
    assert abs(picture.shape[1] - height * shape[1] / shape[0]) <= 2
    assert picture.shape[0] > height


def test_the_text_line_is_below_the_picture():
    with_text, without = drawn(text="bid   decision 41 ms"), drawn()
    assert (with_text[:480] == without[:480]).all()
    assert (with_text[480:] != without[480:]).any()


def test_no_decision_yet_leaves_the_picture_as_it_is():
    empty = np.empty((0, 16, 3))
    nothing = {"previous": np.empty((0, 3)), "weak": empty, "kept": np.empty(0, bool), "scores": np.empty(0)}
    picture = draw_decision(GREY, CAMERA, empty, np.empty((0, 3)), text="waiting", **nothing)
    assert (picture[:480] == 90).all()


def test_points_behind_the_camera_and_far_outside_do_no_harm():
    far = line(0.0) * 1e9
    behind = line(0.0) + np.array([0, 0, 5])
    strong = np.stack([far, behind, line(0.2)])
    assert distance_to(drawn(strong=strong, selected=behind, weak=far[None]), 0.2, KEPT) < 200


def test_the_input_picture_is_not_written_to():
    image = np.full((480, 480, 3), 90, np.uint8)
    draw_decision(image, CAMERA, line(0.2)[None], line(0.2))
    assert (image == 90).all()
