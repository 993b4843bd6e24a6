"""Finds the times in a bag at which to decide, while its messages pass in the order of their receipt."""

from collections import deque
from collections.abc import Iterator
from typing import Any, Final, Protocol

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import BidError, ObservationError, RecordingError
from bid_ros.core.observation import History, ObservationBuffer
from bid_ros.core.stamps import sample_ns, stamp_ns
from bid_ros.core.task import Feature, Task
from bid_ros.core.topics import DECISION, EPISODE_EVENT, feature_topic
from bid_ros.observing.features import extract
from bid_ros.recording.episodes import END, START
from bid_ros.recording.reader import BagMessage, BagReader
from bid_ros.recording.topic_types import check_types
from bid_ros.replay.cue import Cue, RecordedDecision, recorded_from

PATIENCE_NS: Final = NANOSECONDS // 2  # a recorder may note a sample this long after the decision on it
HISTORY_S: Final = 3.0


class DecisionTimes(Protocol):
    """Takes the messages of a bag one by one."""

    topics: tuple[str, ...]

    def take(self, item: BagMessage) -> list[Cue]:
        """Take a message of :attr:`topics`. Return the cues that are due after it."""

    def finish(self) -> list[Cue]:
        """Return the cues that are left at the end of the bag."""


def find_decision_times(reader: BagReader, task: Task, history: History | None = None) -> DecisionTimes:
    """Return the decision times of a bag: of its recorded decisions, else those at which a live system would decide.

    Args:
        reader: the bag.
        task: what is observed.
        history: observed steps that the policy wants, for a bag without recorded decisions. None: those of the task.

    Raises:
        RecordingError: the bag lacks the topic of an observation, or has it with another type.
        TaskError: no topic delivers one of the task's observations.
    """
    recorded = task.with_frame_prefix(reader.frame_prefix)
    features = _features(reader, recorded)
    if reader.recorded_name(DECISION) in reader.topics and reader.says(DECISION, "observed_ns"):
        return RecordedDecisionTimes(recorded, features)
    return GridDecisionTimes(recorded, features, history)


class _Samples:
    """Keeps the samples of the observed features."""

    def __init__(self, task: Task, features: dict[str, list[Feature]], history: History | None = None) -> None:
        self.task, self.features = task, features
        self.buffer = ObservationBuffer(task, history_s=HISTORY_S, history=history)
        self.problem = ""

    def add(self, item: BagMessage) -> None:
        """Take what a message says of the features. One that does not fit is left out, as live."""
        for feature in self.features.get(item.topic, ()):
            try:
                value = extract(feature, item.message)
                self.buffer.add(feature.name, sample_ns(item.message, item.stamp_ns), value)
            except BidError as error:
                self.problem = str(error)


class RecordedDecisionTimes:
    """The times of recorded decisions, each with the very samples that it was made on."""

    def __init__(self, task: Task, features: dict[str, list[Feature]]) -> None:
        self._samples = _Samples(task, features)
        self._waiting: deque[tuple[int, RecordedDecision]] = deque()
        self.topics = (*features, DECISION)

    def take(self, item: BagMessage) -> list[Cue]:
        """Take a message. A decision waits for its samples: the recorder may have noted one of them later."""
        if item.topic == DECISION:
            self._waiting.append((item.stamp_ns, recorded_from(item.message)))
        else:
            self._samples.add(item)
        return list(self._due(item.stamp_ns))

    def finish(self) -> list[Cue]:
        """Return what is left, whether its samples were found or not."""
        return list(self._due(None))

    def _due(self, now_ns: int | None) -> Iterator[Cue]:
        while self._waiting:
            since_ns, recorded = self._waiting[0]
            found, problem = None, ""
            try:
                found = self._samples.buffer.assemble_from(recorded.stamp_ns, recorded.samples_ns)
            except ObservationError as error:
                if now_ns is not None and now_ns < since_ns + PATIENCE_NS:
                    return
                problem = str(error)
            self._waiting.popleft()
            yield Cue(recorded.stamp_ns, found, problem, recorded.setting.stream, recorded)


class GridDecisionTimes:
    """The times at which a live system would decide: when a pair of frames is complete, at most at the task's rate.

    In a bag with episodes, only between START and END; in another bag, all the time.
    """

    def __init__(self, task: Task, features: dict[str, list[Feature]], history: History | None = None) -> None:
        self._samples = _Samples(task, features, history)
        self._seen = self._decided = 0
        self._stream = 0
        self._acting: bool | None = None
        self.topics = (*features, EPISODE_EVENT)

    def take(self, item: BagMessage) -> list[Cue]:
        """Take a message. With the last frame of a pair comes a cue."""
        if item.topic == EPISODE_EVENT:
            self._mark(item)
            return []
        self._samples.add(item)
        stamp = self._samples.buffer.stamp_ns()
        if self._acting is False or stamp is None or stamp <= self._seen:
            return []
        self._seen = stamp
        # Cameras may be faster than the task: a frame is taken if most of a period has passed.
        if stamp - self._decided < 0.75 * self._samples.task.dt_ns:
            return []
        try:
            observation = self._samples.buffer.assemble(stamp)
        except ObservationError as error:
            return [Cue(stamp, None, str(error), self._stream, None)] if self._decided else []
        self._decided = stamp
        return [Cue(stamp, observation, "", self._stream, None)]

    def finish(self) -> list[Cue]:
        """Return nothing: no cue waits."""
        return []

    def _mark(self, item: BagMessage) -> None:
        kind: Any = item.message.kind
        if kind == START:
            self._acting, self._stream, self._seen = True, self._stream + 1, stamp_ns(item.message) - 1
            self._decided = 0
            self._samples.buffer.reset()  # an episode begins with its first frames, as in a data set
        elif kind == END:
            self._acting = False


def _features(reader: BagReader, task: Task) -> dict[str, list[Feature]]:
    """Return the observed features by topic. Raises RecordingError if the bag lacks a topic or has another type."""
    by_topic: dict[str, list[Feature]] = {}
    for feature in task.observation:
        by_topic.setdefault(feature_topic(feature, reader.is_older), []).append(feature)
    for topic, carried in by_topic.items():
        if reader.recorded_name(topic) not in reader.topics:
            names = " and ".join(f"'{item.name}'" for item in carried)
            raise RecordingError(
                f"bag {reader.path} has no topic {topic}, which delivers {names} of task '{task.name}'; "
                f"it has {', '.join(reader.topics)}; take one of these with --remap {topic}:=/RECORDED/NAME"
            )
    check_types(reader, task, by_topic)
    return by_topic
