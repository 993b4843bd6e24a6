"""A stranger on the graph: a second publisher of what moves the arm stops it, and is named."""

from __future__ import annotations

import itertools
import threading
import time

import pytest
from geometry_msgs.msg import PoseStamped
from nodes import test_safety_node
from nodes.arm_harness import up
from qos import COMMAND, EVERY_COMMAND, IMAGE, STATE
from rclpy.node import Node
from sensor_msgs.msg import Image
from std_msgs.msg import Bool

from bid_msgs.msg import ActionChunk, ArmStatus, Grant, Heartbeat
from bid_ros.nodes.sole_publishers import SolePublishers

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


def imitate(bench, stranger, name):
    """Let the stranger send heartbeats of a node, too; return what ends them."""
    publisher, count = stranger.create_publisher(Heartbeat, "/heartbeat", STATE), itertools.count()
    ended = threading.Event()

    def send():
        if not ended.is_set():
            publisher.publish(Heartbeat(node=name, sequence=next(count)))

    def end():
        ended.set()
        stranger.destroy_publisher(publisher)

    bench.node.create_timer(0.05, send)
    return end


def answered(bench, harness, wanted):
    """Reset now and then until the answer is wanted: nobody reads what the node prints, and a full pipe holds it up."""
    answers = []
    return bench.until(lambda: answers and wanted(answers[-1]), each=lambda: answers.append(harness.reset()))


def test_the_safety_node_stops_for_a_second_source_of_what_the_policy_sees_or_relies_on(bench, root, stranger):
    harness = test_safety_node.Harness(bench, root)
    assert harness.send_until(lambda: harness.forwarded)
    alone = stranger.create_publisher(Image, "/camera/wrist/image", IMAGE)
    driver = [node.create_publisher(Image, "/wrist/color/image_raw", IMAGE) for node in (bench.node, stranger)]
    assert not bench.until(harness.stopped, 0.3), "one in place of the camera node, and two where a driver publishes"
    for topic, kind, qos in (
        ("/camera/wrist/image", Image, IMAGE),
        ("/arm/tool_pose", PoseStamped, STATE),
        ("/teleop/switch", Bool, COMMAND),
    ):
        ends = [(bench.node, bench.node.create_publisher(kind, topic, qos))]
        ends += [(stranger, stranger.create_publisher(kind, topic, qos))] if topic != "/camera/wrist/image" else []
        assert bench.until(harness.stopped)
        told = f"publish {topic}: /bench and /stranger"
        assert answered(bench, harness, lambda answer, told=told: told in answer.message)
        for node, end in ends:
            node.destroy_publisher(end)
        assert answered(bench, harness, lambda answer: answer.success)
    end = imitate(bench, stranger, "camera")
    assert bench.until(harness.stopped) and harness.states[-1].rule == "publisher"
    assert "2 nodes publish heartbeats of 'camera' on /heartbeat: it, and " in harness.states[-1].reason
    assert answered(bench, harness, lambda answer: "/stranger" in answer.message)
    end()
    assert answered(bench, harness, lambda answer: answer.success)
    assert alone is not None and len(driver) == 2


def test_the_arm_node_stops_names_the_stranger_and_follows_nobody(bench, root, stranger):
    harness = up(bench, "franka_place")
    harness.track(steps=15)
    for topic, kind, qos in (("safety/chunk", ActionChunk, COMMAND), ("grant", Grant, STATE)):
        publisher = stranger.create_publisher(kind, f"/{topic}", qos)
        assert harness.until_mode(ArmStatus.STOPPED)
        assert f"nodes publish /{topic}" in harness.statuses[-1].reason
        assert bench.until(lambda: "/bench and /stranger" in harness.reset().message)
        stranger.destroy_publisher(publisher)
        assert bench.until(lambda: harness.reset().success)
        harness.start = None
        harness.track(steps=15)
    end = imitate(bench, stranger, "policy")
    assert harness.until_mode(ArmStatus.STOPPED)
    assert "2 nodes publish heartbeats of 'policy' on /heartbeat: it, and " in harness.statuses[-1].reason
    assert not harness.reset().success
    end()
    assert answered(bench, harness, lambda answer: answer.success)


def test_a_chunk_from_the_future_is_ignored_and_those_after_it_are_followed(bench, root, monkeypatch):
    harness = up(bench, "franka_place")
    harness.track()
    harness.streaming = False
    assert harness.until_mode(ArmStatus.HOLDING), harness.statuses[-1]
    harness.start = None
    now = time.time_ns
    with monkeypatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: now() + 3_600_000_000_000)
        harness.send(steps=15)
    ahead = "3600.0 s ahead of this computer's clock"
    assert bench.until(lambda: ahead in harness.statuses[-1].reason), harness.statuses[-1].reason
    assert harness.mode() == ArmStatus.HOLDING, "it says why it follows nothing"
    harness.start = None
    harness.track()
    assert harness.mode() == ArmStatus.TRACKING and not harness.statuses[-1].reason


@pytest.mark.parametrize("patient", [True, False])
def test_a_stranger_of_whom_the_middleware_has_not_told_yet_is_heard_by_nobody(bench, stranger, monkeypatch, patient):
    """On a busy computer his first messages came up to 0.9 s before the news of his publisher."""
    monkeypatch.setattr(bench.node, "count_publishers", lambda _: 1)
    sole, heard = SolePublishers(bench.node, ("policy/chunk",)), []
    take = sole.guarded("policy/chunk", lambda message: heard.append(message.source))
    bench.node.create_subscription(ActionChunk, "policy/chunk", take, EVERY_COMMAND).patient = patient
    bench.node.create_timer(0.01, lambda: None)
    honest = bench.node.create_publisher(ActionChunk, "policy/chunk", COMMAND)
    assert bench.until(lambda: len(heard) > 5, each=lambda: honest.publish(ActionChunk(source="policy")))
    assert not sole.trouble()
    strange = stranger.create_publisher(ActionChunk, "policy/chunk", COMMAND)

    def both() -> None:
        honest.publish(ActionChunk(source="policy"))
        strange.publish(ActionChunk(source="stranger"))

    assert bench.until(sole.trouble, each=both)
    assert sole.trouble().startswith("2 nodes publish /policy/chunk: /bench and ")
    assert set(heard) == {"policy"}
    known = len(heard)
    assert bench.until(lambda: len(heard) > known + 3, each=lambda: honest.publish(ActionChunk(source="policy")))
    assert bench.until(lambda: not sole.trouble()), "he is gone"
