"""Distances from image messages of depth cameras (REP 118, and the headers of ``compressedDepth``).

An observation holds them as whole mm in 16 bits, which is what ``16UC1`` messages, PNG and data sets hold without loss.
"""

from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from bid_ros.cameras.image import Image, decode_image, format_of, rows_of, unpacked
from bid_ros.core.errors import CameraError
from bid_ros.core.feature import Feature

Depth = NDArray[np.float32]
Millimetres = NDArray[np.uint16]

MILLIMETRES: Final = "16UC1"
METRES: Final = "32FC1"
# Encoding -> type of a pixel.
ENCODINGS: Final = {MILLIMETRES: "u2", METRES: "f4"}
SHOWN_MM: Final = 2000  # mm, distance of what is shown black
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


def millimetres(distances: Depth) -> Millimetres:
    """Return distances ``(height, width)`` in m as whole mm ``(height, width, 1)``; 0: not measured, or too far."""
    whole = np.nan_to_num(np.round(np.float64(1e3) * distances), nan=0.0)
    return np.where(whole > np.iinfo(np.uint16).max, 0, whole).astype(np.uint16)[..., None]


def read_image(feature: Feature, message: Any, camera: str = "image") -> NDArray[Any]:
    """Return the pixels of an image message as a feature holds them: uint8 rgb, or uint16 mm of one of distances.

    Args:
        feature: image of a task.
        message, camera: as :func:`decode_depth` and :func:`bid_ros.cameras.image.decode_image`.

    Raises:
        CameraError: as these; colours are no distances, and distances no colours.
    """
    return decode_image(message, camera) if feature.depth is None else millimetres(decode_depth(message, camera))


def read_picture(message: Any, camera: str = "image") -> Image:
    """Return the rgb image of any image message, to be looked at: distances are grey, what is near is light."""
    return shown(millimetres(decode_depth(message, camera))) if is_depth(message) else decode_image(message, camera)


def shown(image: NDArray[Any]) -> Image:
    """Return an observed image as rgb, to be looked at: mm ``(..., 1)`` as grey, from white at 0 on; else itself."""
    if image.dtype == np.uint8:
        return image
    grey = 255 - 255 * np.minimum(image.astype(np.uint32), SHOWN_MM) // SHOWN_MM
    return np.repeat(np.where(image == 0, 0, grey).astype(np.uint8), 3, axis=-1)
