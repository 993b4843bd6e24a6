"""A stranger on the graph: a second publisher of what moves the arm stops it, and is named."""

from __future__ import annotations

import time

import pytest
from nodes import test_safety_node
from nodes.arm_harness import up
from qos import COMMAND, STATE
from rclpy.node import Node

from bid_msgs.msg import ActionChunk, ArmStatus, Grant

TYPES = {"policy/chunk": (ActionChunk, COMMAND), "grant": (Grant, STATE), "arm/status": (ArmStatus, STATE)}


@pytest.fixture
def stranger(bench):
    """A node of nobody's, in the same domain."""
    node = Node("stranger", context=bench.context)
    yield node
    node.destroy_node()


@pytest.mark.parametrize("topic", TYPES)
def test_the_safety_node_stops_names_the_stranger_and_is_reset_once_he_is_gone(bench, root, stranger, topic):
    harness = test_safety_node.Harness(bench, root)
    assert harness.send_until(lambda: harness.forwarded)
    kind, qos = TYPES[topic]
    publisher = stranger.create_publisher(kind, f"/{topic}", qos)
    assert bench.until(harness.stopped)
    # Its name comes a moment after its publisher. The first reason is kept, so a reset that is refused says it.
    assert bench.until(lambda: "/stranger" in harness.reset().message)
    refusal = harness.reset()
    assert not refusal.success and f"2 nodes publish /{topic}: /bench and /stranger" in refusal.message
    assert harness.states[-1].rule == "publisher" and f"/{topic}" in harness.states[-1].reason
    harness.forwarded.clear()
    for _ in range(5):
        harness.send()
        bench.until(lambda: False, 0.05)
    assert not harness.forwarded
    stranger.destroy_publisher(publisher)
    assert bench.until(lambda: harness.reset().success)
    assert harness.send_until(lambda: harness.forwarded)


@pytest.mark.parametrize(("topic", "kind", "qos"), [("safety/chunk", ActionChunk, COMMAND), ("grant", Grant, STATE)])
def test_the_arm_node_stops_names_the_stranger_and_follows_nobody(bench, root, stranger, topic, kind, qos):
    harness = up(bench, "franka_place")
    harness.track(steps=15)
    publisher = stranger.create_publisher(kind, f"/{topic}", qos)
    assert harness.until_mode(ArmStatus.STOPPED)
    assert f"nodes publish /{topic}" in harness.statuses[-1].reason
    assert bench.until(lambda: "/bench and /stranger" in harness.reset().message)
    stranger.destroy_publisher(publisher)
    assert bench.until(lambda: harness.reset().success)
    harness.start = None
    harness.track(steps=15)


def test_a_chunk_from_the_future_is_ignored_and_those_after_it_are_followed(bench, root, monkeypatch):
    harness = up(bench, "franka_place")
    harness.track()
    harness.streaming = False
    assert harness.until_mode(ArmStatus.HOLDING)
    harness.start = None
    now = time.time_ns
    with monkeypatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: now() + 3_600_000_000_000)
        harness.send(steps=15)
    assert bench.until(lambda: "3600.0 s ahead of this computer's clock" in harness.statuses[-1].reason)
    assert harness.mode() == ArmStatus.HOLDING, "it says why it follows nothing"
    harness.start = None
    harness.track()
    assert harness.mode() == ArmStatus.TRACKING and not harness.statuses[-1].reason
