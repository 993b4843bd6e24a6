"""Watches camera topics for a few seconds, for ``bid check``. Nothing is published."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.utilities import get_rmw_implementation_identifier
from sensor_msgs.msg import Image

from bid_ros.cameras import CameraConfig, ImageFitter, decode_image
from bid_ros.core.errors import CameraError
from bid_ros.core.stamps import stamp_ns
from bid_ros.core.task import Task
from bid_ros.nodes.qos import DRIVER_IMAGE
from bid_ros.system.check.cameras import Seen, fitter_of


def middleware() -> str:
    """Return the name of the middleware in use."""
    return str(get_rmw_implementation_identifier())


def watch_topics(cameras: Sequence[CameraConfig], task: Task, namespace: str = "") -> dict[str, Seen]:
    """Subscribe to the topics of the cameras like the camera node in a namespace. Return what arrived, by camera."""
    context = Context()
    rclpy.init(context=context)
    node = Node("bid_check", context=context, namespace=namespace)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    seen = {camera.name: Seen() for camera in cameras}
    try:
        for camera in cameras:
            take = partial(_take, camera, seen[camera.name], fitter_of(camera, task))
            node.create_subscription(Image, camera.address, take, DRIVER_IMAGE)
        begun_ns = time.monotonic_ns()
        while not all(item.watched(begun_ns) for item in seen.values()):
            executor.spin_once(timeout_sec=0.05)
        for camera in cameras:
            seen[camera.name].source = f", {node.count_publishers(camera.address)} publishers"
    finally:
        executor.shutdown()
        node.destroy_node()
        rclpy.shutdown(context=context)
    return seen


def _take(camera: CameraConfig, seen: Seen, fitter: ImageFitter, message: Image) -> None:
    try:
        seen.add(fitter, decode_image(message, camera.address), stamp_ns(message), message.encoding)
    except CameraError as error:
        seen.problem = str(error)
