"""Recorder node: records every topic of the system into rosbag2 MCAP bags: one for a run, or one for each episode."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from rclpy.serialization import deserialize_message

from bid_ros.core.clocks import read_clocks
from bid_ros.core.errors import BidError, RecordingError
from bid_ros.core.task import load_task
from bid_ros.core.topics import (
    ARM_STATUS,
    COMPRESSED,
    COMPRESSED_IMAGE_TYPE,
    EPISODE_EVENT,
    EPISODE_NOTE,
    IMAGE_TYPE,
    ROSOUT,
)
from bid_ros.episodes.bags import EpisodeBags
from bid_ros.nodes.base import HARDWARE_PRIORITY, BidNode
from bid_ros.nodes.executor import FastExecutor
from bid_ros.nodes.heartbeat import RARE_S
from bid_ros.nodes.parameters import Parameter
from bid_ros.nodes.topics import message_type
from bid_ros.recording.compression import find_codec
from bid_ros.recording.counters import Counters, Disk
from bid_ros.recording.definitions import find_definition
from bid_ros.recording.provenance import provenance
from bid_ros.recording.writer import BagWriter
from bid_ros.system.priority import raise_priority
from bid_ros.tasks.topics import system_topics

PARAMETERS = (
    Parameter("task", "", "path of the task file, which names the cameras"),
    Parameter("bag", "", "folder of the bag to write; must not exist"),
    Parameter("episodes", "", "folder in which each episode gets a bag of its own; instead of bag"),
    Parameter("image_codec", "raw", "codec of images: raw, png (without loss), jpeg or jpeg:QUALITY"),
    Parameter("min_free_mb", 200, "MB of the disk below which recording ends", 0, 1_000_000),
    Parameter("setup", "{}", "what the run was started with, in JSON, for the metadata"),
)
JITTER_NS = 10_000_000
# Messages that may wait while this computer is busy: two seconds of a fast camera, and more of what is small.
IMAGES_WAIT, OTHERS_WAIT = 60, 500
NO_TIME = "recording begins with simulated time, but no /clock has arrived"


class RecorderNode(BidNode):
    """Subscribes to serialised messages, so recording needs no decoding. It also records the end of episode and arm."""

    outlives: Sequence[str] = (EPISODE_EVENT, ARM_STATUS)
    heartbeat_s = RARE_S

    def __init__(self) -> None:
        super().__init__("recorder", PARAMETERS, sim_time=True)
        self._problem = ""
        self._failed = False
        self._writer: BagWriter | None = None
        self._bags: EpisodeBags | None = None
        self._codec = find_codec(self.value("image_codec"))
        self._topics = system_topics(self.load_task())
        self._packed = {name for name, topic in self._topics.items() if self._codec and topic.type_name == IMAGE_TYPE}
        stored = {
            name: COMPRESSED_IMAGE_TYPE if name in self._packed else t.type_name for name, t in self._topics.items()
        }
        self._definitions = {name: find_definition(type_name) for name, type_name in stored.items()}
        self._types = {name: message_type(topic.type_name) for name, topic in self._topics.items()}
        self._names = {name: self.resolve_topic_name(name) + COMPRESSED * (name in self._packed) for name in stored}
        self._about = self._custom(self._topics)
        self._counters = Counters()
        self._begun_ns = 0
        self._newest_ns: dict[str, int] = {}

    def begin(self) -> None:
        """Create the bag, or lock the folder of the bags, and record."""
        bag, episodes = self.value("bag"), self.value("episodes")
        if bool(bag) == bool(episodes):
            raise BidError(f"bag is '{bag}' and episodes is '{episodes}'; valid is to name one of them")
        if episodes:
            latched = {
                self._names[name]: topic.qos.depth
                for name, topic in self._topics.items()
                if topic.qos.durability == "transient_local" and name not in (EPISODE_EVENT, ROSOUT)
            }
            self._bags = EpisodeBags(Path(episodes), self._open, latched)
        else:
            self._writer = self._open(Path(bag), {})
        folder = Path(episodes or Path(bag).absolute().parent)
        self._disk = Disk(folder, self.value("min_free_mb"))
        self._disk.check()
        # What arrives must be taken, as from hardware; the threads that compress and write go last.
        raise_priority(HARDWARE_PRIORITY, every_thread=True)
        # Only now, and all at once: until this node spins, the queues hold the messages.
        for name, topic in self._topics.items():
            depth = IMAGES_WAIT if topic.type_name == IMAGE_TYPE else OTHERS_WAIT
            self.listen(name, partial(self._take, name), topic, patient=True, raw=True, depth=depth)
        self.create_timer(1.0, self._watch)

    def diagnose(self) -> tuple[bool, str, Mapping[str, object]]:
        """Return what is recorded, at which rates, what was lost, and how long the disk lasts."""
        now_ns = time.monotonic_ns()
        writer = self._bags.writer if self._bags is not None else self._writer
        written, dropped = self._totals(writer)
        lost = self._counters.lost
        rates, megabytes, share = self._counters.rates(now_ns)
        left_s = self._disk.seconds_left(None if writer is None else writer.file, now_ns)
        problem = self._problem or (writer.problem if writer is not None else "")
        if missing := dropped + lost:
            problem = problem or f"lost so far: {_listed(missing)}"
        on, length_s = self._recorded()
        rate = f"{sum(rates.values()):.0f} messages/s, {megabytes:.1f} MB/s"
        said = f"{on}, {rate}, disk for {_duration(left_s)}, {problem or 'nothing lost'}"
        values = {
            "episode": "" if self._bags is None or self._bags.about is None else self._bags.about.index,
            "length_s": f"{length_s:.1f}",
            "written": sum(written.values()),
            "dropped": dict(dropped),
            "lost_on_the_way": dict(lost),
            "messages_per_s": f"{sum(rates.values()):.0f}",
            "mb_per_s": f"{megabytes:.2f}",
            "waiting_mb": f"{writer.waiting_bytes / 1e6 if writer is not None else 0:.2f}",
            "disk_free_gb": f"{self._disk.free() / 1e9:.1f}",
            "disk_left_s": f"{left_s:.0f}",
            "cpu_percent": f"{100 * share:.1f}",
            **{f"hz_{topic.strip('/').replace('/', '_')}": f"{hz:.1f}" for topic, hz in rates.items() if hz},
        }
        return not problem, said, values

    def close(self) -> None:
        """Write the index and close the bag."""
        try:
            for bags in (self._writer, self._bags):
                if bags is not None:
                    bags.close()
        except RecordingError:
            if not self._failed:  # what has been said is not said twice
                raise

    def _open(self, bag: Path, custom: Mapping[str, str]) -> BagWriter:
        """Open a bag with every topic."""
        writer = BagWriter(bag, custom_data={**self._about, **custom})
        encode = self._codec.encode if self._codec is not None else None
        topics = self._topics.items()
        writer.add_topics(
            (self._names[name], self._definitions[name], topic.qos, encode if name in self._packed else None)
            for name, topic in topics
        )
        self._begun_ns = time.monotonic_ns()
        return writer

    def _custom(self, names: Iterable[str]) -> dict[str, str]:
        """Return what a reader needs to find the topics (the namespace, and remapped names), and what was recorded."""
        namespace = self.get_namespace()
        resolved = {name: self.resolve_topic_name(name) for name in names}
        remapped = {name: full for name, full in resolved.items() if full != str(PurePosixPath(namespace, name))}
        file = Path(self.value("task")).absolute()
        about = {"namespace": namespace, "frame_prefix": self.frame_prefix}
        about |= {"task": load_task(file).name, "system": str(file.parent)}
        origin = provenance(self.value("task"), json.loads(self.value("setup")))
        return {**about, **({"remapped": json.dumps(remapped)} if remapped else {}), **origin}

    def _take(self, name: str, data: bytes) -> None:
        now, steady = read_clocks(self.now_ns)
        # Simulated time has a pace of its own, so nobody knows what it was when the message arrived.
        age = 0 if self.get_clock().ros_time_is_active else steady - self.arrived_ns()
        if self._failed:
            return
        self._problem = "" if now else NO_TIME
        if not now:
            return
        executor = self.executor
        self._counters.take(name, len(data), executor.number if isinstance(executor, FastExecutor) else None)
        # Two messages of one instant must not change places because two clocks were read for each.
        stamp_ns, before_ns = now - age, self._newest_ns.get(name, 0)
        stamp_ns = before_ns if 0 < before_ns - stamp_ns < JITTER_NS else stamp_ns
        self._newest_ns[name] = stamp_ns
        try:
            self._store(name, stamp_ns, data)
        except RecordingError as error:
            self._fail(error)

    def _store(self, name: str, stamp_ns: int, data: bytes) -> None:
        topic = self._names[name]
        if self._bags is None:
            assert self._writer is not None, "begin has opened one of the two"
            self._writer.write(topic, stamp_ns, data)
        elif name == EPISODE_EVENT:
            self._bags.take_event(deserialize_message(data, self._types[name]), topic, stamp_ns, data)
        elif name == EPISODE_NOTE:
            self._bags.take_note(deserialize_message(data, self._types[name]).data, topic, stamp_ns, data)
        else:
            self._bags.write(topic, stamp_ns, data)

    def _watch(self) -> None:
        """Look at the disk, and at the topics whose losses can be counted."""
        self._counters.watch([name for name in self._topics if self.count_publishers(name) == 1])
        if self._failed:
            return
        try:
            self._disk.check()
        except RecordingError as error:
            self._fail(error)

    def _fail(self, error: RecordingError) -> None:
        """End the node, and with it the run: what moves without being recorded has to be done again."""
        self._problem, self._failed = str(error), True
        self.outlives = ()  # it records nobody's last words any more
        print(f"error: {error}", flush=True)
        self.end(2)

    def _totals(self, writer: BagWriter | None) -> tuple[Counter[str], Counter[str]]:
        """Return messages written and dropped so far, by topic."""
        written, dropped = Counter[str](), Counter[str]()
        if self._bags is not None:
            written, dropped = written + self._bags.closed_counts, dropped + self._bags.closed_dropped
        if writer is not None:
            written, dropped = written + Counter(writer.counts), dropped + writer.dropped
        return written, dropped

    def _recorded(self) -> tuple[str, float]:
        """Return what is recorded now in words, and for how many s."""
        length_s = (time.monotonic_ns() - self._begun_ns) / 1e9
        if self._bags is None:
            return f"recording for {length_s:.0f} s", length_s
        if not self._bags.recording or self._bags.about is None:
            return "between episodes", 0.0
        return f"recording episode {self._bags.about.index}, {length_s:.1f} s", length_s


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} of {topic}" for topic, count in counts.most_common(3))


def _duration(seconds: float) -> str:
    if seconds == float("inf"):
        return "long"
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


main = RecorderNode.main
