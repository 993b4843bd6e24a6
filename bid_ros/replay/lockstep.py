"""Replays a bag in one process: no ROS, no clock, as fast as the policy decides."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bid_ros.core.errors import RecordingError
from bid_ros.core.task import Task
from bid_ros.decoding import Decoder
from bid_ros.policy.base import Bundle, Policy
from bid_ros.policy.decide import DecisionMaker, DecisionRecord, bundle_decoder
from bid_ros.recording.reader import BagReader
from bid_ros.replay.cue import Cue
from bid_ros.replay.decider import Changes, Decider
from bid_ros.replay.moments import find_moments
from bid_ros.replay.parity import WENT_ON, Parity
from bid_ros.safety.screen import Screen


@dataclass(frozen=True, eq=False)
class Replayed:
    """A moment of a recording, and what was decided there again.

    Attributes:
        cue: the moment.
        record: the decision; None where the recording lacks a sample, or the decoder goes on with its last decision.
    """

    cue: Cue
    record: DecisionRecord | None


def lockstep_decider(
    task: Task, bundle: Bundle, policy: Policy, given: tuple[str, int, int, int], changes: Changes
) -> Decider:
    """Return what decides in a lockstep replay.

    Args:
        task: the task.
        bundle: its policy.
        policy: draws the samples.
        given: decoder, N, action horizon and seed where the recording says none.
        changes: what differs from the recording.

    Raises:
        DecodingError: the decoder does not exist, or the policy cannot serve it.
    """

    def build(name: str, samples: int, horizon: int) -> Decoder:
        return bundle_decoder(name, bundle, task, samples, horizon)

    decoder = bundle_decoder(given[0], bundle, task, given[1], given[2])
    maker = DecisionMaker(policy, decoder, task, given[3], screen=Screen(task).passes)
    return Decider(maker, build, given, changes)


def replay(
    reader: BagReader,
    task: Task,
    decider: Decider,
    parity: Parity,
    progress: Callable[[int], None] = lambda stamp: None,
) -> Iterator[Replayed]:
    """Yield every moment of a bag with what is decided there.

    Args:
        reader: the bag.
        task: what is observed.
        decider: decides.
        parity: takes the comparison with the recording.
        progress: called with the time of receipt of each message, ns.

    Raises:
        RecordingError: as :func:`find_moments`, or the bag is damaged or has no moment to decide at.
        DecodingError: as :meth:`Decider.decide`.
    """
    moments, found = find_moments(reader, task, decider.history), False
    for item in reader.messages(moments.topics):
        progress(item.stamp_ns)
        for cue in moments.take(item):
            found = True
            yield _decided(cue, decider, parity)
    for cue in moments.finish():
        found = True
        yield _decided(cue, decider, parity)
    if not found:
        raise RecordingError(nothing_to_decide(reader))


def nothing_to_decide(reader: BagReader) -> str:
    """Return the sentence about a bag in which there is no moment to decide at."""
    return f"bag {reader.path} has no moment to decide at; valid is one with decisions, or frames of all cameras"


def _decided(cue: Cue, decider: Decider, parity: Parity) -> Replayed:
    if cue.observation is None:
        parity.miss(cue.stream, cue.problem)
        return Replayed(cue, None)
    record = decider.decide(cue, cue.observation)
    if record is None:
        if cue.recorded is not None:
            parity.miss(cue.stream, WENT_ON)
    else:
        choice = record.choice
        parity.add(cue.stream, cue.recorded, cue.observation.digest(), choice.actions, choice.index)
    return Replayed(cue, record)
