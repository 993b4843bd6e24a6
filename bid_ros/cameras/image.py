"""Converts image messages to arrays and back without ``cv_bridge``; crops and resizes the images of every camera.

It works on any object with the fields of ``sensor_msgs/Image`` or ``sensor_msgs/CompressedImage``, and with NumPy 1.26.
Images of distances are in :mod:`bid_ros.cameras.depth`.
"""

from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from bid_ros.core.errors import CameraError

Image = NDArray[np.uint8]
Pixels = NDArray[Any]
"""An image, or distances ``(height, width, 1)`` uint16 in mm."""
Crop = tuple[int, int, int, int]
STEP: Final = 65535 // 255  # 16 bits for one of 8, as cv_bridge has it
HALF: Final = STEP // 2


def _demosaiced(code: int, pixels: Pixels) -> Image:
    """Return the rgb of a mosaic ``(height, width)`` of 8 or 16 bits. Of 16, the full range becomes that of 8."""
    colours: Pixels = np.asarray(cv2.cvtColor(np.ascontiguousarray(pixels), code))
    if colours.dtype == np.uint8:
        return colours
    return np.asarray((colours.astype(np.uint32) + HALF) // STEP, dtype=np.uint8)


# ROS names a mosaic by its first two rows, OpenCV by the four pixels that begin at the second row and column.
_BAYER: Final = {
    "bayer_rggb8": cv2.COLOR_BayerBG2RGB,
    "bayer_bggr8": cv2.COLOR_BayerRG2RGB,
    "bayer_gbrg8": cv2.COLOR_BayerGR2RGB,
    "bayer_grbg8": cv2.COLOR_BayerGB2RGB,
}
# Encoding -> bytes per pixel, and the function from an (H, W, channels) array to rgb.
_ENCODINGS: Final[dict[str, tuple[int, Callable[[Image], Image]]]] = {
    "rgb8": (3, lambda pixels: pixels),
    "bgr8": (3, lambda pixels: pixels[..., ::-1]),
    "rgba8": (4, lambda pixels: pixels[..., :3]),
    "bgra8": (4, lambda pixels: pixels[..., 2::-1]),
    "mono8": (1, lambda pixels: np.broadcast_to(pixels, (*pixels.shape[:2], 3))),
    **{name: (1, partial(_demosaiced, code)) for name, code in _BAYER.items()},
}
_BAYER16: Final = {f"{name.removesuffix('8')}16": code for name, code in _BAYER.items()}
ENCODINGS: Final = (*_ENCODINGS, *_BAYER16)
# Channels and type of an observed image -> encoding of its message.
_PICTURES: Final = {(3, "uint8"): "rgb8", (1, "uint16"): "16UC1"}


def decode_image(message: Any, camera: str = "image") -> Image:
    """Return the rgb image of an image message.

    Args:
        message: anything with ``height``, ``width``, ``encoding``, ``step`` and ``data`` as in ``sensor_msgs/Image``.
            ``is_bigendian`` matters to mosaics of 16 bits alone. Or anything with ``format`` and ``data`` as in
            ``sensor_msgs/CompressedImage``: PNG, JPEG and what else OpenCV reads. What its pixels mean is judged by
            ``format``.
        camera: name or topic, for the error.

    Returns:
        ``(height, width, 3)`` uint8, C-contiguous. An unpadded rgb8 message is not copied: the array is
        a view of its data.

    Raises:
        CameraError: the encoding is unknown (16-bit depth is), the size is zero, or the data are not of that size, or
            cannot be decompressed.
    """
    if hasattr(message, "format"):
        return _decompressed(message, camera)
    if message.encoding in _BAYER16:
        kind = np.dtype("u2").newbyteorder(">" if message.is_bigendian else "<")
        values = np.ascontiguousarray(rows_of(message, kind.itemsize, camera)).view(kind)
        return _demosaiced(_BAYER16[message.encoding], values.astype(np.uint16))
    if message.encoding not in _ENCODINGS:
        raise CameraError(
            f"camera '{camera}' publishes encoding '{message.encoding}'; valid are {', '.join(ENCODINGS)}"
        )
    depth, to_rgb = _ENCODINGS[message.encoding]
    return np.ascontiguousarray(to_rgb(rows_of(message, depth, camera).reshape(message.height, message.width, depth)))


def rows_of(message: Any, depth: int, camera: str) -> Image:
    """Return the bytes ``(height, width * depth)`` of a raw image message, without padding.

    Args:
        message: as in ``sensor_msgs/Image``.
        depth: bytes of one pixel.
        camera: name or topic, for the error.

    Raises:
        CameraError: the size is zero, or the data are not of that size.
    """
    height, width, step = int(message.height), int(message.width), int(message.step)
    if height < 1 or width < 1:
        raise CameraError(f"camera '{camera}' publishes an image of {width}x{height} px; valid is 1x1 or more")
    if step < width * depth:
        raise CameraError(
            f"camera '{camera}' publishes rows of {step} bytes; "
            f"valid for {width} px of {message.encoding} is {width * depth} or more"
        )
    data = np.frombuffer(message.data, dtype=np.uint8)
    if data.size != height * step:
        raise CameraError(
            f"camera '{camera}' publishes {data.size} bytes; valid for {height} rows of {step} bytes is {height * step}"
        )
    return data.reshape(height, step)[:, : width * depth]


def format_of(message: Any) -> tuple[str, str]:
    """Return the encoding that a compressed image had before, and how it is compressed, of its ``format``.

    ``rgb8; jpeg compressed bgr8`` gives ``rgb8`` and ``jpeg compressed bgr8``. A plain ``jpeg`` says no encoding.
    """
    encoding, separator, way = (part.strip() for part in str(message.format).partition(";"))
    return (encoding, way) if separator or encoding in ENCODINGS else ("", encoding)


def unpacked(data: NDArray[np.uint8], flags: int) -> NDArray[Any] | None:
    """Return the pixels of a PNG, a JPEG or another file in memory, as OpenCV does; None: it is no whole image."""
    try:
        return cv2.imdecode(data, flags) if data.size else None
    except cv2.error:  # its head promises more pixels than OpenCV takes
        return None


def _decompressed(message: Any, camera: str) -> Image:
    """Return the rgb image of a compressed one. Raises CameraError."""
    encoding, way = format_of(message)
    in_colours = way.endswith(("compressed bgr8", "compressed rgb8"))  # whatever it was before
    if "compressedDepth" in way or (encoding and encoding not in ENCODINGS and not in_colours):
        raise CameraError(
            f"camera '{camera}' publishes format '{message.format}'; valid are PNG and JPEG of {', '.join(ENCODINGS)}"
        )
    data = np.frombuffer(message.data, dtype=np.uint8)
    mosaic = None if in_colours else (_BAYER | _BAYER16).get(encoding)
    bits = 16 if mosaic is not None and encoding in _BAYER16 else 8
    flags = cv2.IMREAD_UNCHANGED if mosaic is not None else cv2.IMREAD_COLOR | cv2.IMREAD_ANYDEPTH
    pixels = unpacked(data, flags)
    if pixels is None:
        raise CameraError(
            f"camera '{camera}' publishes {data.size} bytes of format '{message.format}', which are no whole image; "
            "valid are PNG and JPEG"
        )
    coloured = mosaic is not None and pixels.ndim != 2
    if 8 * pixels.dtype.itemsize != bits or coloured:
        valid = "8 bits a channel: distances are no colours" if mosaic is None else f"one channel of {bits} bits"
        found = f"{8 * pixels.dtype.itemsize} bits a channel{', and colours' * coloured}"
        raise CameraError(f"camera '{camera}' publishes format '{message.format}' with {found}; valid is {valid}")
    if mosaic is not None:
        return _demosaiced(mosaic, pixels)
    # Some drivers compress rgb as if it were bgr, and say so.
    return np.ascontiguousarray(pixels if way.endswith("rgb8") else pixels[..., ::-1])


def encode_image(image: Pixels) -> dict[str, Any]:
    """Return the message fields of an image, for ``sensor_msgs.msg.Image(**fields)``: ``rgb8``, or ``16UC1`` in mm.

    ``data`` is an ``array.array('B')``, which rclpy keeps as it is. So a message of 256x256 px takes one copy and 12
    us, as with ``bytes``, which rclpy converts to such an array. rclpy checks a NumPy array or a list value by value,
    which takes 8,500 us.

    Args:
        image: ``(height, width, 3)`` uint8, rgb; or distances ``(height, width, 1)`` uint16, mm. It need not be
            contiguous.

    Raises:
        CameraError: the array is not such an image.
    """
    _check_picture(image)
    data = array("B")
    rows = np.ascontiguousarray(image, dtype=image.dtype.newbyteorder("<"))
    data.frombytes(rows.data.cast("B"))
    height, width = int(image.shape[0]), int(image.shape[1])
    return {
        "height": height,
        "width": width,
        "encoding": _PICTURES[image.shape[2], image.dtype.name],
        "is_bigendian": 0,
        "step": rows.strides[0],
        "data": data,
    }


def resize_crop(image: Pixels, crop: Crop | None, shape: Sequence[int]) -> Pixels:
    """Crop, then resize once with OpenCV's area interpolation. Images of robot and twin cameras pass through here.

    Of distances the nearest pixel is taken: a mean of two sides of an edge is a place where nothing is.

    Args:
        image: ``(height, width, 3)`` uint8, rgb; or distances ``(height, width, 1)`` uint16, mm.
        crop: (left, top, width, height) in px of ``image``; None = the whole image. A crop with the aspect ratio of
            ``shape`` keeps squares square.
        shape: ``(height, width)`` or ``(height, width, channels)`` of the result.

    Returns:
        ``(shape[0], shape[1], channels)`` of the same type, C-contiguous; ``image`` itself if nothing has to be done.

    Raises:
        CameraError: the array is not an image, or the crop leaves it.
    """
    _check_picture(image)
    if crop is not None:
        left, top, width, height = crop
        if not (0 <= left < left + width <= image.shape[1] and 0 <= top < top + height <= image.shape[0]):
            raise CameraError(
                f"crop {list(crop)} leaves the image of {image.shape[1]}x{image.shape[0]} px; "
                "valid is [left, top, width, height] inside it"
            )
        image = image[top : top + height, left : left + width]
    if image.shape[:2] != tuple(shape[:2]):
        size = (int(shape[1]), int(shape[0]))
        way = cv2.INTER_AREA if image.dtype == np.uint8 else cv2.INTER_NEAREST_EXACT
        image = cv2.resize(np.ascontiguousarray(image), size, interpolation=way).reshape(size[1], size[0], -1)
    return np.ascontiguousarray(image)


class ImageFitter:
    """Fits the images of one camera to the task. Refuses a camera that changes the size of its images.

    Another size during a run often means another field of view, which a resize would hide.

    Args:
        camera: name or topic, for the error.
        crop: (left, top, width, height) in px, or None.
        shape: ``(height, width, channels)`` of the result.
    """

    def __init__(self, camera: str, crop: Crop | None, shape: Sequence[int]) -> None:
        self._camera = camera
        self._crop = crop
        self._shape = tuple(shape)
        self._delivered: tuple[int, ...] | None = None

    def fit(self, image: Pixels) -> Pixels:
        """Return :func:`resize_crop` of an image.

        Raises:
            CameraError: as :func:`resize_crop`, or the image has another size than the camera's first one.
        """
        try:
            fitted = resize_crop(image, self._crop, self._shape)
        except CameraError as error:
            raise CameraError(f"camera '{self._camera}': {error}") from error
        if self._delivered is None:
            self._delivered = image.shape
        if image.shape != self._delivered:
            raise CameraError(
                f"camera '{self._camera}' now delivers {image.shape[1]}x{image.shape[0]} px; "
                f"valid is {self._delivered[1]}x{self._delivered[0]} px, the size it began with"
            )
        return fitted


def _check_picture(image: Any) -> None:
    array_like = np.asarray(image)
    known = array_like.ndim == 3 and (array_like.shape[2], array_like.dtype.name) in _PICTURES
    if not known or 0 in array_like.shape:
        raise CameraError(
            f"image has shape {array_like.shape} and type {array_like.dtype}; valid is (height, width, 3) uint8, or "
            "(height, width, 1) uint16"
        )
