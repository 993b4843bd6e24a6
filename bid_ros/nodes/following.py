"""Listens to a running system from a terminal. Nothing of the system waits for whoever listens."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from threading import Event
from typing import Any

from rclpy.executors import ExternalShutdownException

from bid_ros.core.clocks import read_clocks
from bid_ros.core.topics import IMAGE_TYPE, Topic
from bid_ros.nodes.base import PATIENT_DEPTH
from bid_ros.nodes.client import visiting
from bid_ros.nodes.executor import FastExecutor
from bid_ros.nodes.topics import message_type, profile

WAKE_S = 0.05  # messages are taken together, this often


def follow(
    topics: Mapping[str, Topic],
    add: Callable[[str, int, Any], None],
    namespace: str = "",
    ended: Event | None = None,
    images: bool = True,
) -> None:
    """Give every message of a system to ``add(topic, stamp_ns, message)``, until ``ended`` is set or rclpy ends.

    Topics need not exist yet. A node that ends and comes back is heard again.

    Args:
        topics: to listen to, by their names in bid_ros.
        add: takes each message and the time at which it arrived, ns since the epoch.
        namespace: of the system, with a leading slash; empty for the root.
        ended: ends it, from another thread.
        images: whether images are decoded; if not, ``add`` gets their bytes.
    """
    ended = ended or Event()
    with visiting(f"bid_follow_{os.getpid()}", namespace) as node:
        executor = FastExecutor()

        def take(name: str, message: Any) -> None:
            now = read_clocks()
            add(name, now.wall_ns - (now.steady_ns - executor.arrived_ns), message)

        for name, topic in topics.items():
            raw = topic.type_name == IMAGE_TYPE and not images
            qos = profile(topic.qos, max(topic.qos.depth, PATIENT_DEPTH))
            listening = node.create_subscription(message_type(topic.type_name), name, partial(take, name), qos, raw=raw)
            listening.patient = True
        node.create_timer(WAKE_S, lambda: None)
        executor.add_node(node)
        with suppress(ExternalShutdownException):
            while not ended.is_set() and node.context.ok():
                executor.spin_once(timeout_sec=WAKE_S)
        executor.shutdown()
