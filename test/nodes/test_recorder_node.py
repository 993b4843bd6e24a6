"""The recorder node as a real process: what it keeps, also when it is killed."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest
from sensor_msgs.msg import Image

from bid_msgs.msg import ArmStatus, EpisodeEvent
from bid_ros.cameras import encode_image
from bid_ros.nodes.qos import EVENT, IMAGE, STATE
from bid_ros.recording.reader import BagReader

START_S = 40.0


class Harness:
    """Publishes numbered messages and remembers when each was sent."""

    def __init__(self, bench, root, bag):
        self.bench = bench
        self.bag = bag
        self.sent_ns: list[int] = []
        node = bench.node
        self._statuses = node.create_publisher(ArmStatus, "/arm/status", STATE)
        self._images = node.create_publisher(Image, "/camera/wrist/image", IMAGE)
        events = node.create_publisher(EpisodeEvent, "/episode/event", EVENT)
        # Before the recorder is there: a latched topic has to reach it all the same.
        events.publish(EpisodeEvent(kind=EpisodeEvent.START, label="clean", seed=7))
        node.create_timer(0.02, self._publish)
        bench.start("recorder", {"task": str(root / "config" / "franka_place.yaml"), "bag": str(bag)})

    def _publish(self):
        if not self._statuses.get_subscription_count():
            return
        self._statuses.publish(ArmStatus(sequence=len(self.sent_ns), gripper_width=0.04))
        self.sent_ns.append(time.monotonic_ns())
        if len(self.sent_ns) % 5 == 0:
            self._images.publish(Image(**encode_image(np.full((96, 96, 3), 7, np.uint8))))

    def record_for(self, seconds: float):
        assert self.bench.until(lambda: self.sent_ns, START_S), "the recorder did not subscribe"
        assert self.bench.until(lambda: time.monotonic_ns() - self.sent_ns[0] > seconds * 1e9, START_S)

    def recorded(self, topic: str):
        with BagReader(self.bag) as reader:
            return [item.message for item in reader.messages([topic])]


def test_records_every_message_and_closes_its_bag(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path / "bag")
    harness.record_for(2.0)
    recorder = bench.processes["recorder"]
    recorder.send_signal(signal.SIGTERM)
    status, output = bench.finish("recorder", START_S)
    assert status == 0 and "Traceback" not in output
    with BagReader(tmp_path / "bag") as reader:
        assert reader.was_complete
    numbers = [message.sequence for message in harness.recorded("/arm/status")]
    # The first few may precede the match of the two ends; from then on none is missing.
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert numbers[0] < 10 and len(numbers) > len(harness.sent_ns) - 20
    (event,) = harness.recorded("/episode/event")
    assert (event.kind, event.label, event.seed) == (EpisodeEvent.START, "clean", 7)
    image = harness.recorded("/camera/wrist/image")[0]
    assert (image.width, image.encoding) == (96, "rgb8") and (np.asarray(image.data) == 7).all()


def test_a_killed_recorder_loses_at_most_the_last_second(bench, root, tmp_path):
    harness = Harness(bench, root, tmp_path / "bag")
    harness.record_for(3.0)
    recorder = bench.processes["recorder"]
    killed_ns = time.monotonic_ns()
    recorder.kill()
    bench.finish("recorder", START_S)
    with BagReader(tmp_path / "bag") as reader:
        assert not reader.was_complete
    numbers = [message.sequence for message in harness.recorded("/arm/status")]
    old = sum(sent < killed_ns - 1e9 for sent in harness.sent_ns)
    assert old > 50
    assert numbers == list(range(numbers[0], numbers[-1] + 1)) and numbers[0] < 10
    assert numbers[-1] >= old - 1
    assert harness.recorded("/episode/event") and harness.recorded("/camera/wrist/image")


@pytest.mark.parametrize("taken", [True, False], ids=["exists", "no_name"])
def test_a_bag_that_cannot_be_made_ends_the_node_with_one_sentence(bench, root, tmp_path, taken):
    bag = tmp_path / "bag"
    if taken:
        bag.mkdir()
        (bag / "metadata.yaml").write_text("somebody's recording")
    Harness(bench, root, bag if taken else "")
    status, output = bench.finish("recorder", START_S)
    assert status == 2
    assert output.count("error: ") == 1 and "Traceback" not in output
    assert not taken or (bag / "metadata.yaml").read_text() == "somebody's recording"
