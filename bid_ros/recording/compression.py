"""Compression of recorded images: ``sensor_msgs/Image`` becomes ``sensor_msgs/CompressedImage``, byte by byte."""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

import cv2
from numpy.typing import NDArray

from bid_ros.cameras.depth import MILLIMETRES, decode_depth, is_depth, millimetres
from bid_ros.cameras.image import decode_image
from bid_ros.core.errors import CameraError, RecordingError

CODECS: Final = "raw, png (without loss), jpeg or jpeg:QUALITY with a quality of 1 to 100"
QUALITY: Final = 95
Encode = Callable[[bytes], bytes]


@dataclass(frozen=True)
class ImageCodec:
    """How recorded images are compressed.

    Attributes:
        name: ``png`` or ``jpeg``.
        quality: of JPEG.
    """

    name: str
    quality: int = QUALITY

    def encode(self, data: bytes) -> bytes:
        """Return the ``CompressedImage`` (CDR) of an ``Image`` (CDR). Distances, in mm, become PNG without loss.

        Raises:
            CameraError: it is no image, or one of an encoding that cannot be compressed.
        """
        header, message = split_image(data)
        pixels: NDArray[Any]
        if is_depth(message):  # JPEG cannot hold 16 bits, and loses what is next to an edge
            pixels, name, form = millimetres(decode_depth(message)), "png", f"{MILLIMETRES}; png compressed"
        else:
            pixels, name = decode_image(message)[..., ::-1], self.name
            form = f"rgb8; {name} compressed bgr8"
        options = [cv2.IMWRITE_JPEG_QUALITY, self.quality]
        if name == "png":
            # The noise of a camera leaves nothing to look for: this way is the fastest, and the files are smaller.
            options = [cv2.IMWRITE_PNG_COMPRESSION, 1, cv2.IMWRITE_PNG_STRATEGY, cv2.IMWRITE_PNG_STRATEGY_RLE]
        good, packed = cv2.imencode(".png" if name == "png" else ".jpg", pixels, options)
        if not good:
            raise CameraError(f"an image of {message.width}x{message.height} px cannot become {name}")
        return _joined(header, form, packed.tobytes())


def find_codec(text: str) -> ImageCodec | None:
    """Return the codec of a name such as ``jpeg:90``; None of ``raw``. Raises RecordingError for another text."""
    if text == "raw":
        return None
    match = re.fullmatch(r"(png)|(jpeg)(?::(\d{1,3}))?", text)
    quality = int(match[3]) if match and match[3] else QUALITY
    if match is None or not 1 <= quality <= 100:
        raise RecordingError(f"image_codec is '{text}'; valid are {CODECS}")
    return ImageCodec(match[1] or match[2], quality)


def split_image(data: bytes) -> tuple[bytes, Any]:
    """Return the header of an ``Image`` (CDR), as it is, and its other fields; the pixels are not copied.

    Raises:
        CameraError: the bytes are no image.
    """
    order = "<" if data[1:2] == b"\x01" else ">"
    try:
        header_end = _after_text(data, 12, order)
        height, width = struct.unpack_from(f"{order}II", data, at := _aligned(header_end))
        encoding_end = _after_text(data, at + 8, order)
        encoding = data[at + 12 : encoding_end - 1].decode()
        step, size = struct.unpack_from(f"{order}II", data, at := _aligned(encoding_end + 1))
    except (struct.error, UnicodeDecodeError) as error:
        raise CameraError(f"a message of {len(data)} bytes is no image: {error}") from error
    pixels = memoryview(data)[at + 8 : at + 8 + size]
    fields = SimpleNamespace(
        height=height, width=width, encoding=encoding, is_bigendian=data[encoding_end], step=step, data=pixels
    )
    return data[:header_end], fields


def _joined(header: bytes, form: str, packed: bytes) -> bytes:
    """Return the ``CompressedImage`` (CDR) that has a header, a format and data."""
    order = "<" if header[1:2] == b"\x01" else ">"
    text = form.encode() + b"\0"
    begin = header + bytes(_aligned(len(header)) - len(header)) + struct.pack(f"{order}I", len(text)) + text
    return begin + bytes(_aligned(len(begin)) - len(begin)) + struct.pack(f"{order}I", len(packed)) + packed


def _after_text(data: bytes, at: int, order: str) -> int:
    """Return the place after a text whose length is at ``at``."""
    (length,) = struct.unpack_from(f"{order}I", data, at)
    return at + 4 + int(length)


def _aligned(at: int) -> int:
    """Return the next place of a number of four bytes. CDR counts from the end of its mark, which has four."""
    return at + -at % 4
