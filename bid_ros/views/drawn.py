"""What is drawn in space: lines, boxes and words, each with the name of the part that it shows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rgb = tuple[int, int, int]
Rgba = tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines in space.

    Attributes:
        name: of the part.
        lines: ``(number, points, 3)`` in m, base frame.
        colors: ``(number, 4)`` red, green, blue and opacity, 0 to 255.
        width: m.
        lasting_s: for how long they are shown; None: until the next ones.
    """

    name: str
    lines: Array
    colors: NDArray[np.uint8]
    width: float
    lasting_s: float | None = None


@dataclass(frozen=True)
class Box:
    """A box along the axes of the base frame, from corner ``low`` to corner ``high`` in m."""

    name: str
    low: tuple[float, float, float]
    high: tuple[float, float, float]
    color: Rgba


@dataclass(frozen=True)
class Words:
    """A text at a place in m, base frame; its letters are ``height`` m high."""

    name: str
    text: str
    position: tuple[float, float, float]
    height: float
    color: Rgba


Part = Lines | Box | Words


def plain_lines(name: str, lines: Array, color: Rgba, width: float, lasting_s: float | None = None) -> Lines:
    """Return lines ``(number, points, 3)`` of one colour."""
    return Lines(name, lines, np.tile(np.array(color, np.uint8), (len(lines), 1)), width, lasting_s)
