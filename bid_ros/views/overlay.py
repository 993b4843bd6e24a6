"""Draws a decision over a camera image: all candidate chunks, the kept ones, and the decision.

A line connects the tool positions of a chunk, projected through the camera.

============== ======================================================================================
line           meaning
============== ======================================================================================
white, thin    strong candidate that was trimmed
green, thin    strong candidate that was kept; the better its score, the more opaque
red, faint     sample of the weak policy
violet, dashed previous decision from now on
yellow, bold   decision, one dot for each action, smaller into the future
============== ======================================================================================
"""

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from bid_ros.cameras.model import CameraModel
from bid_ros.views.strokes import Color, Image, Points, dots, stroke, text_width, write

Array = NDArray[np.float64]

TRIMMED: Final = (255, 255, 255)
KEPT: Final = (60, 235, 140)
WEAK: Final = (255, 84, 84)
PREVIOUS: Final = (190, 90, 255)
SELECTED: Final = (255, 216, 40)
CASING: Final = (16, 18, 24)
PANEL: Final = (16, 18, 24)
TEXT: Final = (238, 240, 245)
MUTED: Final = (168, 174, 186)


def draw_decision(
    image: Image,
    camera: CameraModel,
    strong: Array,
    selected: Array,
    previous: Array | None = None,
    kept: NDArray[np.bool_] | None = None,
    weak: Array | None = None,
    text: str = "",
    scores: Array | None = None,
    height: int = 480,
) -> Image:
    """Return the picture, enlarged, with a decision drawn over it and a legend below it.

    Args:
        image: ``(rows, columns, 3)`` uint8, rgb. Its size may differ from that of the camera model.
        camera: model of the camera that took it.
        strong: ``(N, H, 3)`` tool positions of the candidates, m, base frame; N may be 0.
        selected: ``(H, 3)`` tool positions of the decision; empty = no decision yet.
        previous: ``(P, 3)`` rest of the previous decision; None or empty = none.
        kept: ``(N,)`` which candidates were kept; None or empty = all.
        weak: ``(M, H, 3)`` samples of the weak policy; None or empty = none.
        text: one line below the picture, for example ``bid   decision 41 ms   success 2 of 3``.
        scores: ``(N,)`` minimised value, NaN where trimmed; None or empty = all equal.
        height: height of the enlarged picture in px, without the panel below it.

    Returns:
        ``(height + panel, width, 3)`` uint8, rgb. Both sizes are even, because video encoders need that.
    """
    height = 2 * round(height / 2)
    width = 2 * round(height * image.shape[1] / image.shape[0] / 2)
    canvas = cv2.resize(image, (width, height), interpolation=cv2.INTER_CUBIC).astype(np.uint8, copy=False)
    unit = height / 480
    scale = np.array([width / camera.width, height / camera.height])

    def pixels(points: Array) -> Points:
        return np.asarray(camera.project(points)[0] * scale)

    mask = np.ones(len(strong), dtype=bool) if kept is None or len(kept) == 0 else np.asarray(kept, dtype=bool)
    lines = pixels(np.asarray(strong))
    faint = [] if weak is None or len(weak) == 0 else list(pixels(np.asarray(weak)))
    stroke(canvas, faint, WEAK, 1.2 * unit, 0.36)
    stroke(canvas, lines[~mask], TRIMMED, 1.2 * unit, 0.5)
    opacities = _opacities(scores, mask)
    best_last = np.argsort(opacities)
    stroke(canvas, lines[mask][best_last], KEPT, 2.0 * unit, opacities[best_last].tolist())
    has_previous = previous is not None and len(previous) > 1
    if has_previous:
        _draw_previous(canvas, pixels(np.asarray(previous)), unit)
    _draw_selected(canvas, pixels(np.asarray(selected)), unit)
    entries = [("selected", SELECTED)] if len(selected) else []
    entries += [("candidates" if mask.all() else "kept", KEPT)] if mask.any() else []
    entries += [("trimmed", TRIMMED)] if not mask.all() else []
    entries += [("weak", WEAK)] if faint else []
    entries += [("previous", PREVIOUS)] if has_previous else []
    return np.concatenate([canvas, _panel(width, unit, text, entries)])


def _opacities(scores: Array | None, mask: NDArray[np.bool_]) -> Array:
    """Return the opacity of each kept candidate by the rank of its score. The smallest score is the most opaque."""
    count = int(mask.sum())
    if scores is None or len(scores) == 0 or count < 2:
        return np.full(count, 0.65)
    order = np.argsort(np.argsort(np.nan_to_num(np.asarray(scores, dtype=np.float64)[mask], nan=np.inf)))
    return np.asarray(0.9 - 0.6 * order / (count - 1), dtype=np.float64)


def _draw_previous(canvas: Image, line: Points, unit: float) -> None:
    dash = (9.0 * unit, 6.0 * unit)
    stroke(canvas, [line], CASING, 5.0 * unit, 0.35, dash)
    stroke(canvas, [line], PREVIOUS, 3.0 * unit, 0.95, dash)


def _draw_selected(canvas: Image, line: Points, unit: float) -> None:
    """Draw a bold line with a dark border, which is visible on any background, and one dot for each action."""
    stroke(canvas, [line], CASING, 7.0 * unit, 0.55)
    stroke(canvas, [line], SELECTED, 4.0 * unit)
    radii = np.linspace(3.8, 2.4, len(line)) * unit
    dots(canvas, line, CASING, (radii + 1.4 * unit).tolist(), 0.8)
    dots(canvas, line, SELECTED, radii.tolist())


def _panel(width: int, unit: float, text: str, entries: list[tuple[str, Color]]) -> Image:
    """Draw the panel with the text line and the legend."""
    size, margin = 15.0 * unit, 14.0 * unit
    panel = np.full((2 * round(32 * unit), width, 3), PANEL, dtype=np.uint8)
    x, y = margin, 46.0 * unit
    texts = [(text, (margin, 20.0 * unit), TEXT)]
    for name, color in entries:
        dash = (7.0 * unit, 4.0 * unit) if name == "previous" else None
        stroke(panel, [np.array([[x, y], [x + 18 * unit, y]])], color, 3.0 * unit, 1.0, dash)
        texts.append((name, (x + 24 * unit, y), MUTED))
        x += 24 * unit + text_width(name, 0.9 * size) + 16 * unit
    panel = np.array(write(panel, texts[1:], 0.9 * size))
    return write(panel, texts[:1], size)
