"""Contact sheets: what every camera of an episode saw over time, on one picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image as PillowImage

from bid_ros.cameras.depth import read_picture
from bid_ros.core.errors import BidError, RecordingError
from bid_ros.curation.catalog import BagEpisode, image_topics
from bid_ros.recording.reader import BagReader, RawMessage
from bid_ros.views.strokes import Color, text_width, write
from bid_ros.views.video import BACKGROUND

Picture = NDArray[np.uint8]
GAP: Final = 6  # px between two tiles
MARGIN: Final = 14
TEXT: Final = 15  # px
COLUMNS: Final = 8
TILE: Final = 150  # px, width of a frame
WHITE: Final = (235, 238, 245)
GREY: Final = (150, 156, 170)
GREEN: Final = (86, 200, 130)
RED: Final = (240, 105, 95)
AMBER: Final = (235, 180, 80)
EMPTY: Final = (34, 38, 48)


def draw_sheet(reader: BagReader, episodes: Sequence[BagEpisode], out: Path) -> None:
    """Write the contact sheets of episodes below each other as one picture.

    Args:
        reader: the open bag.
        episodes: at least one of its episodes.
        out: PNG or JPEG file to write.

    Raises:
        RecordingError: the bag has no images, or is damaged.
        BidError: the name of ``out`` ends in neither .png nor .jpg.
    """
    if out.suffix.lower() not in (".png", ".jpg", ".jpeg"):
        raise BidError(f"picture {out} has an unknown kind; valid are .png and .jpg")
    sheets = [sheet_of(reader, episode) for episode in episodes]
    width = max(sheet.shape[1] for sheet in sheets)
    padded = [_padded(sheet, width, len(sheet)) for sheet in sheets]
    out.parent.mkdir(parents=True, exist_ok=True)
    PillowImage.fromarray(np.concatenate(padded)).save(out, optimize=True)


def sheet_of(reader: BagReader, recorded: BagEpisode, columns: int = COLUMNS, tile: int = TILE) -> Picture:
    """Return the contact sheet of an episode ``(height, width, 3)`` rgb: a row for each camera, a column for each time.

    Only the frames that are shown are held in memory and decoded.

    Raises:
        RecordingError: the bag has no images, or is damaged.
    """
    topics = image_topics(reader)
    if not topics:
        raise RecordingError(f"bag {reader.path} has no images; valid is a topic of type sensor_msgs/msg/Image")
    wanted = np.linspace(recorded.begin_ns, recorded.end_ns, columns).astype(np.int64)
    nearest: dict[tuple[str, int], RawMessage] = {}
    for item in reader.raw(topics, recorded.begin_ns, recorded.end_ns + 1):
        column = int(np.abs(wanted - item.stamp_ns).argmin())
        known = nearest.get((item.topic, column))
        if known is None or abs(wanted[column] - item.stamp_ns) < abs(wanted[column] - known.stamp_ns):
            nearest[item.topic, column] = item
    rows = [_row(reader, nearest, topic, columns, tile) for topic in topics]
    grid = np.concatenate([part for row in rows for part in (row, _strip(row.shape[1], GAP))])[:-GAP]
    return _captioned(grid, recorded, topics, [len(row) for row in rows], nearest, wanted, tile)


def _row(reader: BagReader, nearest: dict[tuple[str, int], RawMessage], topic: str, columns: int, tile: int) -> Picture:
    found = {column: decoded(reader, nearest[topic, column]) for column in range(columns) if (topic, column) in nearest}
    pictures = {column: picture for column, picture in found.items() if picture is not None}
    shape = next((picture.shape for picture in pictures.values()), (tile, tile))
    height = max(1, round(tile * shape[0] / shape[1]))
    parts = []
    for column in range(columns):
        cell = np.full((height, tile, 3), EMPTY, dtype=np.uint8)
        if column in pictures:
            smaller = pictures[column].shape[1] > tile
            way = cv2.INTER_AREA if smaller else cv2.INTER_CUBIC
            cell = np.asarray(cv2.resize(pictures[column], (tile, height), interpolation=way), dtype=np.uint8)
        parts += [cell, np.full((height, GAP, 3), BACKGROUND, dtype=np.uint8)]
    return np.concatenate(parts[:-1], axis=1)


def decoded(reader: BagReader, item: RawMessage) -> Picture | None:
    """Return the rgb image of a message, compressed or not; None if its encoding cannot be shown."""
    try:
        return read_picture(reader.decode(item), item.topic)
    except BidError:
        return None


def _strip(width: int, height: int) -> Picture:
    return np.full((height, width, 3), BACKGROUND, dtype=np.uint8)


def _padded(picture: Picture, width: int, height: int) -> Picture:
    whole = _strip(width, height)
    whole[: picture.shape[0], : picture.shape[1]] = picture
    return whole


def _captioned(
    grid: Picture,
    recorded: BagEpisode,
    topics: Sequence[str],
    heights: Sequence[int],
    nearest: dict[tuple[str, int], RawMessage],
    wanted: NDArray[np.int64],
    tile: int,
) -> Picture:
    """Put the title above, the times below, and the names of the cameras into the first tiles."""
    above, below = MARGIN + 2 * TEXT, 2 * TEXT
    canvas = _strip(grid.shape[1] + 2 * MARGIN, grid.shape[0] + above + below)
    canvas[above : above + grid.shape[0], MARGIN : MARGIN + grid.shape[1]] = grid
    texts: list[tuple[str, tuple[float, float], Color]] = []
    x = float(MARGIN)
    title = f"{recorded.bag.parent.name}/{recorded.bag.name}  episode {recorded.number}"
    facts = f"{recorded.label}   {recorded.duration_s:.1f} s".strip()
    for text, color in ((title, WHITE), (facts, GREY), (recorded.outcome, outcome_color(recorded.success))):
        texts.append((text, (x, MARGIN + 0.4 * TEXT), color))
        x += text_width(text, TEXT) + 1.5 * TEXT
    y = float(above)
    for topic, height in zip(topics, heights, strict=True):
        name = topic.removesuffix("/image").removesuffix("/image_raw").strip("/").removeprefix("camera/")
        left = MARGIN + 5
        shade = (
            slice(int(y) + 2, int(y) + TEXT + 8),
            slice(left - 3, min(int(left + text_width(name, 13) + 4), MARGIN + tile)),
        )
        canvas[shade] = (0.4 * canvas[shade] + 0.6 * np.array(BACKGROUND)).astype(np.uint8)
        texts.append((name, (left, y + 0.75 * TEXT), WHITE))
        y += height + GAP
    for column in range(len(wanted)):
        stamps = [nearest[topic, column].stamp_ns for topic in topics if (topic, column) in nearest]
        text = f"{(stamps[0] - recorded.begin_ns) / 1e9:.2f} s" if stamps else "no frame"
        at = MARGIN + column * (tile + GAP) + (tile - text_width(text, 13)) / 2
        texts.append((text, (at, above + grid.shape[0] + 0.9 * TEXT), GREY if stamps else RED))
    return write(canvas, texts, 13)


def outcome_color(success: bool | None) -> Color:
    """Return the colour of an outcome: green, red, or amber where it is not known."""
    return AMBER if success is None else GREEN if success else RED
