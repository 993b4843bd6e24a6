import numpy as np
import pytest

from bid_ros.views.strokes import dots, stroke, text_width, write

RED = (200, 0, 0)
FILTER = 12  # levels that OpenCV's antialiasing takes from the middle of a thin line


@pytest.fixture
def canvas():
    return np.full((40, 60, 3), 100, np.uint8)


def test_a_line_covers_its_pixels_and_nothing_else(canvas):
    stroke(canvas, [np.array([[10.5, 20.5], [50.5, 20.5]])], RED, 1)
    np.testing.assert_allclose(canvas[20, 30], RED, atol=FILTER)
    rows, columns = np.nonzero((canvas != 100).any(axis=2))
    assert set(rows) == {19, 20, 21}
    assert columns.min() >= 8 and columns.max() <= 52


def test_opacity_mixes_the_colour(canvas):
    stroke(canvas, [np.array([[10.5, 20.5], [50.5, 20.5]])], RED, 1, 0.5)
    np.testing.assert_allclose(canvas[20, 30], [150, 50, 50], atol=FILTER / 2)


def test_each_line_has_its_opacity(canvas):
    lines = [np.array([[5.5, y], [55.5, y]]) for y in (10.5, 30.5)]
    stroke(canvas, lines, RED, 1, [0.25, 0.75])
    np.testing.assert_allclose(canvas[[10, 30], 30, 0], [125, 175], atol=FILTER)


def test_a_gap_where_a_point_is_nan_or_absurd(canvas):
    for hole in (np.nan, 1e12):
        line = np.array([[0.5, 20.5], [20.5, 20.5], [hole, 20.5], [40.5, 20.5], [59.5, 20.5]])
        stroke(canvas, [line], RED, 1)
        assert (canvas[20, 25:36] == 100).all()
        assert min(canvas[20, 10, 0], canvas[20, 50, 0]) > 200 - FILTER


def test_dashes_have_their_lengths(canvas):
    stroke(canvas, [np.array([[0.5, 20.5], [30.0, 20.5], [59.5, 20.5]])], RED, 1, 1.0, (10.0, 5.0))
    row = canvas[20, :, 0] > 150
    assert row[[2, 8, 17, 23, 32, 47]].all()
    assert not row[[12, 13, 27, 28, 42, 43]].any()


def test_a_line_outside_changes_nothing(canvas):
    stroke(canvas, [np.array([[-30.0, -9.0], [-10.0, -9.0]]), np.array([[5.0, 5.0]]), np.empty((0, 2))], RED, 3)
    assert (canvas == 100).all()


def test_dots_are_round_and_skip_nan(canvas):
    dots(canvas, np.array([[20.5, 20.5], [np.nan, 3.0]]), RED, [5.0, 5.0])
    area = ((canvas[..., 0] - 100.0) / 100).sum()
    assert area == pytest.approx(np.pi * 25, rel=0.3)  # with its soft edge
    assert canvas[20, 20, 0] == 200


def test_text_is_as_wide_as_said(canvas):
    written = write(canvas, [("bid", (10, 20), (255, 255, 255))], 14)
    columns = np.nonzero((written != canvas).any(axis=(0, 2)))[0]
    assert 10 <= columns.min() <= 12
    assert columns.max() - 10 == pytest.approx(text_width("bid", 14), abs=2)
