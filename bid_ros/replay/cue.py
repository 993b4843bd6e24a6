"""Cues: the moments of a recording at which a decision is made, found while its messages pass, and what it was."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import BidError, ObservationError, RecordingError
from bid_ros.core.feature import Feature
from bid_ros.core.observation import History, Observation, ObservationBuffer
from bid_ros.core.stamps import stamp_ns, stamp_to_ns
from bid_ros.core.task import Task
from bid_ros.core.topics import DECISION, EPISODE_EVENT, feature_topic
from bid_ros.decoding import current_decoder
from bid_ros.observing.features import extract
from bid_ros.recording.bag_topics import check_types
from bid_ros.recording.episodes import END, START
from bid_ros.recording.instructions import find_text_at
from bid_ros.recording.reader import BagMessage, BagReader
from bid_ros.recording.sample_times import SampleTimes


@dataclass(frozen=True)
class Setting:
    """What a recorded decision says about how it was made.

    Attributes:
        decoder: name and settings, as they are written today.
        action_horizon: actions executed a decision.
        samples: N, strong samples that were drawn, also those that were screened out.
        seed, stream: of the sampling noise.
        delay: steps that the decoder was told; None: none.
        runtime: network runtime.
        bundle: name of the bundle, @, first digits of its hash.
    """

    decoder: str
    action_horizon: int
    samples: int
    seed: int
    stream: int
    delay: int | None
    runtime: str
    bundle: str


@dataclass(frozen=True, eq=False)
class RecordedDecision:
    """A decision as it was recorded.

    Attributes:
        stamp_ns: time of the newest observation.
        setting: how it was made.
        samples_ns: ``(To,)`` stamps of the samples in each row of the observation, by feature.
        digest: of the observation, see :meth:`bid_ros.core.observation.Observation.digest`.
        selected: ``(H, D)`` float32, what was decided.
        index: of the chosen sample, -1 where the decision is not one of the samples.
    """

    stamp_ns: int
    setting: Setting
    samples_ns: dict[str, tuple[int, ...]]
    digest: int
    selected: NDArray[np.float32]
    index: int


@dataclass(frozen=True, eq=False)
class Cue:
    """A moment at which to decide.

    Attributes:
        stamp_ns: time of the newest observation.
        observation: on which to decide; None if the recording lacks a sample of it.
        problem: why there is no observation.
        stream: number of the noise's stream; a new one begins with each episode.
        recorded: decision of the recording; None if it holds none.
        text: the recorded policy was asked with; empty: with none.
    """

    stamp_ns: int
    observation: Observation | None
    problem: str
    stream: int
    recorded: RecordedDecision | None
    text: str = ""


def observed_ns(message: Any) -> list[int]:
    """Return the stamps in ns of the samples of a decision's message. An earlier version had them as numbers."""
    older = getattr(message, "observed_ns", None)
    return [stamp_to_ns(stamp) for stamp in message.observed_stamps] if older is None else [int(at) for at in older]


def recorded_from(message: Any) -> RecordedDecision:
    """Return the decision in a message ``bid_msgs/Decision``, from ROS or from a bag."""
    names, stamps = list(message.observed), observed_ns(message)
    steps = len(stamps) // max(1, len(names))
    delay = int(message.delay_steps)
    return RecordedDecision(
        stamp_ns=stamp_ns(message),
        setting=Setting(
            decoder=current_decoder(str(message.decoder)),
            action_horizon=int(message.action_horizon),
            samples=int(message.samples) + int(message.screened),
            seed=int(message.seed),
            stream=int(message.stream),
            delay=None if delay < 0 else delay,
            runtime=str(message.runtime),
            bundle=str(message.bundle),
        ),
        samples_ns={name: tuple(stamps[at * steps : (at + 1) * steps]) for at, name in enumerate(names)},
        digest=int(message.observation_digest),
        selected=np.asarray(message.selected, dtype=np.float32).reshape(message.steps, message.dims),
        index=int(message.selected_index),
    )


PATIENCE_NS: Final = NANOSECONDS // 2  # a recorder may note a sample this long after the decision on it
HISTORY_S: Final = 3.0


def find_decision_times(reader: BagReader, task: Task, history: History | None = None) -> "DecisionTimes":
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
    known = reader.says(DECISION, "observed_stamps") or reader.says(DECISION, "observed_ns")
    # A recorder may have the topic without a message on it, as where a person drove.
    if reader.counts.get(reader.recorded_name(DECISION)) and known:
        return RecordedDecisionTimes(recorded, features, SampleTimes(reader), find_text_at(reader))
    told = bool(reader.counts.get(reader.recorded_name(EPISODE_EVENT)))
    return GridDecisionTimes(recorded, features, SampleTimes(reader), find_text_at(reader), history, told)


class _Samples:
    """Keeps the samples of the observed features."""

    def __init__(
        self, task: Task, features: dict[str, list[Feature]], times: SampleTimes, history: History | None = None
    ) -> None:
        self.task, self.features, self._times = task, features, times
        self.buffer = ObservationBuffer(task, history_s=HISTORY_S, history=history)
        self.problem = ""

    def add(self, item: BagMessage) -> None:
        """Take what a message says of the features. One that does not fit is left out, as live."""
        for feature in self.features.get(item.topic, ()):
            try:
                value = extract(feature, item.message)
                self.buffer.add(feature.name, self._times.sample_ns(item), value)
            except BidError as error:
                self.problem = str(error)


class RecordedDecisionTimes:
    """The times of recorded decisions, each with the very samples that it was made on."""

    def __init__(
        self, task: Task, features: dict[str, list[Feature]], times: SampleTimes, text_at: Callable[[int], str]
    ) -> None:
        self._samples, self._text_at = _Samples(task, features, times), text_at
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
            text = self._text_at(since_ns)
            yield Cue(recorded.stamp_ns, found, problem, recorded.setting.stream, recorded, text)


class GridDecisionTimes:
    """The times at which a live system would decide: when a pair of frames is complete, at most at the task's rate.

    In a bag with episodes, only between START and END; in another bag, all the time.
    """

    def __init__(
        self,
        task: Task,
        features: dict[str, list[Feature]],
        times: SampleTimes,
        text_at: Callable[[int], str],
        history: History | None = None,
        told: bool = False,
    ) -> None:
        self._samples, self._text_at = _Samples(task, features, times, history), text_at
        self._seen = self._decided = 0
        self._stream = 0
        self._acting = not told  # where the bag tells of episodes, none has begun
        self.topics = (*features, EPISODE_EVENT)

    def take(self, item: BagMessage) -> list[Cue]:
        """Take a message. With the last frame of a pair comes a cue."""
        if item.topic == EPISODE_EVENT:
            self._mark(item)
            return []
        self._samples.add(item)
        stamp = self._samples.buffer.stamp_ns()
        if not self._acting or stamp is None or stamp <= self._seen:
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
        return [Cue(stamp, observation, "", self._stream, None, self._text_at(stamp))]

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


DecisionTimes = RecordedDecisionTimes | GridDecisionTimes
"""Takes the messages of a bag one by one, and says which cues are due."""


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
                + (
                    f"it has {', '.join(reader.topics)}; take one of these with --remap {topic}:=/RECORDED/NAME"
                    if reader.topics
                    else "it has no topics, for nothing was recorded"
                )
            )
    check_types(reader, task, by_topic)
    return by_topic
