"""The pictures for a person: made while somebody listens, the newest alone, at most so large and so often."""

from __future__ import annotations

import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
from qos import IMAGE
from sensor_msgs.msg import CompressedImage

from bid_ros.cameras.image import decode_image, resize_crop
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.topics import camera_view_topic
from bid_ros.nodes.camera_views import PERIOD_NS, CameraViews, rendered_size
from bid_ros.nodes.topics import publisher

CROP = (280, 0, 720, 720)


def test_the_newest_picture_of_a_camera_is_published_while_somebody_listens(bench):
    now_ns = 5 * PERIOD_NS
    owner = SimpleNamespace(frame_prefix="left/", advertise=partial(publisher, bench.node))
    views = CameraViews(owner, ("third_person", "wrist"), lambda: now_ns)
    assert not views.wanted("wrist"), "nobody listens"
    heard: list[CompressedImage] = []
    bench.node.create_subscription(CompressedImage, camera_view_topic("wrist"), heard.append, IMAGE)
    assert bench.until(lambda: views.wanted("wrist")) and not views.wanted("third_person")
    across, down = np.meshgrid(np.linspace(0, 250, 1280), np.linspace(0, 250, 720))
    image = np.stack([across, down, 255 - across], axis=-1).astype(np.uint8)
    views.offer("wrist", 7, np.zeros_like(image))
    assert not views.wanted("wrist"), "the last one was just now"
    now_ns += PERIOD_NS
    assert views.wanted("wrist")
    views.offer("wrist", 8, image, CROP)
    packing = threading.Thread(target=views.run)
    packing.start()
    try:
        assert bench.until(lambda: heard)
    finally:
        views.close()
        packing.join(10.0)
    assert not packing.is_alive()
    assert [(stamp_ns(message), message.header.frame_id) for message in heard] == [(8, "left/wrist_optical_frame")]
    shown, expected = decode_image(heard[0]).astype(int), resize_crop(image, CROP, (480, 480))
    assert shown.shape == expected.shape and np.abs(shown - expected).mean() < 3


def test_a_rendered_picture_has_the_shape_of_the_policys_and_is_never_smaller():
    sizes = [rendered_size(*size) for size in ((96, 96), (90, 160), (480, 640))]
    assert sizes == [(288, 288), (162, 288), (480, 640)]
