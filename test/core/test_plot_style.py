"""The style of all plots: a decoder's colour, and colours that can be told apart in print."""

from itertools import combinations

import cv2
import numpy as np
import pytest

from bid_ros.core.plot_style import COLORS, DECODERS, clean, decoder_colors, figure_of, legend, lighter, save


def lightness(color: str) -> float:
    """Share of white, as a grey print shows it."""
    red, green, blue = (int(color[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_decoder_has_one_colour_whatever_stands_beside_it():
    alone = decoder_colors(["bid"])["bid"]
    assert decoder_colors(["vanilla", "my_own", "bid"])["bid"] == alone
    assert decoder_colors(["bid:variant=paper", "bid, N = 16"]) == {
        "bid:variant=paper": alone,
        "bid, N = 16": alone,
    }


def test_decoders_without_a_colour_take_what_is_left_in_any_order():
    found = decoder_colors(["bid", "zeta", "alpha"])
    assert len(set(found.values())) == 3
    assert decoder_colors(["alpha", "zeta", "bid"]) == found
    many = decoder_colors([*DECODERS, *(f"own{number}" for number in range(12))])
    assert set(many.values()) <= set(COLORS)


@pytest.mark.parametrize(("one", "other"), combinations(("vanilla", "bid", "ema", "bid+lead"), 2))
def test_the_decoders_that_are_compared_most_differ_in_colour_and_without_it(one, other):
    parts = [[int(DECODERS[name][place : place + 2], 16) for place in (1, 3, 5)] for name in (one, other)]
    assert abs(lightness(DECODERS[one]) - lightness(DECODERS[other])) > 0.04
    assert np.abs(np.subtract(*parts)).max() > 50


def test_a_lighter_colour_ends_in_white():
    assert lighter("#204060", 0.0) == "#204060" and lighter("#204060", 1.0) == "#ffffff"
    assert lightness(lighter("#204060", 0.5)) > lightness("#204060")


def test_a_legend_covers_no_data(tmp_path):
    figure = figure_of(4.0, 3.0)
    axes = figure.add_subplot(xlim=(0, 1), ylim=(0, 1))
    axes.plot([0, 1], [1, 1], color="#ff0000", linewidth=6, label="along the upper edge")
    clean(axes)
    legend(figure, axes)
    save(figure, tmp_path / "deep" / "plot.png")
    picture = cv2.imread(str(tmp_path / "deep" / "plot.png")).astype(int)
    red = (picture[..., 2] > 200) & (picture[..., :2] < 40).all(axis=-1)
    rows = red.sum(axis=1)
    assert rows.max() > 0.7 * picture.shape[1], "the line is not interrupted"
