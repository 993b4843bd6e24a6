"""The board's axes drawn over the images: a person sees at once whether a calibration is right."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from bid_ros.calibration.board import Board
from bid_ros.calibration.shots import Shot
from bid_ros.cameras.lens import Lens
from bid_ros.core.files import replacing
from bid_ros.core.rotation import Array

WIDTH: Final = 480  # px of one image in the picture
OUTLIER: Final = (255, 60, 50)
OUTLINE: Final = (60, 230, 90)


def write_picture(path: Path, seen: Sequence[tuple[Shot, Array, bool]], board: Board, lens: Lens) -> None:
    """Write a PNG of all images, with outline and axes of the board where the calibration puts it.

    Args:
        path: to write.
        seen: images, poses ``(4, 4)`` of the board in the camera, and whether they took part; the others are red.
        board: as it is described.
        lens: of the camera.
    """
    tiles = [_tile(shot, pose, used, board, lens) for shot, pose, used in seen]
    across = math.ceil(math.sqrt(len(tiles)))
    tiles += [np.zeros_like(tiles[0])] * (-len(tiles) % across)
    rows = [np.hstack(tiles[first : first + across]) for first in range(0, len(tiles), across)]
    with replacing(path, ".png") as part:
        cv2.imwrite(str(part), np.vstack(rows)[:, :, ::-1])


def _tile(shot: Shot, pose: Array, used: bool, board: Board, lens: Lens) -> NDArray[np.uint8]:
    scale = WIDTH / shot.image.shape[1]
    image = np.ascontiguousarray(cv2.resize(shot.image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA))
    width, height = board.size
    axis = 2.5 * board.square
    points = np.array(
        [[0, 0, 0], [width, 0, 0], [width, height, 0], [0, height, 0], [axis, 0, 0], [0, axis, 0], [0, 0, -axis]]
    )
    turn, place = cv2.Rodrigues(pose[:3, :3])[0], pose[:3, 3]
    pixels, _ = cv2.projectPoints(points, turn, place, lens.matrix, np.array(lens.distortion))
    places = np.round(pixels[:, 0] * scale).astype(int)
    cv2.polylines(image, [places[:4]], True, OUTLINE if used else OUTLIER, 2, cv2.LINE_AA)
    for end, colour in zip(places[4:], ((255, 60, 50), (60, 200, 60), (70, 110, 255)), strict=True):
        cv2.line(image, places[0].tolist(), end.tolist(), colour, 2, cv2.LINE_AA)
    text = shot.name if used else f"{shot.name}: outlier"
    for colour, thick in (((0, 0, 0), 3), ((255, 255, 255) if used else OUTLIER, 1)):
        cv2.putText(image, text, (8, 20), cv2.FONT_HERSHEY_SIMPLEX, 0.5, colour, thick, cv2.LINE_AA)
    return image
