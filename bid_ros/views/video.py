"""Writes frames as GIF, WebP or MP4 with the ffmpeg of ``imageio-ffmpeg``, and puts images side by side."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import cv2
import imageio_ffmpeg  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import BidError
from bid_ros.core.files import replacing

Image = NDArray[np.uint8]

BACKGROUND: Final = (16, 18, 24)
_GIF_STEPS: Final = ((1, 128), (2, 96), (3, 64), (4, 48), (6, 32))  # (every n-th frame, colours), ever smaller
_WEBP_QUALITIES: Final = (92, 80, 65, 40)
# One palette for the whole film and no dithering keep unchanged areas equal, which makes a GIF small.
_GIF_FILTER: Final = (
    "select='not(mod(n,{step}))',split[a][b];[a]palettegen=max_colors={colors}:stats_mode=full[p];"
    "[b][p]paletteuse=dither=none:diff_mode=rectangle"
)


def write_gif(frames: Sequence[Image], path: str | Path, fps: float, max_bytes: int = 3_000_000) -> Path:
    """Write a looping GIF. Reduce frames and colours until it is small enough.

    Args:
        frames: ``(height, width, 3)`` uint8, rgb, all of one size.
        path: file to write. Its folder is created. It is replaced only by a complete file.
        fps: frames per second of ``frames``. Reducing frames keeps the duration.
        max_bytes: wanted size. If the smallest version is still larger, it is kept.

    Returns:
        The path.

    Raises:
        BidError: no frames, frames of different sizes, or a rate that is not possible.
    """
    chains = (_GIF_FILTER.format(step=step, colors=colors) for step, colors in _GIF_STEPS)
    tries = (["-filter_complex", chain, "-fps_mode", "passthrough", "-loop", "0"] for chain in chains)
    with _replacing(frames, path, fps, ".gif") as part:
        _encode_within(max_bytes, frames, part, fps, "gif", tries)
    return Path(path)


def write_webp(frames: Sequence[Image], path: str | Path, fps: float, max_bytes: int = 3_000_000) -> Path:
    """Write a looping WebP animation: smaller than a GIF, and of all colours. Reduce its quality until it fits.

    Arguments, result and errors are those of :func:`write_gif`.
    """
    tries = (["-loop", "0", "-quality", str(quality)] for quality in _WEBP_QUALITIES)
    with _replacing(frames, path, fps, ".webp") as part:
        _encode_within(max_bytes, frames, part, fps, "libwebp_anim", tries)
    return Path(path)


def write_mp4(frames: Sequence[Image], path: str | Path, fps: float) -> Path:
    """Write an H.264 video that browsers play. An odd size loses one row or column.

    Arguments, result and errors are those of :func:`write_gif`.
    """
    options = ["-vf", "crop=trunc(iw/2)*2:trunc(ih/2)*2", "-crf", "23"]
    with _replacing(frames, path, fps, ".mp4") as part:
        _encode(frames, part, fps, "libx264", [*options, "-movflags", "+faststart"])
    return Path(path)


WRITERS: Final[Mapping[str, Callable[..., Path]]] = {".gif": write_gif, ".mp4": write_mp4, ".webp": write_webp}


def writer_of(path: Path) -> Callable[[Sequence[Image], Path, float], Path]:
    """Return the writer of a video, by the name of its file. Raises BidError if there is none."""
    if path.suffix not in WRITERS:
        raise BidError(f"video is to be written to {path}; valid is a name that ends with {', '.join(WRITERS)}")
    return WRITERS[path.suffix]


def compose(*panels: Image, gap: int = 8) -> Image:
    """Return images side by side on a dark background, for example third person with overlay, and wrist.

    Args:
        panels: each ``(height, width, 3)`` uint8, rgb. The tops are aligned. Nothing is resized.
        gap: px between two images.

    Raises:
        BidError: there is no image.
    """
    if not panels:
        raise BidError("there is no picture to compose; valid is one or more")
    height = max(panel.shape[0] for panel in panels)
    framed = [
        cv2.copyMakeBorder(panel, 0, height - len(panel), 0, gap, cv2.BORDER_CONSTANT, value=BACKGROUND)
        for panel in panels
    ]
    whole = np.hstack(framed)
    return whole[:, : whole.shape[1] - gap].astype(np.uint8, copy=False)


@contextmanager
def _replacing(frames: Sequence[Image], path: str | Path, fps: float, suffix: str) -> Iterator[Path]:
    """Check the frames, and yield a file beside ``path`` that replaces it once it is complete."""
    path = Path(path)
    if not len(frames):
        raise BidError(f"there is no frame to write to {path}; valid is one or more")
    shapes = sorted({frame.shape for frame in frames})
    if len(shapes) > 1:
        raise BidError(f"frames of {path} have shapes {shapes[0]} and {shapes[1]}; valid is one shape")
    if not 0 < fps <= 240:
        raise BidError(f"frame rate of {path} is {fps}; valid is above 0 up to 240")
    with replacing(path, suffix) as part:
        yield part


def _encode_within(
    max_bytes: int, frames: Sequence[Image], part: Path, fps: float, codec: str, tries: Iterable[list[str]]
) -> None:
    """Encode with one list of options after the other until the file is small enough."""
    for options in tries:
        _encode(frames, part, fps, codec, options)
        if part.stat().st_size <= max_bytes:
            return


def _encode(frames: Sequence[Image], path: Path, fps: float, codec: str, options: list[str]) -> None:
    writer = imageio_ffmpeg.write_frames(
        str(path),
        (int(frames[0].shape[1]), int(frames[0].shape[0])),
        fps=fps,
        codec=codec,
        pix_fmt_out="pal8" if codec == "gif" else "yuv420p",
        quality=None,
        macro_block_size=1,
        ffmpeg_log_level="error",
        output_params=options,
    )
    writer.send(None)  # starts ffmpeg
    try:
        for frame in frames:
            writer.send(np.ascontiguousarray(frame))
    finally:
        writer.close()
