import struct
import zlib
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from bid_ros.cameras.depth import decode_depth, is_depth, millimetres, read_image, read_picture
from bid_ros.cameras.image import encode_image, resize_crop
from bid_ros.core.errors import CameraError
from bid_ros.core.feature import Feature

MILLIMETRES = np.array([[1000, 0, 1], [65535, 250, 3000]], np.uint16)
METRES = np.array([[1.0, np.nan, 0.001], [65.535, 0.25, 3.0]], np.float32)


# 60,000 x 60,000 px are more than OpenCV takes.
HUGE = b"\x89PNG\r\n\x1a\n" + b"".join(
    struct.pack(">I", len(data) - 4) + data + struct.pack(">I", zlib.crc32(data))
    for data in (b"IHDR" + struct.pack(">IIBBBBB", 60_000, 60_000, 16, 0, 0, 0, 0), b"IDAT" + zlib.compress(bytes(9)))
)


def raw(pixels, encoding, padding=0, big=False, **changes):
    rows = np.ascontiguousarray(pixels.astype(pixels.dtype.newbyteorder(">" if big else "<")))
    rows = np.pad(rows.view(np.uint8).reshape(len(rows), -1), ((0, 0), (0, padding)), constant_values=7)
    fields = {"height": len(rows), "width": pixels.shape[1], "encoding": encoding, "is_bigendian": int(big)}
    return SimpleNamespace(**{**fields, "step": rows.shape[1], "data": rows.tobytes(), **changes})


def compressed(text, pixels, header=b""):
    return SimpleNamespace(format=text, data=header + cv2.imencode(".png", pixels)[1].tobytes())


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("padding", [0, 3])
def test_raw_depth_is_metres_and_nothing_measured_is_nan(padding, big):
    np.testing.assert_allclose(decode_depth(raw(MILLIMETRES, "16UC1", padding, big)), METRES, rtol=1e-6)
    floats = np.where(np.isnan(METRES), np.inf, METRES)
    found = decode_depth(raw(floats, "32FC1", padding, big))
    np.testing.assert_array_equal(found, METRES)
    assert found.dtype == np.float32


@pytest.mark.parametrize(
    "one",
    [
        compressed("16UC1; compressedDepth png", MILLIMETRES, bytes(12)),
        compressed("16UC1; compressedDepth", MILLIMETRES, bytes(12)),
        compressed("16UC1; compressedDepth png", MILLIMETRES),
        compressed("16UC1; png compressed ", MILLIMETRES),
    ],
)
def test_compressed_millimetres_are_metres(one):
    assert is_depth(one)
    np.testing.assert_allclose(decode_depth(one), METRES, rtol=1e-6)


def test_compressed_metres_are_scaled_by_their_header():
    # As compressed_depth_image_transport does with its defaults: 10 m at most, quantisation 100.
    low = 100.0 * 101.0
    high = 1.0 - low / 10.0
    distances = np.array([[0.5, 1.0], [4.0, 9.9]], np.float32)
    steps = np.round(low / distances + high).astype(np.uint16)
    steps[1, 1] = 0
    one = compressed("32FC1; compressedDepth png", steps, struct.pack("<iff", 0, low, high))
    found = decode_depth(one)
    np.testing.assert_allclose(found[0], distances[0], rtol=1e-3)
    assert abs(found[1, 0] - 4.0) < 0.001 and np.isnan(found[1, 1])


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (raw(MILLIMETRES, "mono16"), "encoding 'mono16'; valid are 16UC1, 32FC1"),
        (raw(MILLIMETRES, "16UC1", step=4), "rows of 4 bytes; valid for 3 px of 16UC1 is 6 or more"),
        (raw(MILLIMETRES, "16UC1", data=bytes(11)), "11 bytes; valid for 2 rows of 6 bytes is 12"),
        (
            compressed("16UC1; compressedDepth rvl", MILLIMETRES),
            "format '16UC1; compressedDepth rvl'; valid are '16UC1",
        ),
        (compressed("rgb8; png compressed bgr8", MILLIMETRES), "valid are '16UC1; compressedDepth png'"),
        (compressed("16UC1; compressedDepth png", MILLIMETRES.astype(np.uint8), bytes(12)), "no whole image"),
        (compressed("32FC1; compressedDepth png", MILLIMETRES), "16 bits and one channel, after its header"),
        (SimpleNamespace(format="16UC1; compressedDepth png", data=bytes(40)), "publishes 40 bytes"),
        (SimpleNamespace(format="16UC1; compressedDepth png", data=b""), "publishes 0 bytes"),
        (SimpleNamespace(format="16UC1; compressedDepth png", data=HUGE), "no whole image"),
    ],
)
def test_refuses_what_is_no_depth_image(one, words):
    with pytest.raises(CameraError, match="camera '/wrist/depth'") as caught:
        decode_depth(one, "/wrist/depth")
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_every_distance_of_16_bits_comes_back_from_its_message():
    whole = np.arange(1 << 16, dtype=np.uint16).reshape(256, 256, 1)
    message = SimpleNamespace(**encode_image(whole))
    assert (message.encoding, message.step) == ("16UC1", 512)
    np.testing.assert_array_equal(read_image(Feature("d", "image", whole.shape, depth=(0.1, 2.0)), message), whole)
    assert millimetres(np.array([[65.6, 0.0004, np.nan]], np.float32)).ravel().tolist() == [0, 0, 0]


def test_distances_are_no_colours_and_colours_no_distances():
    with pytest.raises(CameraError, match="encoding '16UC1'; valid are rgb8"):
        read_image(Feature("wrist", "image", (2, 3, 3)), raw(MILLIMETRES, "16UC1"))
    with pytest.raises(CameraError, match="encoding 'rgb8'; valid are 16UC1, 32FC1"):
        read_image(Feature("wrist", "image", (2, 3, 1), depth=(0.1, 2.0)), raw(MILLIMETRES, "rgb8"))


def test_a_smaller_image_has_no_distance_that_was_not_measured():
    wide = np.where(np.arange(8) < 4, 500, 1500).astype(np.uint16)[None, :, None].repeat(6, 0)
    small = resize_crop(wide, (1, 0, 6, 6), (3, 3, 1))
    assert small.shape == (3, 3, 1) and small.dtype == np.uint16 and set(small.ravel()) == {500, 1500}


def test_distances_are_shown_lighter_the_nearer_they_are():
    grey = read_picture(raw(np.array([[0, 100, 1000, 5000]], np.uint16), "16UC1"))[0]
    assert grey.tolist() == [[0] * 3, [243] * 3, [128] * 3, [0] * 3]
