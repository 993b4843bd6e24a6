"""Distances from image messages of depth cameras, in metres (REP 118, and the headers of ``compressedDepth``)."""

from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from bid_ros.cameras.image import format_of, rows_of, unpacked
from bid_ros.core.errors import CameraError

Depth = NDArray[np.float32]

MILLIMETRES: Final = "16UC1"
METRES: Final = "32FC1"
# Encoding -> type of a pixel.
ENCODINGS: Final = {MILLIMETRES: "u2", METRES: "f4"}
_PNG: Final = b"\x89PNG"
_HEADER: Final = 12  # bytes before the PNG of compressedDepth: its kind, and two numbers that scale METRES


def is_depth(message: Any) -> bool:
    """Whether an image message, raw or compressed, says that its pixels are distances."""
    return (format_of(message)[0] if hasattr(message, "format") else message.encoding) in ENCODINGS


def decode_depth(message: Any, camera: str = "depth") -> Depth:
    """Return the distances of a depth image.

    Args:
        message: fields of ``sensor_msgs/Image`` with encoding ``16UC1`` (mm) or ``32FC1`` (m); or of
            ``sensor_msgs/CompressedImage`` with format ``16UC1; compressedDepth png``, ``32FC1; compressedDepth png``
            or ``16UC1; png compressed``.
        camera: name or topic, for the error.

    Returns:
        ``(height, width)`` float32, m; NaN where nothing was measured.

    Raises:
        CameraError: the encoding or the compression is another one, or the data are not of the size that they say.
    """
    if hasattr(message, "format"):
        return _decompressed(message, camera)
    if message.encoding not in ENCODINGS:
        raise CameraError(
            f"depth camera '{camera}' publishes encoding '{message.encoding}'; valid are {', '.join(ENCODINGS)}"
        )
    kind = np.dtype(ENCODINGS[message.encoding]).newbyteorder(">" if message.is_bigendian else "<")
    rows = np.ascontiguousarray(rows_of(message, kind.itemsize, camera))
    return _metres(rows.view(kind))


def _metres(values: NDArray[Any]) -> Depth:
    """Return mm (integers) or m (floats) as m; nothing was measured at 0, and at what is not finite."""
    scale = np.float32(1e-3 if values.dtype.kind == "u" else 1.0)
    metres = values.astype(np.float32) * scale
    metres[~((metres > 0) & np.isfinite(metres))] = np.nan
    return np.asarray(metres, dtype=np.float32)


def _decompressed(message: Any, camera: str) -> Depth:
    encoding, way = format_of(message)
    data = bytes(message.data)
    begin = 0 if data.startswith(_PNG) else _HEADER
    known = way in ("compressedDepth", "compressedDepth png") or (encoding == MILLIMETRES and way == "png compressed")
    if encoding not in ENCODINGS or not known:
        raise CameraError(
            f"depth camera '{camera}' publishes format '{message.format}'; "
            f"valid are '{MILLIMETRES}; compressedDepth png', '{METRES}; compressedDepth png' and "
            f"'{MILLIMETRES}; png compressed'"
        )
    pixels = unpacked(np.frombuffer(data[begin:], np.uint8), cv2.IMREAD_UNCHANGED)
    scaled = encoding == METRES
    if pixels is None or pixels.ndim != 2 or pixels.dtype != np.uint16 or (scaled and not begin):
        raise CameraError(
            f"depth camera '{camera}' publishes {len(data)} bytes of format '{message.format}', which are no whole "
            f"image of it; valid is a PNG of 16 bits and one channel{', after its header' * scaled}"
        )
    if not scaled:
        return _metres(pixels)
    # The steps of the inverse distance are equal, so that near ones are finer.
    low, high = np.frombuffer(data, "<f4", count=2, offset=4)
    with np.errstate(divide="ignore", invalid="ignore"):
        metres = low / (pixels.astype(np.float32) - high)
    metres[pixels == 0] = np.nan
    return _metres(metres)
