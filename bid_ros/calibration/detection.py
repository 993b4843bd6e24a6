"""Where the corners of the board are in an image; or one sentence on why they cannot be told."""

from dataclasses import dataclass
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from bid_ros.calibration.board import DICTIONARIES, Board, markers_of
from bid_ros.calibration.rigid import rigid
from bid_ros.cameras.lens import Lens
from bid_ros.core.errors import CalibrationError
from bid_ros.core.rotation import Array

LEAST: Final = 0.35  # share of the board's corners that an image must show
FIT_PX: Final = 3.0  # median distance of the corners from those of the described board, above which it is another one
OTHERS: Final = 4  # markers of another dictionary that are no accident


@dataclass(frozen=True, eq=False)
class Sighting:
    """The board in one image.

    Attributes:
        numbers: ``(n,)`` numbers of the corners that are seen, rows of :attr:`Board.corners`.
        pixels: ``(n, 2)`` where they are, px; the middle of the first pixel is at 0, 0.
    """

    numbers: NDArray[np.int64]
    pixels: Array


def sight(image: NDArray[np.uint8], board: Board) -> Sighting:
    """Return where the corners of the board are in an rgb image ``(height, width, 3)``.

    Raises:
        CalibrationError: there is no board, another one than the described one, or too little of it to be sharp.
    """
    grey = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2GRAY)
    pixels, numbers, _, markers = cv2.aruco.CharucoDetector(board.charuco).detectBoard(grey)
    total = len(board.corners)
    found = set() if markers is None else {int(number) for number in np.ravel(markers)}
    others = found - set(np.ravel(board.charuco.getIds()).tolist())
    if others:
        raise CalibrationError(
            f"the board has marker {max(others)}; the described board has markers up to "
            f"{board.columns * board.rows // 2 - 1}; "
            f"valid is {board}"
        )
    seen = 0 if numbers is None else len(numbers)
    if not found:
        raise CalibrationError(_without_markers(grey, board))
    if seen < LEAST * total:
        # A sharp picture of other squares has many markers between which no corners fit.
        other = len(found) > 0.6 * board.columns * board.rows / 2
        why = "it is another board, or blurred" if other else "it is blurred by motion, or only a part of it is seen"
        raise CalibrationError(
            f"the board shows {seen} of its {total} corners and {len(found)} markers: {why}; "
            f"valid are {int(np.ceil(LEAST * total))} corners of {board}"
        )
    sighting = Sighting(np.ravel(numbers).astype(np.int64), np.asarray(pixels, np.float64).reshape(-1, 2))
    _check_flat(sighting, board)
    return sighting


def _check_flat(sighting: Sighting, board: Board) -> None:
    """Raise CalibrationError if the corners do not lie as on the described board, whatever the lens."""
    flat = board.corners[sighting.numbers, :2]
    across, _ = cv2.findHomography(flat, sighting.pixels, 0)
    if across is None:
        raise CalibrationError(f"the corners that are seen lie in one line; valid is a view of {board}")
    placed = cv2.perspectiveTransform(flat[:, None], across)[:, 0]
    off = float(np.median(np.linalg.norm(placed - sighting.pixels, axis=1)))
    if off > FIT_PX:
        raise CalibrationError(f"the corners are {off:.1f} px off those of the described board; valid is {board}")


def _without_markers(grey: Any, board: Board) -> str:
    """Return why there is no marker: those of another dictionary, or none at all."""
    named: dict[str, int] = {}
    for name in DICTIONARIES[2::4]:  # of 250; the smaller ones are a part of it
        if name.split("_")[0] != board.dictionary.split("_")[0]:
            _, numbers, _ = cv2.aruco.ArucoDetector(markers_of(name)).detectMarkers(grey)
            named[name.split("_")[0]] = 0 if numbers is None else len(numbers)
    other = max(named, key=lambda name: named[name])
    if named[other] >= OTHERS:
        return f"the board's markers are of a dictionary {other}_...; valid is {board}"
    return f"no board is seen: none, too far, too dark, or blurred by motion; valid is {board}"


def board_pose(sighting: Sighting, board: Board, lens: Lens) -> Array:
    """Return where the board is ``(4, 4)``, board to camera, from one image.

    Raises:
        CalibrationError: no pose fits the corners.
    """
    points, pixels = board.corners[sighting.numbers], lens.straightened(sighting.pixels)
    found, turns, places, _ = cv2.solvePnPGeneric(points, pixels, lens.matrix, None, flags=cv2.SOLVEPNP_IPPE)
    best = None
    for turn, place in zip(turns if found else (), places if found else (), strict=True):
        turn, place = cv2.solvePnPRefineLM(points, pixels, lens.matrix, None, turn, place)
        placed, _ = cv2.projectPoints(points, turn, place, lens.matrix, None)
        off = float(np.sqrt(np.mean((placed[:, 0] - pixels) ** 2)))
        if place[2, 0] > 0 and (best is None or off < best[0]):
            best = off, rigid(cv2.Rodrigues(turn)[0], place[:, 0])
    if best is None:
        raise CalibrationError("no pose of the board fits its corners; valid is a view of the whole board")
    return best[1]
