"""Watches the topics of cameras and vectors for a few seconds. Nothing is published."""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from rclpy.executors import SingleThreadedExecutor
from rclpy.utilities import get_rmw_implementation_identifier

from bid_ros.cameras.config import CameraConfig
from bid_ros.cameras.depth import decode_depth, is_depth, read_image
from bid_ros.cameras.image import ImageFitter, decode_image
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import BidError, CameraError, ObservationError
from bid_ros.core.feature import Feature
from bid_ros.core.stamps import sample_ns, stamp_ns
from bid_ros.core.task import Task
from bid_ros.core.topics import COMPRESSED_IMAGE_TYPE, IMAGE_TYPE, IMAGES, TOPICS, recorded_topics, source_topic
from bid_ros.nodes.client import visiting
from bid_ros.nodes.interrupt import interrupt_after
from bid_ros.nodes.topics import message_type, profile
from bid_ros.observing.features import extract
from bid_ros.system.check.cameras import WATCH_S, Seen, feature_of, fitter_of

FOUND_S = 2.0  # in which the publishers of a graph are found


def middleware() -> str:
    """Return the name of the middleware in use."""
    return str(get_rmw_implementation_identifier())


def watch_topics(
    cameras: Sequence[CameraConfig],
    task: Task,
    namespace: str = "",
    watch_s: float = WATCH_S,
    vectors: Sequence[Feature] | None = None,
) -> dict[str, Seen]:
    """Return what arrived, by the name of the camera or vector.

    Args:
        cameras: cameras that are topics.
        task: what is observed.
        namespace: namespace in which the nodes would subscribe.
        watch_s: how long, from the first message of a topic on, s.
        vectors: that are watched too; None: :func:`vectors_of`.

    Raises:
        TaskError: the topic of a vector is not valid.
    """
    vectors, topics = vectors_of(task) if vectors is None else vectors, recorded_topics(task)
    sources = {camera.name: camera.address for camera in cameras} | {item.name: item.topic for item in vectors}
    seen = {name: Seen() for name in sources}
    with visiting("bid_check", namespace) as node, SingleThreadedExecutor() as executor:
        executor.add_node(node)
        for camera in cameras:
            take = partial(_take, camera, feature_of(camera, task), seen[camera.name], fitter_of(camera, task))
            kind = message_type(source_topic(camera.address).type_name)
            node.create_subscription(kind, camera.address, take, profile(IMAGES.qos))
        for feature in vectors:
            take = partial(_take_vector, feature, seen[feature.name])
            try:
                kind = message_type(feature.type)
            except BidError as error:
                seen[feature.name].problem = str(error)
            else:
                node.create_subscription(kind, feature.topic, take, profile(topics[feature.topic].qos))
        begun_ns = time.monotonic_ns()
        while not all(item.watched(begun_ns, watch_s) for item in seen.values()):
            with interrupt_after():
                executor.spin_once(timeout_sec=0.05)
        for name, topic in sources.items():
            found = node.get_publishers_info_by_topic(topic)
            types = ", ".join(sorted({item.topic_type for item in found}))
            seen[name].source = f", {len(found)} publishers{' of ' * bool(types)}{types}"
    return seen


def watch_images(namespace: str = "", watch_s: float = WATCH_S) -> dict[str, Seen]:
    """Return what arrived on every image topic of the graph, by its name.

    Args:
        namespace: of the node that listens; topics of all namespaces are found.
        watch_s: how long, from the first image of a topic on, s.
    """
    seen: dict[str, Seen] = {}
    with visiting("bid_cameras", namespace) as node, SingleThreadedExecutor() as executor:
        executor.add_node(node)
        begun_ns = time.monotonic_ns()
        # Publishers are found one after the other.
        while time.monotonic_ns() - begun_ns < FOUND_S * NANOSECONDS or not all(
            item.watched(begun_ns, watch_s) for item in seen.values()
        ):
            for name, types in node.get_topic_names_and_types():
                kind = next((item for item in types if item in (IMAGE_TYPE, COMPRESSED_IMAGE_TYPE)), "")
                if kind and name not in seen and node.count_publishers(name):
                    seen[name] = Seen()
                    take = partial(_take_any, name, seen[name])
                    node.create_subscription(message_type(kind), name, take, profile(IMAGES.qos))
            with interrupt_after():
                executor.spin_once(timeout_sec=0.05)
    return dict(sorted(seen.items()))


def vectors_of(task: Task) -> list[Feature]:
    """Return the observed vectors whose topics are there before the system runs: not those of its own nodes."""
    return [item for item in task.observation if item.kind == "vector" and item.topic not in TOPICS]


def _take_vector(feature: Feature, seen: Seen, message: Any) -> None:
    try:
        seen.arrived(sample_ns(message, time.time_ns()), f"{extract(feature, message).size} numbers")
    except ObservationError as error:
        seen.problem = str(error)


def _take(camera: CameraConfig, feature: Feature, seen: Seen, fitter: ImageFitter, message: Any) -> None:
    try:
        image = read_image(feature, message, camera.address)
        seen.add(fitter, image, stamp_ns(message), message.format if hasattr(message, "format") else message.encoding)
    except CameraError as error:
        seen.problem = str(error)


def _take_any(name: str, seen: Seen, message: Any) -> None:
    """Note an image of any kind. Only the first one is decoded."""
    try:
        seen.arrived(stamp_ns(message), seen.picture or _picture(name, message))
    except CameraError as error:
        seen.problem = str(error)


def _picture(name: str, message: Any) -> str:
    """Return size and encoding of an image, and the distances of a depth image, as text. Raises CameraError."""
    kind = message.format if hasattr(message, "format") else message.encoding
    if not is_depth(message):
        height, width, _ = decode_image(message, name).shape
        return f"{width}x{height} {kind}"
    depth = decode_depth(message, name)
    measured = depth[np.isfinite(depth)]
    where = f", {measured.min():.2f} to {measured.max():.2f} m" if measured.size else ", nothing measured"
    return f"{depth.shape[1]}x{depth.shape[0]} {kind}{where}"
