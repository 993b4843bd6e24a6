"""Decides again at the moments of a recording; and replays a bag in one process: no ROS, no clock."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bid_ros.control.joint_chunks import TaskChunks
from bid_ros.core.chunk import ActionChunk
from bid_ros.core.errors import ArmError, RecordingError
from bid_ros.core.observation import History, Observation
from bid_ros.core.stamps import stamp_ns, stamp_to_ns
from bid_ros.core.task import Task
from bid_ros.core.topics import ARM_STATUS, SAFETY_CHUNK
from bid_ros.observing.measured import MeasuredJoints
from bid_ros.policy.base import Bundle, Policy
from bid_ros.policy.decide import DecisionMaker, DecisionRecord, bundle_decoder
from bid_ros.policy.decision_rate import remembered_as
from bid_ros.recording.reader import BagMessage, BagReader
from bid_ros.replay.cue import Cue, DecisionTimes, Setting, find_decision_times
from bid_ros.replay.parity import WENT_ON, Parity
from bid_ros.safety.screen import Screen

POLICY: Final = "policy"  # source of the chunks of decisions
CHANGEABLE: Final = ("decoder", "samples", "action_horizon", "seed")


@dataclass(frozen=True)
class Changes:
    """What a replay does in another way than the recording. None: as recorded.

    Attributes:
        decoder: name, with settings if it has some.
        action_horizon: actions executed a decision.
        samples: N.
        seed: of the sampling noise.
    """

    decoder: str | None = None
    action_horizon: int | None = None
    samples: int | None = None
    seed: int | None = None


class Decider:
    """Decides on cues in their order. Live nodes and lockstep use it alike.

    Args:
        maker: policy and decoder, with which it begins.
        bundle: of the policy.
        task: that the policy was made for.
        given: name, N, action horizon and seed of the decoder in ``maker``.
        changes: what differs from the recording.
        measured: takes the joints that were measured, where nobody else does.
        instruct: asks the policy with another text, as :class:`bid_ros.policy.base.Capabilities` has it. None: it takes
            none, or somebody else does it.
    """

    def __init__(
        self,
        maker: DecisionMaker,
        bundle: Bundle,
        task: Task,
        given: tuple[str, int, int, int],
        changes: Changes,
        measured: MeasuredJoints | None = None,
        instruct: Callable[[str], str] | None = None,
    ) -> None:
        self._maker, self._bundle, self._task, self._changes = maker, bundle, task, changes
        self._measured, self._instruct = measured, instruct
        self._decoder, self._seed = given[:3], given[3]
        self._stream: int | None = None

    @property
    def setting(self) -> dict[str, Any]:
        """Decoder, action horizon and seed of the last decision."""
        name, _, horizon = self._decoder
        return {"decoder": name, "action_horizon": horizon, "seed": self._seed}

    @property
    def history(self) -> History:
        """The observed steps that the policy wants."""
        return self._maker.history

    def heard(self, item: BagMessage) -> None:
        """Take a message: how safety slowed a decision, so that the next one is made as then, or where the joints are.

        Any other is ignored.
        """
        message = item.message
        if item.topic == ARM_STATUS and self._measured is not None:
            self._measured.take(message)
        if item.topic == SAFETY_CHUNK and getattr(message, "scale", 1.0) != 1.0 and message.source == POLICY:
            self._maker.forwarded(recorded_chunk(message))

    def decide(self, cue: Cue, observation: Observation) -> DecisionRecord | None:
        """Decide on an observation as the recorded system did. None: the decoder goes on with its last decision.

        Raises:
            DecodingError: the recorded decoder does not exist here, or cannot decode.
        """
        setting = cue.recorded.setting if cue.recorded is not None else None
        if self._instruct is not None:
            self._instruct(cue.text)
        self._prepare(setting)
        seed = self._seed_of(setting)
        if cue.stream != self._stream or seed != self._seed:
            self._stream, self._seed = cue.stream, seed
            self._maker.reset(seed, cue.stream)
        if setting is not None:
            self._maker.delay = setting.delay
            self._maker.limit = setting.samples if self._changes.samples is None else None
        return self._maker.decide(observation)

    def _seed_of(self, setting: Setting | None) -> int:
        if self._changes.seed is not None:
            return self._changes.seed
        return self._seed if setting is None else setting.seed

    def _prepare(self, setting: Setting | None) -> None:
        """Take another decoder where the recording did, unless the replay has its own."""
        name, samples, horizon = self._decoder
        if setting is not None:
            name, horizon = setting.decoder, setting.action_horizon
            samples = max(samples, setting.samples)  # the limit makes it fewer
        changes = self._changes
        wanted = (remembered_as(changes.decoder, name), changes.samples or samples, changes.action_horizon or horizon)
        if wanted != self._decoder:
            self._maker.use(bundle_decoder(wanted[0], self._bundle, self._task, *wanted[1:]))
            self._decoder = wanted
            self._stream = None


class Joints:
    """Follows the joints of a recording, where the policy predicts poses and the system commands joints.

    What screens its samples depends on where the joints were when the motion began, and on the chunk before.

    Args:
        chunks: makes the policy's chunks into those of joints.

    Attributes:
        made: the newest decision as a chunk of joints; None: it is out of reach.
    """

    topics = (ARM_STATUS,)

    def __init__(self, chunks: TaskChunks) -> None:
        self._chunks = chunks
        self.made: ActionChunk | None = None
        self._measured: Any = None
        self._stream: int | None = None

    def take(self, item: BagMessage) -> None:
        """Take a message; any but the arm's status is ignored."""
        if item.topic == ARM_STATUS:
            self._measured = item.message.joint_positions

    def before(self, cue: Cue) -> None:
        """Begin a motion where the joints are, if the cue is the first of one."""
        if cue.stream != self._stream and self._measured is not None:
            self._stream = cue.stream
            self._chunks.begin(self._measured, cue.stamp_ns)

    def after(self, record: DecisionRecord) -> None:
        """Make the decision into a chunk of joints, as the node that published it did."""
        self.made = None
        with suppress(ArmError):
            self.made = self._chunks.of(record.chunk)


def lockstep_decider(
    task: Task,
    bundle: Bundle,
    policy: Policy,
    given: tuple[str, int, int, int],
    changes: Changes,
    screen: Screen | None = None,
) -> Decider:
    """Return what decides in a lockstep replay.

    Args:
        task: that the policy was made for.
        bundle: its policy.
        policy: draws the samples.
        given: decoder, N, action horizon and seed where the recording says none.
        changes: what differs from the recording.
        screen: what screens its samples. None: the limits of the task.

    Raises:
        DecodingError: the decoder does not exist, or the policy cannot serve it.
    """
    decoder = bundle_decoder(given[0], bundle, task, given[1], given[2])
    screen, measured = screen or Screen(task), MeasuredJoints()
    looks = screen.passes, screen.free, screen.rest, measured.tells(screen)
    maker = DecisionMaker(policy, decoder, task, given[3], True, time.monotonic_ns, *looks)
    return Decider(maker, bundle, task, given, changes, measured, policy.capabilities.instruct)


def replay(
    reader: BagReader,
    task: Task,
    decider: Decider,
    parity: Parity,
    progress: Callable[[int], None] = lambda stamp: None,
    joints: Joints | None = None,
) -> Iterator[tuple[Cue, DecisionRecord | None]]:
    """Yield every moment of a bag with what is decided there.

    The decision is None where the recording lacks a sample, or the decoder goes on with its last decision.

    Args:
        reader: the bag.
        task: what is observed.
        decider: decides.
        parity: takes the comparison with the recording.
        progress: called with the time of receipt of each message, ns.
        joints: where poses become joints.

    Raises:
        RecordingError: as :func:`find_decision_times`, or the bag is damaged or has no moment to decide at.
        DecodingError: as :meth:`Decider.decide`.
    """
    times, found = find_decision_times(reader, task, decider.history), False
    for cue in _cues(reader, times, progress, decider, joints):
        found = True
        yield cue, _decided(cue, decider, parity, joints)
    if not found:
        raise RecordingError(
            f"bag {reader.path} has no moment to decide at; valid is one with decisions, or frames of all cameras"
        )


def _cues(
    reader: BagReader,
    times: DecisionTimes,
    progress: Callable[[int], None],
    decider: Decider,
    joints: Joints | None,
) -> Iterator[Cue]:
    topics = tuple(dict.fromkeys((*times.topics, SAFETY_CHUNK, *(joints.topics if joints is not None else ()))))
    for item in reader.messages(topics):
        progress(item.stamp_ns)
        decider.heard(item)
        if joints is not None:
            joints.take(item)
        if item.topic in times.topics:
            yield from times.take(item)
    yield from times.finish()


def _decided(cue: Cue, decider: Decider, parity: Parity, joints: Joints | None) -> DecisionRecord | None:
    if cue.observation is None:
        parity.miss(cue.stream, cue.problem)
        return None
    if joints is not None:
        joints.before(cue)
    record = decider.decide(cue, cue.observation)
    if record is None:
        if cue.recorded is not None:
            parity.miss(cue.stream, WENT_ON)
    else:
        choice = record.choice
        parity.add(cue.stream, cue.recorded, cue.observation.digest(), choice.actions, choice.index)
        if joints is not None:
            joints.after(record)
    return record


def recorded_chunk(message: Any) -> ActionChunk:
    """Return the chunk of a recorded message, as it is; in bags before chunks were slowed its scale is 1."""
    rows = np.asarray(message.actions, dtype=np.float64).reshape(message.steps, message.dims)
    scale = float(getattr(message, "scale", 1.0))
    return ActionChunk(stamp_ns(message), stamp_to_ns(message.dt), rows, source=message.source, scale=scale)
