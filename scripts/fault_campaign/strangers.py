"""Strangers on the graph of a running system: a second node publishes what moves the arm."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np
import rclpy
from rclpy.context import Context
from rclpy.node import Node

from bid_msgs.msg import Grant
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.topics import GRANT, POLICY_CHUNK, SAFETY_CHUNK, SAFETY_STATE, TOPICS
from bid_ros.nodes.ros_messages import duration_message, set_time
from bid_ros.nodes.topics import publisher
from fault_campaign.fault import Fault, Robot, Scene

LOOK_S: Final = 0.04  # between two looks of the arm node at who publishes
MATCHED_S: Final = 2.0  # for the middleware to introduce a stranger
LASTS_S: Final = 2.0
PERIOD_S: Final = 0.1
AWAY_M: Final = 0.3  # that a hostile chunk leads the tool away until its last action
HOUR_S: Final = 3600.0
Change = Callable[[Any], None]


def away(chunk: Any) -> None:
    """Lead the tool away along x, from its way to 0.3 m beside it."""
    rows = np.reshape(np.array(chunk.actions), (chunk.steps, chunk.dims))
    rows[:, 0] += np.linspace(0.0, AWAY_M, chunk.steps)
    chunk.actions = rows.ravel().tolist()


def not_finite(chunk: Any) -> None:
    """Put NaN into every action."""
    chunk.actions = [float("nan")] * len(chunk.actions)


def same(chunk: Any) -> None:
    """Ask for what the last honest chunk asked."""


def strangers() -> Iterator[Fault]:
    """Yield every attack from the graph of the system itself."""
    chunks: tuple[tuple[str, str, str, Change, float], ...] = (
        ("stranger-chunks", "hostile chunks of a stranger on safety/chunk", SAFETY_CHUNK, away, 0.0),
        ("stranger-future", "one chunk of a stranger on safety/chunk, an hour ahead", SAFETY_CHUNK, same, HOUR_S),
        ("stranger-nan", "chunks of a stranger on safety/chunk that are not finite", SAFETY_CHUNK, not_finite, 0.0),
        ("stranger-policy", "hostile chunks of a stranger on policy/chunk", POLICY_CHUNK, away, 0.0),
    )
    for name, what, topic, change, ahead in chunks:
        inject = partial(_publish_chunks, topic, change, ahead)
        yield Fault(name, "strangers", what, inject, _soon)
    yield Fault("stranger-grant", "strangers", "a grant of a stranger", _grant, _soon)
    yield Fault("stranger-state", "strangers", "a stranger says that safety runs", _imitate_safety, _soon)


def _soon(_: Robot) -> float:
    return LOOK_S


def _stranger(scene: Scene, topic: str) -> tuple[Node, Any]:
    """Return a node of its own on the graph of the system, and its publisher, known to who listens."""
    context = Context()
    rclpy.init(context=context, domain_id=scene.system.plan.domain)
    node = Node("stranger", context=context)

    def leave() -> None:
        node.destroy_node()
        rclpy.shutdown(context=context)

    scene.undo.append(leave)
    sender = publisher(node, topic, TOPICS[topic])
    end = time.monotonic() + MATCHED_S
    # Every listener, so that what it then does has no share of the middleware's delay.
    listeners = max(1, scene.witness.node.count_subscribers(topic))
    while sender.get_subscription_count() < listeners and time.monotonic() < end:
        time.sleep(0.002)
    return node, sender


def _repeat(send: Callable[[int], None]) -> float:
    """Send again and again; return the steady time of the first one in s."""
    begun = time.monotonic()
    for number in range(round(LASTS_S / PERIOD_S)):
        send(number)
        time.sleep(PERIOD_S)
    return begun


def _publish_chunks(topic: str, change: Change, ahead_s: float, scene: Scene) -> float:
    honest = copy.deepcopy(scene.witness.chunk)
    _, sender = _stranger(scene, topic)

    def send(number: int) -> None:
        if ahead_s and number:
            return
        chunk = copy.deepcopy(honest)
        change(chunk)
        chunk.sequence = honest.sequence + 1000 + number
        set_time(chunk.header.stamp, time.time_ns() + round(ahead_s * NANOSECONDS))
        sender.publish(chunk)

    return _repeat(send)


def _grant(scene: Scene) -> float:
    _, sender = _stranger(scene, GRANT)
    sources = ["policy", "teleop", "episode"]
    return _repeat(
        lambda number: sender.publish(
            Grant(granter="stranger", sources=sources, duration=duration_message(NANOSECONDS), sequence=number)
        )
    )


def _imitate_safety(scene: Scene) -> float:
    from bid_msgs.msg import SafetyState

    _, sender = _stranger(scene, SAFETY_STATE)
    return _repeat(lambda _: sender.publish(SafetyState(state=SafetyState.RUNNING)))
