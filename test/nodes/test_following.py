"""Listening to a running system: nodes may come later, go, and come back."""

from __future__ import annotations

import json
import threading

import pytest
from forked_bid import bid, start_bid
from qos import STATE
from sensor_msgs.msg import Image

from bid_msgs.msg import Decision, Heartbeat, SafetyState
from bid_ros.core.topics import IMAGES, TOPICS

START_S = 60.0
TOPIC_NAMES = {"heartbeat": TOPICS["heartbeat"], "camera/wrist/image": IMAGES}


@pytest.fixture
def listener(ros_domain):
    """A listener in a thread of this process, and what it has heard."""
    from bid_ros.nodes.following import follow

    heard: list[tuple[str, int, object]] = []
    ended = threading.Event()
    thread = threading.Thread(
        target=follow, args=(TOPIC_NAMES, lambda *item: heard.append(item), "/left", ended, False), daemon=True
    )
    thread.start()
    yield heard
    ended.set()
    thread.join(START_S)
    assert not thread.is_alive()


def test_a_node_is_heard_again_when_it_comes_back_and_images_stay_bytes(bench, listener):
    for _ in range(2):
        beats = bench.node.create_publisher(Heartbeat, "/left/heartbeat", STATE)
        images = bench.node.create_publisher(Image, "/left/camera/wrist/image", 2)
        listener.clear()

        def speak(beats=beats, images=images) -> None:
            beats.publish(Heartbeat(node="arm"))
            images.publish(Image(height=1, width=1))

        assert bench.until(lambda: {name for name, _, _ in listener} == set(TOPIC_NAMES), START_S, each=speak)
        kinds = {name: type(message) for name, _, message in listener}
        assert kinds == {"heartbeat": Heartbeat, "camera/wrist/image": bytes}
        bench.node.destroy_publisher(beats)
        bench.node.destroy_publisher(images)


def test_bid_top_says_what_is_there_as_json(bench, tmp_path):
    safety = bench.node.create_publisher(SafetyState, "/safety/state", STATE)
    decisions = bench.node.create_publisher(Decision, "/policy/decision", STATE)
    process = start_bid("top", "franka_place", "--json", "--seconds", "2", output=tmp_path / "top.json")

    def speak() -> None:
        safety.publish(SafetyState(state=SafetyState.STOPPED, rule="speed", reason="too fast"))
        decisions.publish(Decision(decoder="bid", samples=1, total=[0.5], selected_index=0, decision_time=0.021))

    assert bench.until(lambda: process.poll() is not None, START_S, each=speak)
    output = (tmp_path / "top.json").read_text()
    assert process.returncode == 0, output
    found = json.loads(output)
    assert found["safety"]["state"] == "STOPPED" and found["safety"]["reason"] == "too fast"
    assert found["latencies"]["decision_ms"]["p50"] == 21.0
    assert found["topics"]["arm/status"]["silent_s"] is None


def test_bid_top_of_nothing_ends_with_1(ros_domain):
    done = bid("top", "franka_place", "--seconds", "0.2", "--namespace", "left", limit_s=START_S)
    assert done.returncode == 1 and "nothing was heard yet" in done.stdout
    assert done.stderr.strip() == "nothing was heard in namespace /left in 0.2 s"


def test_a_live_view_is_written_until_it_is_interrupted(bench, tmp_path):
    from rerun.chunk import RrdReader

    safety = bench.node.create_publisher(SafetyState, "/safety/state", STATE)
    words = ("view", "franka_place", "--save", str(tmp_path / "live.rrd"))
    process = start_bid(*words, output=tmp_path / "view.txt")

    def speak() -> None:
        safety.publish(SafetyState(state=SafetyState.STOPPED, reason="too fast"))

    assert bench.until(lambda: safety.get_subscription_count() > 0, START_S)
    seen = [0]

    def heard() -> bool:
        seen[0] += 1
        return seen[0] > 50  # messages, of which the listener takes some

    assert bench.until(heard, START_S, each=speak)
    process.send_signal(2)
    assert process.wait(START_S) == 0
    notes = [chunk for chunk in RrdReader(tmp_path / "live.rrd").stream() if chunk.entity_path == "/notes"]
    assert len(notes) == 1
