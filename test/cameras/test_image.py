from array import array
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from bid_ros.cameras.image import ImageFitter, decode_image, encode_image, resize_crop
from bid_ros.core.errors import CameraError

RGB = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
ALPHA = np.full((5, 7, 1), 9, dtype=np.uint8)
LAYOUTS = {
    "rgb8": RGB,
    "bgr8": RGB[..., ::-1],
    "rgba8": np.concatenate([RGB, ALPHA], axis=2),
    "bgra8": np.concatenate([RGB[..., ::-1], ALPHA], axis=2),
}


def message(pixels, layout, padding=0, **changes):
    height, width = pixels.shape[:2]
    rows = np.ascontiguousarray(pixels).reshape(height, -1)
    padded = np.pad(rows, ((0, 0), (0, padding)), constant_values=77)
    fields = {
        "height": height,
        "width": width,
        "encoding": layout,
        "is_bigendian": 0,
        "step": padded.shape[1],
        "data": array("B", padded.tobytes()),
    }
    return SimpleNamespace(**{**fields, **changes})


@pytest.mark.parametrize("padding", [0, 3])
@pytest.mark.parametrize("encoding", LAYOUTS)
def test_decodes_every_encoding_with_and_without_row_padding(encoding, padding):
    image = decode_image(message(LAYOUTS[encoding], encoding, padding))
    np.testing.assert_array_equal(image, RGB)
    assert image.dtype == np.uint8
    assert image.flags.c_contiguous


def test_mono_becomes_grey():
    grey = RGB[..., :1]
    np.testing.assert_array_equal(decode_image(message(grey, "mono8", 2)), np.repeat(grey, 3, axis=2))


@pytest.mark.parametrize("kind", [bytes, bytearray, lambda data: np.frombuffer(data, np.uint8)])
def test_data_may_be_any_buffer(kind):
    np.testing.assert_array_equal(decode_image(message(RGB, "rgb8", data=kind(RGB.tobytes()))), RGB)


def test_an_unpadded_rgb8_message_is_not_copied():
    fields = message(RGB, "rgb8")
    assert np.shares_memory(decode_image(fields), np.frombuffer(fields.data, np.uint8))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"encoding": "16UC1"}, "encoding '16UC1'; valid are rgb8, bgr8, rgba8, bgra8, mono8"),
        ({"encoding": ""}, "encoding ''"),
        ({"height": 0}, "7x0 px"),
        ({"width": 0}, "0x5 px"),
        ({"step": 20}, "rows of 20 bytes; valid for 7 px of rgb8 is 21 or more"),
        ({"data": array("B", bytes(104))}, "104 bytes; valid for 5 rows of 21 bytes is 105"),
        ({"data": array("B")}, "publishes 0 bytes"),
        ({"height": 6}, "105 bytes; valid for 6 rows"),
    ],
)
def test_refuses_what_is_no_picture_and_names_the_camera(changes, words):
    with pytest.raises(CameraError, match="camera '/wrist/image'") as caught:
        decode_image(message(RGB, "rgb8", **changes), "/wrist/image")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_encode_and_decode_return_the_picture():
    fields = encode_image(RGB[:, ::-1])
    assert isinstance(fields["data"], array) and fields["data"].typecode == "B"
    np.testing.assert_array_equal(decode_image(SimpleNamespace(**fields)), RGB[:, ::-1])


@pytest.mark.parametrize("wrong", [RGB[..., 0], RGB.astype(float), np.zeros((0, 4, 3), np.uint8)])
def test_encode_refuses_what_is_no_picture(wrong):
    with pytest.raises(CameraError, match="valid is \\(height, width, 3\\) uint8"):
        encode_image(wrong)


def test_resize_averages_areas():
    image = np.zeros((4, 8, 3), np.uint8)
    image[:2, :2] = 200
    image[0, 2] = 100
    small = resize_crop(image, None, (2, 4, 3))
    np.testing.assert_array_equal(small[..., 0], [[200, 25, 0, 0], [0, 0, 0, 0]])


def test_crop_is_left_top_width_height_before_the_resize():
    np.testing.assert_array_equal(resize_crop(RGB, (2, 1, 4, 3), (3, 4)), RGB[1:4, 2:6])


def test_a_fitting_picture_passes_unchanged_and_uncopied():
    assert np.shares_memory(resize_crop(RGB, None, RGB.shape), RGB)


@pytest.mark.parametrize("crop", [(-1, 0, 2, 2), (0, 0, 8, 2), (0, 3, 2, 3), (0, 0, 0, 2)])
def test_refuses_a_crop_outside_the_picture(crop):
    with pytest.raises(CameraError, match="leaves the image of 7x5 px"):
        resize_crop(RGB, crop, (2, 2))


def test_a_camera_that_changes_its_size_is_refused_by_name():
    fitter = ImageFitter("wrist", None, (2, 3, 3))
    assert fitter.fit(RGB).shape == (2, 3, 3)
    with pytest.raises(CameraError, match="camera 'wrist' now delivers 7x4 px; valid is 7x5 px"):
        fitter.fit(RGB[:4])
    assert fitter.fit(RGB).shape == (2, 3, 3)


def test_the_fitter_names_the_camera_whose_crop_leaves_the_picture():
    with pytest.raises(CameraError, match="camera 'wrist': crop"):
        ImageFitter("wrist", (0, 0, 8, 8), (2, 3, 3)).fit(RGB)


def compressed(text, pixels, end=".png"):
    """A CompressedImage whose file holds these pixels, bgr as OpenCV has it."""
    return SimpleNamespace(format=text, data=cv2.imencode(end, pixels)[1].tobytes())


@pytest.mark.parametrize("text", ["rgb8; png compressed bgr8", "png", "yuv422_yuy2; png compressed bgr8"])
def test_a_compressed_image_is_judged_by_its_format(text):
    np.testing.assert_array_equal(decode_image(compressed(text, RGB[..., ::-1])), RGB)


def test_a_driver_that_compresses_rgb_as_bgr_says_so():
    np.testing.assert_array_equal(decode_image(compressed("rgb8; png compressed rgb8", RGB)), RGB)


def test_a_compressed_grey_image_is_grey():
    grey = decode_image(compressed("mono8; png compressed ", RGB[..., 0]))
    np.testing.assert_array_equal(grey, np.repeat(RGB[..., :1], 3, axis=2))


@pytest.mark.parametrize(
    ("encoding", "red", "blue"),
    [("rggb", (0, 0), (1, 1)), ("bggr", (1, 1), (0, 0)), ("gbrg", (1, 0), (0, 1)), ("grbg", (0, 1), (1, 0))],
)
def test_a_mosaic_gets_its_colours_raw_and_compressed(encoding, red, blue):
    colour = (200, 100, 50)
    mosaic = np.full((8, 10), colour[1], np.uint8)
    mosaic[red[0] :: 2, red[1] :: 2], mosaic[blue[0] :: 2, blue[1] :: 2] = colour[0], colour[2]
    name = f"bayer_{encoding}8"
    for one in (
        message(mosaic[..., None], name),
        compressed(f"{name}; png compressed ", mosaic),
        compressed(name, mosaic),
    ):
        np.testing.assert_array_equal(decode_image(one), np.broadcast_to(colour, (8, 10, 3)))
    deep, deeper = mosaic.astype(np.uint16) * 257, f"bayer_{encoding}16"
    for order, one in (("<", deep.astype("<u2")), (">", deep.astype(">u2"))):
        raw = message(one.view(np.uint8).reshape(8, 10, 2), deeper)
        raw.is_bigendian = order == ">"
        np.testing.assert_array_equal(decode_image(raw), np.broadcast_to(colour, (8, 10, 3)))
    np.testing.assert_array_equal(decode_image(compressed(f"{deeper}; png compressed ", deep)), decode_image(raw))
    of_colours = compressed(f"{name}; png compressed bgr8", RGB[..., ::-1])
    np.testing.assert_array_equal(decode_image(of_colours), RGB)


@pytest.mark.parametrize(
    ("text", "pixels", "words"),
    [
        ("16UC1; compressedDepth png", np.full((4, 4), 1000, np.uint16), "format '16UC1; compressedDepth png'; valid"),
        ("16UC1; png compressed ", np.full((4, 4), 1000, np.uint16), "format '16UC1; png compressed '; valid are PNG"),
        ("png", np.full((4, 4), 1000, np.uint16), "'png' with 16 bits a channel; valid is 8 bits a channel: distances"),
        ("rgb16; png compressed bgr16", RGB.astype(np.uint16), "format 'rgb16; png compressed bgr16'; valid are PNG"),
        ("bayer_rggb8; png compressed ", RGB, "8 bits a channel, and colours; valid is one channel of 8 bits"),
        ("bayer_rggb16; png compressed ", np.ones((4, 4), np.uint8), "8 bits a channel; valid is one channel of 16"),
    ],
)
def test_refuses_a_format_that_is_not_understood(text, pixels, words):
    with pytest.raises(CameraError, match="camera '/wrist/image'") as caught:
        decode_image(compressed(text, pixels), "/wrist/image")
    assert words in str(caught.value) and "\n" not in str(caught.value)
