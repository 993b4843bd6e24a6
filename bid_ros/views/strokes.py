"""Antialiased, translucent lines and text on rgb images."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image as PillowImage
from PIL import ImageDraw, ImageFont

Image = NDArray[np.uint8]
Points = NDArray[np.float64]
Color = tuple[int, int, int]

_SHIFT: Final = 4  # fractional bits of a coordinate
_FAR: Final = 4.0  # points further away than this many image sizes are cut off: OpenCV uses 32 bits


def stroke(
    canvas: Image,
    lines: Sequence[Points],
    color: Color,
    width: float,
    alpha: float | Sequence[float] = 1.0,
    dash: tuple[float, float] | None = None,
) -> None:
    """Draw lines of one colour into ``canvas`` in place. Where they cross, the later one is on top.

    Args:
        canvas: ``(height, width, 3)`` uint8, rgb, C-contiguous.
        lines: each ``(K, 2)`` px from the upper left corner. A NaN point is a gap.
        color: rgb.
        width: width of the lines in px, at least 1.
        alpha: opacity, 0 to 1, of all lines or of each.
        dash: lengths of dash and gap in px; None = full lines.
    """
    alphas = [alpha] * len(lines) if isinstance(alpha, float | int) else alpha
    mask = np.zeros(canvas.shape[:2], dtype=np.uint8)
    for line, opacity in zip(lines, alphas, strict=True):
        for run in _runs(line, canvas.shape):
            pieces = [_fixed_point(piece).reshape(-1, 1, 2) for piece in (_dashes(run, dash) if dash else (run,))]
            cv2.polylines(mask, pieces, False, round(255 * opacity), max(1, round(width)), cv2.LINE_AA, _SHIFT)
    _blend(canvas, mask, color)


def dots(canvas: Image, points: Points, color: Color, radii: Sequence[float], alpha: float = 1.0) -> None:
    """Draw filled circles around points ``(K, 2)`` in px with their radii in px, in place. NaN points are skipped."""
    mask = np.zeros(canvas.shape[:2], dtype=np.uint8)
    for (x, y), radius, near in zip(_fixed_point(points), radii, _near(points, canvas.shape), strict=True):
        if near:
            size = round(radius * (1 << _SHIFT))
            cv2.circle(mask, (int(x), int(y)), size, round(255 * alpha), -1, cv2.LINE_AA, _SHIFT)
    _blend(canvas, mask, color)


def write(canvas: Image, texts: Sequence[tuple[str, tuple[float, float], Color]], size: float) -> Image:
    """Return ``canvas`` with texts, ``size`` px high. (x, y) px is the left middle of each text."""
    picture = PillowImage.fromarray(canvas)
    draw = ImageDraw.Draw(picture)
    for text, (x, y), color in texts:
        draw.text((x, y), text, fill=color, font=_font(size), anchor="lm")
    return np.asarray(picture)


def text_width(text: str, size: float) -> float:
    """Return the width of a text in px."""
    return float(_font(size).getlength(text))


@lru_cache(maxsize=8)
def _font(size: float) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size)  # Pillow contains this font: none has to be installed
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font


def _near(points: Points, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return which points can be drawn: finite and not too far away."""
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(points) < _FAR * max(shape)).all(axis=1))


def _runs(line: Points, shape: tuple[int, ...]) -> Iterator[Points]:
    """Split a line where its points cannot be drawn."""
    start = 0
    for end in [*np.flatnonzero(~_near(line, shape)), len(line)]:
        if end - start > 1:
            yield line[start:end]
        start = end + 1


def _fixed_point(points: Points) -> NDArray[np.int32]:
    """Return coordinates as OpenCV draws them: fixed point, whole numbers in the middle of a pixel."""
    return np.nan_to_num(np.round((points - 0.5) * (1 << _SHIFT))).astype(np.int32)


def _dashes(line: Points, dash: tuple[float, float]) -> Iterator[Points]:
    """Cut a line into dashes of equal arc length."""
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
    drawn, left_out = dash
    for start in np.arange(0.0, along[-1], drawn + left_out):
        end = min(start + drawn, along[-1])
        inside = along[(along > start) & (along < end)]
        at = np.concatenate([[start], inside, [end]])
        yield np.stack([np.interp(at, along, line[:, axis]) for axis in (0, 1)], axis=1)


def _blend(canvas: Image, mask: Image, color: Color) -> None:
    """Mix ``color`` into the canvas by the mask. Only the covered pixels cost time."""
    covered = np.flatnonzero(mask.ravel() != 0)
    weight = mask.ravel()[covered][:, None].astype(np.float32) / 255.0
    pixels = canvas.reshape(-1, 3)  # a view: the canvas is contiguous
    below = pixels[covered]
    pixels[covered] = np.round(below + weight * (np.array(color, dtype=np.float32) - below)).astype(np.uint8)
