import numpy as np
import rerun as rr

from bid_ros.cameras.config import CameraConfig
from bid_ros.views.camera_preview import CameraPreview


class Recording:
    """Keeps what is logged, and checks it as Rerun does."""

    def __init__(self):
        self.logged, self.recording = {}, rr.RecordingStream("test")

    def set_time(self, *named, **time):
        self.recording.set_time(*named, **time)

    def send_blueprint(self, blueprint):
        self.views = blueprint.root_container.contents
        self.recording.send_blueprint(blueprint)

    def log(self, where, what):
        self.logged[where] = what
        self.recording.log(where, what)


def test_an_image_is_shown_whole_with_its_crop_as_a_rectangle():
    recording, image = Recording(), np.zeros((48, 64, 3), np.uint8)
    preview = CameraPreview(recording, ("wrist", "left"))
    assert [(view.name, view.origin) for view in recording.views] == [
        ("wrist", "camera/wrist"),
        ("left", "camera/left"),
    ]
    preview.show(CameraConfig("wrist", "uvc", "0", (8, 4, 40, 40)), 1_800_000_000_000_000_000, image)
    preview.show(CameraConfig("left", "uvc", "1"), 1_800_000_000_000_000_000, image)
    assert list(recording.logged) == ["camera/wrist", "camera/wrist/crop", "camera/left"]
    box = recording.logged["camera/wrist/crop"]
    np.testing.assert_allclose(box.centers.as_arrow_array().to_pylist(), [[28, 24]])
    np.testing.assert_allclose(box.half_sizes.as_arrow_array().to_pylist(), [[20, 20]])
