"""Qualities of service on the wire: every reader of ours fits, what expires says so, and parameters override them."""

from __future__ import annotations

import pytest
import rclpy
from rclpy.duration import Duration
from rclpy.parameter import Parameter as Given
from rclpy.qos import QoSCompatibility, QoSReliabilityPolicy, qos_check_compatible

from bid_msgs.msg import Heartbeat
from bid_ros.core import topics
from bid_ros.core.errors import BidError
from bid_ros.core.task import load_task
from bid_ros.nodes.base import BidNode
from bid_ros.nodes.executor import FastExecutor
from bid_ros.nodes.parameters import Parameter
from bid_ros.nodes.topics import offered, profile
from bid_ros.recording.files import qos_text

SECOND = 1_000_000_000


def everything(root) -> dict[str, topics.Topic]:
    own = {topics.TWIN_SCENE: topics.SCENES, topics.OVERLAY: topics.IMAGES}
    return {**topics.recorded_topics(load_task(root / "config/franka_place/task.yaml")), **own}


def test_every_subscription_of_ours_gets_what_is_published(root):
    for name, topic in everything(root).items():
        for depth in (None, 1, 500):
            found, why = qos_check_compatible(offered(topic.qos), profile(topic.qos, depth))
            assert found != QoSCompatibility.ERROR, f"{name}: {why}"


def test_a_reliable_reader_would_get_no_image():
    asked = profile(topics.IMAGE_QOS)
    asked.reliability = QoSReliabilityPolicy.RELIABLE
    assert qos_check_compatible(offered(topics.IMAGE_QOS), asked)[0] == QoSCompatibility.ERROR


def test_what_expires_says_so_and_a_bag_says_it_too():
    expires = {name for name, topic in topics.TOPICS.items() if topic.qos.lifespan_s is not None}
    assert expires == {
        *(topics.chunk_topic(who) for who in ("policy", "teleop", "episode", "safety")),
        "grant",
        "heartbeat",
    }
    text = qos_text(topics.HEARTBEAT_QOS)
    assert "deadline:\n    sec: 1\n    nsec: 0" in text and "lifespan:\n    sec: 2\n    nsec: 0" in text
    assert "sec: 9223372036" in qos_text(topics.STATE_QOS)


@pytest.fixture
def context(ros_domain):
    rclpy.init()
    yield
    rclpy.try_shutdown()


def spun(nodes, until, seconds: float = 10.0) -> bool:
    executor = FastExecutor()
    for node in nodes:
        executor.add_node(node)
    end = nodes[0].get_clock().now().nanoseconds + round(seconds * SECOND)
    while not until() and nodes[0].get_clock().now().nanoseconds < end:
        executor.spin_once(timeout_sec=0.05)
    executor.shutdown()
    return bool(until())


def test_heartbeats_arrive_where_a_deadline_is_asked_for_and_where_it_is_not(context):
    node, other = BidNode("safety", []), rclpy.create_node("other")
    heard: dict[str, list[Heartbeat]] = {"any": [], "deadline": [], "sooner": []}
    asked = {name: profile(topics.HEARTBEAT_QOS) for name in heard}
    asked["deadline"].deadline = Duration(seconds=topics.HEARTBEAT_QOS.deadline_s)
    asked["sooner"].deadline = Duration(seconds=0.1)  # nobody promises that
    for name, qos in asked.items():
        other.create_subscription(Heartbeat, "/heartbeat", heard[name].append, qos)
    node.heartbeat.start()
    assert spun([node, other], lambda: len(heard["any"]) > 2 and len(heard["deadline"]) > 2)
    node.heartbeat.stop()
    assert not heard["sooner"]
    (offer,) = other.get_publishers_info_by_topic("/heartbeat")
    assert offer.qos_profile.deadline.nanoseconds == SECOND and offer.qos_profile.lifespan.nanoseconds == 2 * SECOND
    node.destroy_node()
    other.destroy_node()


class Overridden(BidNode):
    """A node whose parameters a test gives."""

    def __init__(self) -> None:
        super().__init__("given", [Parameter("n", 1, "a number")])
        self.subscribe(topics.ARM_STATUS, lambda _: None)
        self.subscribe(topics.ARM_STATUS, lambda _: None, newest=True)


def started(monkeypatch, **given: object) -> Overridden:
    """Start the node with parameters as the command line gives them."""
    original = rclpy.node.Node.__init__

    def init(self, name: str) -> None:
        overrides = [Given(f"qos_overrides.{key}", value=value) for key, value in given.items()]
        original(self, name, parameter_overrides=overrides)

    monkeypatch.setattr(rclpy.node.Node, "__init__", init)
    return Overridden()


def test_parameters_override_the_quality_of_service(context, monkeypatch):
    node = started(
        monkeypatch,
        **{
            "/heartbeat.publisher.reliability": "best_effort",
            "/heartbeat.publisher.lifespan": SECOND,
            "/arm/status.subscription_2.depth": 7,
        },
    )
    node.check_overrides()
    (offer,) = node.get_publishers_info_by_topic("/heartbeat")
    assert offer.qos_profile.reliability == QoSReliabilityPolicy.BEST_EFFORT
    assert offer.qos_profile.lifespan.nanoseconds == SECOND
    assert [item.qos_profile.depth for item in node.subscriptions if item.topic_name == "/arm/status"] == [10, 7]
    node.destroy_node()


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("/heartbeat.publisher.reliability", "sure", "valid are reliable, best_effort"),
        ("/heartbeat.publisher.speed", 3, "is no quality of service; valid is qos_overrides./TOPIC"),
        ("/heartbeat.publisher.depth", 0, "is 0; valid is a whole number of 1 or more"),
        ("/typo.publisher.depth", 3, "has no effect: the node has no such end of /typo"),
    ],
)
def test_an_override_that_nothing_takes_is_refused(context, monkeypatch, name, value, sentence):
    with pytest.raises(BidError, match=sentence):
        started(monkeypatch, **{name: value}).check_overrides()
