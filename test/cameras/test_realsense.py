import pytest

from bid_ros.cameras.realsense import RealSenseCamera
from bid_ros.core.errors import CameraError


def test_opening_without_the_library_or_the_device_is_one_sentence():
    with pytest.raises(CameraError, match=r"needs the extra 'realsense'|does not start") as caught:
        RealSenseCamera("no such serial").open()
    assert "'no such serial'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_reading_before_open_is_refused_and_close_is_harmless():
    camera = RealSenseCamera("1")
    with pytest.raises(CameraError, match="is not open"):
        camera.read()
    camera.close()
