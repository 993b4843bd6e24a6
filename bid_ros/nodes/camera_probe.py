"""Watches the topics of cameras and vectors for a few seconds, for ``bid check``. Nothing is published."""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from rclpy.executors import SingleThreadedExecutor
from rclpy.utilities import get_rmw_implementation_identifier
from sensor_msgs.msg import Image

from bid_ros.cameras.config import CameraConfig
from bid_ros.cameras.image import ImageFitter, decode_image
from bid_ros.core.errors import BidError, CameraError, ObservationError
from bid_ros.core.stamps import sample_ns, stamp_ns
from bid_ros.core.task import Feature, Task
from bid_ros.core.topics import IMAGES, TOPICS, recorded_topics
from bid_ros.nodes.client import visiting
from bid_ros.nodes.topics import message_type, profile
from bid_ros.observing.features import extract
from bid_ros.system.check.cameras import Seen, fitter_of


def middleware() -> str:
    """Return the name of the middleware in use."""
    return str(get_rmw_implementation_identifier())


def watch_topics(cameras: Sequence[CameraConfig], task: Task, namespace: str = "") -> dict[str, Seen]:
    """Return what arrived, by the name of the camera or vector.

    Args:
        cameras: cameras that are topics.
        task: what is observed; its vectors are watched too, see :func:`vectors_of`.
        namespace: namespace in which the nodes would subscribe.

    Raises:
        TaskError: the topic of a vector is not valid.
    """
    vectors, topics = vectors_of(task), recorded_topics(task)
    sources = {camera.name: camera.address for camera in cameras} | {item.name: item.topic for item in vectors}
    seen = {name: Seen() for name in sources}
    with visiting("bid_check", namespace) as node, SingleThreadedExecutor() as executor:
        executor.add_node(node)
        for camera in cameras:
            take = partial(_take, camera, seen[camera.name], fitter_of(camera, task))
            node.create_subscription(Image, camera.address, take, profile(IMAGES.qos))
        for feature in vectors:
            take = partial(_take_vector, feature, seen[feature.name])
            try:
                kind = message_type(feature.type)
            except BidError as error:
                seen[feature.name].problem = str(error)
            else:
                node.create_subscription(kind, feature.topic, take, profile(topics[feature.topic].qos))
        begun_ns = time.monotonic_ns()
        while not all(item.watched(begun_ns) for item in seen.values()):
            executor.spin_once(timeout_sec=0.05)
        for name, topic in sources.items():
            found = node.get_publishers_info_by_topic(topic)
            types = ", ".join(sorted({item.topic_type for item in found}))
            seen[name].source = f", {len(found)} publishers{' of ' * bool(types)}{types}"
    return seen


def vectors_of(task: Task) -> list[Feature]:
    """Return the observed vectors whose topics are there before the system runs: not those of its own nodes."""
    return [item for item in task.observation if item.kind == "vector" and item.topic not in TOPICS]


def _take_vector(feature: Feature, seen: Seen, message: Any) -> None:
    try:
        seen.arrived(sample_ns(message, time.time_ns()), f"{extract(feature, message).size} numbers")
    except ObservationError as error:
        seen.problem = str(error)


def _take(camera: CameraConfig, seen: Seen, fitter: ImageFitter, message: Image) -> None:
    try:
        seen.add(fitter, decode_image(message, camera.address), stamp_ns(message), message.encoding)
    except CameraError as error:
        seen.problem = str(error)
