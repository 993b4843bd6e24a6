"""Live images of a system's cameras in Rerun, each with its crop."""

from collections.abc import Iterable

import numpy as np

from bid_ros.cameras.config import CameraConfig
from bid_ros.cameras.image import Image
from bid_ros.core.extras import extra

with extra("view", "bid cameras --web"):
    import rerun as rr
    import rerun.blueprint as rrb

QUALITY = 75  # of JPEG
CROP = [255, 170, 0]


class CameraPreview:
    """Logs whole images, with what the crop takes drawn as a rectangle. Each camera has a picture with its name.

    Args:
        recording: a Rerun recording.
        cameras: names of those that are shown.
    """

    def __init__(self, recording: "rr.RecordingStream", cameras: Iterable[str]) -> None:
        self._recording = recording
        shown = [rrb.Spatial2DView(origin=f"camera/{name}", name=name) for name in cameras]
        recording.send_blueprint(rrb.Blueprint(rrb.Grid(*shown), collapse_panels=True))

    def show(self, camera: CameraConfig, stamp_ns: int, image: Image) -> None:
        """Show an image ``(height, width, 3)`` rgb of a camera; ``stamp_ns`` is since 1970."""
        where = f"camera/{camera.name}"
        self._recording.set_time("time", timestamp=np.datetime64(stamp_ns, "ns"))
        self._recording.log(where, rr.Image(image).compress(jpeg_quality=QUALITY))
        if camera.crop is not None:
            left, top, width, height = camera.crop
            box = rr.Boxes2D(mins=[[left, top]], sizes=[[width, height]], colors=[CROP], labels=["crop"])
            self._recording.log(f"{where}/crop", box)
