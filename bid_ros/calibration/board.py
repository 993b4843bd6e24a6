"""The ChArUco board: what it looks like, where its corners are, and a page to print it from."""

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bid_ros.core.errors import CalibrationError
from bid_ros.core.files import replacing
from bid_ros.core.rotation import Array
from bid_ros.core.settings import load_settings, settings
from bid_ros.system.folder import System

FILE: Final = "board.yaml"
DICTIONARIES: Final = tuple(f"{bits}X{bits}_{count}" for bits in (4, 5, 6, 7) for count in (50, 100, 250, 1000))
PAGE_MM: Final = (297.0, 210.0)  # A4, lying
MARGIN_MM: Final = 8.0  # that printers leave white
QUIET: Final = 0.5  # squares of white around the board, without which its outer markers are not found


@settings(error=CalibrationError)
class Board:
    """A ChArUco board. Measure a printed one with a rule: a printer that scales makes every distance wrong.

    Attributes:
        columns, rows: number of squares along x and y.
        square: m, side of a square.
        marker: m, side of a marker, in every white square.
        dictionary: of the markers: bits along a side and number of markers, such as ``4X4_50``.
    """

    columns: Annotated[int, Field(ge=3, le=40)] = 8
    rows: Annotated[int, Field(ge=3, le=40)] = 6
    square: Annotated[float, Field(gt=0.002, lt=0.5)] = 0.03
    marker: Annotated[float, Field(gt=0.001, lt=0.5)] = 0.022
    dictionary: str = "4X4_50"

    def __post_init__(self) -> None:
        if self.dictionary not in DICTIONARIES:
            raise CalibrationError(f"board's dictionary is '{self.dictionary}'; valid are {', '.join(DICTIONARIES)}")
        if not self.marker < self.square:
            raise CalibrationError(f"board's marker is {self.marker} m; valid is less than square, {self.square} m")
        if (needed := self.columns * self.rows // 2) > (count := int(self.dictionary.split("_")[1])):
            raise CalibrationError(f"board needs {needed} markers; valid for dictionary {self.dictionary} is {count}")

    def __str__(self) -> str:
        size = f"{1e3 * self.square:g} mm, markers of {1e3 * self.marker:g} mm of {self.dictionary}"
        return f"{self.columns} x {self.rows} squares of {size}"

    @cached_property
    def charuco(self) -> Any:
        """The board of OpenCV. Its x is to the right, y down, z into the board; the origin is its upper left corner."""
        size = (self.columns, self.rows)
        return cv2.aruco.CharucoBoard(size, self.square, self.marker, markers_of(self.dictionary))

    @cached_property
    def corners(self) -> Array:
        """Corners between the squares ``((columns - 1) * (rows - 1), 3)`` m, in the board's frame."""
        return np.array(self.charuco.getChessboardCorners(), dtype=np.float64)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in m."""
        return self.columns * self.square, self.rows * self.square

    def drawing(self, pixels: int) -> NDArray[np.uint8]:
        """Return the board in grey ``(rows * pixels, columns * pixels)`` uint8, with squares of so many px."""
        picture = self.charuco.generateImage((self.columns * pixels, self.rows * pixels), None, 0, 1)
        return np.asarray(picture, dtype=np.uint8)


def markers_of(dictionary: str) -> Any:
    """Return OpenCV's dictionary of markers, by its name without ``DICT_``."""
    return cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, f"DICT_{dictionary}"))


def board_of(system: System) -> Board:
    """Return the board that a system's ``board.yaml`` describes, else the usual one. Raises CalibrationError."""
    if not any((folder / FILE).is_file() for folder in system.folders):
        return Board()
    return load_settings(Board, system.file(FILE), "board file")


def board_text(board: Board) -> str:
    """Return the content of a board file."""
    return (
        "# The ChArUco board, as `bid calibrate board` prints it. Measure the print, and correct square and marker.\n"
        f"columns: {board.columns}        # squares along x\nrows: {board.rows}\n"
        f"square: {board.square:g}      # m\nmarker: {board.marker:g}     # m\ndictionary: {board.dictionary}\n"
    )


def write_pdf(board: Board, path: Path) -> None:
    """Write a page with the board in its true size, with a rule of 100 mm to check the printer with.

    The page is A4, or as large as the board needs. Squares and markers are areas, not pixels.
    """
    from matplotlib.figure import Figure  # takes a third of a second to import
    from matplotlib.patches import Rectangle

    width, height = (1e3 * side for side in board.size)
    page = tuple(max(own, side + 2 * MARGIN_MM + 12) for own, side in zip(PAGE_MM, (width, height), strict=True))
    left, bottom = (page[0] - width) / 2, (page[1] - height) / 2 + 4
    figure = Figure(figsize=(page[0] / 25.4, page[1] / 25.4))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, page[0]), ylim=(0, page[1]))
    axes.set_axis_off()
    for x, y, wide, high, black in _areas(board):
        corner = (left + x, bottom + height - y - high)
        colour = "black" if black else "white"
        axes.add_patch(Rectangle(corner, wide, high, facecolor=colour, edgecolor="none", linewidth=0))
    axes.plot([left, left + 100], [bottom - 5, bottom - 5], color="black", linewidth=0.5, marker="|", markersize=8)
    text = f"{board}.  The line is 100 mm long: print at 100 %, glue it onto a flat plate, measure it."
    axes.text(left + 104, bottom - 5, text, fontsize=6, va="center")
    with replacing(path, ".pdf") as part:
        figure.savefig(part, format="pdf")


def _areas(board: Board) -> list[tuple[float, float, float, float, bool]]:
    """Return what is drawn, one over the other: left, top, width and height in mm from the upper left, and its ink."""
    square, marker = 1e3 * board.square, 1e3 * board.marker
    black = [
        (column * square, row * square, square, square, True)
        for row in range(board.rows)
        for column in range(board.columns)
        if (row + column) % 2 == 0
    ]
    dictionary = markers_of(board.dictionary)
    modules = int(dictionary.markerSize) + 2
    side, white = marker / modules, []
    for number, corners in zip(board.charuco.getIds().ravel(), board.charuco.getObjPoints(), strict=True):
        x, y = 1e3 * np.asarray(corners)[0, :2]
        black.append((float(x), float(y), marker, marker, True))
        bits = dictionary.generateImageMarker(int(number), modules, borderBits=1)
        white += [
            (x + column * side, y + row * side, side, side, False) for row, column in np.argwhere(np.array(bits) > 127)
        ]
    return black + white
