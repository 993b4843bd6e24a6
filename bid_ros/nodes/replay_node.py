"""Replay node: publishes the messages of a bag, and asks the policy to decide where the recorded one did."""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image
from std_srvs.srv import SetBool, Trigger

from bid_msgs.msg import Decision
from bid_ros.cameras.depth import decode_depth, is_depth, millimetres
from bid_ros.cameras.image import decode_image, encode_image
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import BidError, RecordingError
from bid_ros.core.stamps import stamp_ns, stamp_to_ns
from bid_ros.core.task import load_task
from bid_ros.core.topics import (
    ARM_STATUS,
    CLOCK,
    DECISION,
    RECORDED_DECISION,
    REPLAY_DECIDED,
    REPLAY_QOS,
    SAFETY_STATE,
    Topic,
)
from bid_ros.nodes.base import BidNode
from bid_ros.nodes.parameters import Parameter
from bid_ros.nodes.replay_policy_node import KEPT
from bid_ros.nodes.ros_messages import cue_to_message, header, time_message
from bid_ros.policy.bundle import load_bundle
from bid_ros.recording.bag_topics import read_remapped
from bid_ros.recording.reader import BagMessage, BagReader
from bid_ros.replay.cue import Cue, RecordedDecision, find_decision_times
from bid_ros.replay.parity import WENT_ON, Parity, summary, table
from bid_ros.replay.publishing import ReplayPace, published_topics
from bid_ros.system.progress import PROGRESS

PARAMETERS = (
    Parameter("task", "", "path of the task file"),
    Parameter("bag", "", "the bag"),
    Parameter("bundle", "", "policy bundle, which says how many steps are observed; empty: as many as the task says"),
    Parameter("remapped", [""], "recorded names, each as TOPIC:=/RECORDED/NAME; [''] for none"),
    Parameter("speed", 1.0, "factor of the recorded speed; 0: as fast as decisions are made", 0.0, 100.0),
    Parameter("paused", False, "waits until replay/step or replay/pause is called"),
    Parameter("out", "", "folder for replay.json"),
    Parameter("ready_timeout_s", 60.0, "time in s for the policy to be ready", 1.0, 600.0),
    Parameter("decide_timeout_s", 10.0, "time in s for one decision", 1.0, 600.0),
)
CLOCK_NS: Final = 5_000_000  # between two messages of the clock, unless a message is due later


class ReplayNode(BidNode):
    """Plays a bag in a thread of its own. It asks for one decision at a time, so none is missed."""

    def __init__(self) -> None:
        super().__init__("replay", PARAMETERS)
        self.load_task()
        self._task = load_task(self.value("task"))  # the bag says with which prefix its frames were recorded
        folder = self.value("bundle")
        self._history = load_bundle(folder, self._task).history(self._task) if folder else None
        self._player = ReplayPace(self.value("speed"), self.value("paused"))
        self._parity, self._expected = Parity(), dict[int, tuple[int, RecordedDecision | None]]()
        self._answers, self._news = set[int](), threading.Condition()
        self._clock_at = 0
        self._asked: int | None = None
        self._clocks = self.advertise(CLOCK, Topic("rosgraph_msgs/msg/Clock", REPLAY_QOS))
        self._cues = self.advertise(RECORDED_DECISION, Topic("bid_msgs/msg/Decision", REPLAY_QOS))
        self.subscribe(DECISION, self._on_decision, Topic("bid_msgs/msg/Decision", REPLAY_QOS))
        self.subscribe(REPLAY_DECIDED, self._on_answer, Topic("std_msgs/msg/Header", REPLAY_QOS))
        self.serve(SetBool, "replay/pause", self._pause)
        self.serve(Trigger, "replay/step", self._step)
        self._thread = threading.Thread(target=self._run, name="replay", daemon=True)

    def begin(self) -> None:
        """Play the bag."""
        self._thread.start()

    def diagnose(self) -> tuple[bool, str, dict[str, object]]:
        """Return the decisions so far, and whether they are those of the recording."""
        total = self._parity.total
        return True, "paused" if self._player.paused else "playing", {"decisions": total.decisions, "same": total.same}

    def close(self) -> None:
        """End the thread."""
        self._player.close()
        with self._news:
            self._news.notify_all()
        self._thread.join(timeout=2.0)

    def _pause(self, request: Any) -> tuple[bool, str]:
        self._player.pause(request.data)
        return True, "paused" if request.data else "playing"

    def _step(self, _: Any) -> tuple[bool, str]:
        if not self._player.paused:
            return False, "the replay plays; pause it first"
        self._player.step()
        return True, "goes on to the next decision"

    def _on_decision(self, message: Decision) -> None:
        stamp = stamp_ns(message)
        with self._news:
            if stamp in self._expected:
                stream, recorded = self._expected.pop(stamp)
                selected = np.asarray(message.selected, dtype=np.float32).reshape(message.steps, message.dims)
                digest, index = int(message.observation_digest), int(message.selected_index)
                self._parity.add(stream, recorded, digest, selected, index)
                self._news.notify_all()

    def _on_answer(self, message: Any) -> None:
        with self._news:
            self._answers.add(stamp_to_ns(message.stamp))
            if message.frame_id == KEPT:
                stream, recorded = self._expected.pop(stamp_to_ns(message.stamp), (0, None))
                if recorded is not None:
                    self._parity.miss(stream, WENT_ON)
            self._news.notify_all()

    def _run(self) -> None:
        status = 1
        try:
            with BagReader(
                Path(self.value("bag")), read_remapped([text for text in self.value("remapped") if text])
            ) as reader:
                self._play(reader)
            status = 0
        except BidError as error:
            if not self.ended:
                print(f"error: {error}", file=sys.stderr, flush=True)
                status = 2
        finally:
            self._finish()
            self.end(status)

    def _play(self, reader: BagReader) -> None:
        times = find_decision_times(reader, self._task, self._history)
        topics, left = published_topics(reader, self._task)
        for reason in left:
            self.get_logger().warning(reason)
        self._wait_for_the_policy()
        if self.count_publishers(ARM_STATUS) or self.count_publishers(SAFETY_STATE):
            raise RecordingError(
                f"a system runs in namespace {self.get_namespace()}; valid for a replay is a namespace of its own"
            )
        publishers = {name: self.advertise(item.name, item.topic) for name, item in topics.items()}
        asked = {reader.recorded_name(topic): topic for topic in times.topics}
        begin_ns, end_ns = reader.span_ns
        for item in reader.raw():
            if not self._player.wait(item.stamp_ns):
                return
            self._tell_time(item.stamp_ns)
            packed = item.topic in topics and topics[item.topic].packed
            message = reader.decode(item) if packed or item.topic in asked else None
            if item.topic in publishers:
                publishers[item.topic].publish(_unpacked(message) if packed else item.data)
            if item.topic in asked:
                taken = BagMessage(asked[item.topic], item.stamp_ns, message)
                self._ask(times.take(taken), (item.stamp_ns - begin_ns) / max(1, end_ns - begin_ns))
        self._ask(times.finish(), 1.0)
        self._wait_for_the_answer()

    def _tell_time(self, stamp: int) -> None:
        if stamp - self._clock_at >= CLOCK_NS:
            self._clock_at = stamp
            self._clocks.publish(Clock(clock=time_message(stamp)))

    def _ask(self, cues: list[Cue], done: float) -> None:
        """Let the policy decide on each cue, and wait for it. Cues that are due together take a step each."""
        for cue in cues:
            if cue.observation is None:
                self._parity.miss(cue.stream, cue.problem)
                continue
            if not self._player.hold():
                return
            self._wait_for_the_answer()
            self._expected[cue.stamp_ns], self._asked = (cue.stream, cue.recorded), cue.stamp_ns
            self._cues.publish(cue_to_message(cue, self.robot))
            if self._player.paused:
                self._wait_for_the_answer()
                self._player.stepped()
            total = self._parity.total
            line = f"replay  {done:4.0%}  decisions {total.decisions}  same {total.same}/{total.compared}"
            print(f"{PROGRESS}{line}", flush=True)

    def _wait_for_the_answer(self) -> None:
        """Wait until the policy has made the decision that it was asked for last."""
        stamp, self._asked = self._asked, None
        if stamp is None:
            return
        with self._news:
            answered = self._news.wait_for(
                lambda: self.ended or (stamp in self._answers and stamp not in self._expected),
                self.value("decide_timeout_s"),
            )
            self._answers.discard(stamp)
        if not answered:
            limit_s = self.value("decide_timeout_s")
            raise RecordingError(f"the policy made no decision within {limit_s:g} s; its log says why")

    def _wait_for_the_policy(self) -> None:
        print(f"{PROGRESS}waiting for the policy", flush=True)
        end = time.monotonic() + self.value("ready_timeout_s")
        while not self._cues.get_subscription_count():
            if time.monotonic() > end or self.ended:
                raise RecordingError("no policy node listens to recorded decisions; its log says why")
            time.sleep(0.05)  # discovery has no event that rclpy tells of

    def _finish(self) -> None:
        print(table(self._parity), flush=True)
        if self._parity.problem:
            print(f"missing: {self._parity.problem}", flush=True)
        if self._player.stalled_ns > NANOSECONDS // 10:
            print(f"decisions took {self._player.stalled_ns / NANOSECONDS:.1f} s longer than the recording", flush=True)
        if out := self.value("out"):
            Path(out).mkdir(parents=True, exist_ok=True)
            (Path(out) / "replay.json").write_text(json.dumps(summary(self._parity)))


def _unpacked(message: Any) -> Image:
    """Return the image of a compressed one, as cameras publish it."""
    decoded = millimetres(decode_depth(message)) if is_depth(message) else decode_image(message, "of the bag")
    image = Image(**encode_image(decoded))
    image.header = header(stamp_ns(message), message.header.frame_id)
    return image


main = ReplayNode.main
