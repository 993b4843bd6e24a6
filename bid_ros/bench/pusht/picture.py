"""Draws Push-T: the mark, the block and the agent."""

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from bid_ros.bench.pusht.env import PushTState
from bid_ros.bench.pusht.geometry import AGENT_RADIUS, BAR, GOAL, STEM, TABLE, to_table
from bid_ros.core.errors import BidError

TABLE_COLOR: Final = (250, 250, 248)
MARK_COLOR: Final = (168, 226, 176)
BLOCK_COLOR: Final = (104, 116, 134)
AGENT_COLOR: Final = (58, 104, 224)
WALL_COLOR: Final = (200, 204, 208)
SHIFT: Final = 4  # bits of a pixel's fraction in OpenCV's coordinates


def render(state: PushTState, size: int = 192) -> NDArray[np.uint8]:
    """Return a picture ``(size, size, 3)`` uint8, rgb, of the table seen from above.

    Raises:
        BidError: ``size`` is below 16 px.
    """
    if size < 16:
        raise BidError(f"Push-T: a picture of {size} px; valid is 16 px or more")
    picture = np.full((size, size, 3), TABLE_COLOR, dtype=np.uint8)
    scale = size / TABLE
    cv2.rectangle(picture, (0, 0), (size - 1, size - 1), WALL_COLOR, max(1, round(6 * scale)))
    for pose, color in ((np.array(GOAL), MARK_COLOR), (state.block, BLOCK_COLOR)):
        for part in (BAR, STEM):
            cv2.fillPoly(picture, [_fixed(to_table(part, pose), scale)], color, cv2.LINE_AA, SHIFT)
    x, y = _fixed(state.agent, scale).tolist()
    cv2.circle(picture, (x, y), round(AGENT_RADIUS * scale * 2**SHIFT), AGENT_COLOR, cv2.FILLED, cv2.LINE_AA, SHIFT)
    return picture


def _fixed(points: NDArray[np.float64], scale: float) -> NDArray[np.int32]:
    """Return table coordinates as OpenCV's fixed-point pixels: a pixel's centre is a whole number there."""
    return np.round((points * scale - 0.5) * 2**SHIFT).astype(np.int32)
