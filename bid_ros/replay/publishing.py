"""What a replay publishes of a bag, under which names, and when it is due."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from bid_ros.core.errors import RecordingError
from bid_ros.core.task import Task
from bid_ros.core.topics import (
    COMPRESSED_IMAGE_TYPE,
    DECISION,
    DIAGNOSTICS,
    HEARTBEAT,
    IMAGE_TYPE,
    INSTRUCTION,
    POLICY_CHUNK,
    REPLAY_QOS,
    ROSOUT,
    Topic,
)
from bid_ros.recording.definitions import installed_types
from bid_ros.recording.reader import BagReader
from bid_ros.tasks.topics import system_topics

BEHIND_NS: Final = 100_000_000


class ReplayPace:
    """Holds a replay back until its next message is due. One thread waits, others may pause and step.

    Args:
        speed: times the recorded speed; 0: as fast as decisions are made.
        paused: whether it begins paused.
        clock: steady time, ns.

    Attributes:
        stalled_ns: time that decisions took longer than the recording leaves, so far.
    """

    def __init__(self, speed: float, paused: bool = False, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._speed, self._paused, self._clock = speed, paused, clock
        self._steps = 0
        self._news = threading.Condition()
        self._closing = False
        self._from: tuple[int, int] | None = None
        self.stalled_ns = 0

    @property
    def paused(self) -> bool:
        """Whether it stands until the next step."""
        return self._paused

    def pause(self, paused: bool) -> None:
        """Stand, or go on."""
        with self._news:
            self._paused, self._from = paused, None
            self._news.notify_all()

    def step(self) -> None:
        """Go on to the next decision while paused."""
        with self._news:
            self._steps += 1
            self._news.notify_all()

    def close(self) -> None:
        """Let every wait return."""
        with self._news:
            self._closing = True
            self._news.notify_all()

    def hold(self) -> bool:
        """Stand while paused, until a step is asked for. Return whether the replay goes on."""
        with self._news:
            self._news.wait_for(lambda: self._closing or not self._paused or self._steps)
            return not self._closing

    def wait(self, stamp_ns: int) -> bool:
        """Wait until a message is due that was received at ``stamp_ns``. Return whether the replay goes on.

        A replay that has fallen behind by more than :data:`BEHIND_NS` goes on from there: it does not rush.
        """
        if not self.hold():
            return False
        with self._news:
            if self._paused or not self._speed:
                return not self._closing
            now_ns = self._clock()
            if self._from is None:
                self._from = now_ns, stamp_ns
            begun_ns, first_ns = self._from
            due_ns = begun_ns + round((stamp_ns - first_ns) / self._speed)
            if due_ns < now_ns - BEHIND_NS:
                self.stalled_ns += now_ns - due_ns
                self._from = now_ns, stamp_ns
            while (left := due_ns - self._clock()) > 0 and not self._closing:
                self._news.wait(left / 1e9)
            return not self._closing

    def stepped(self) -> None:
        """Note that a decision was made: a step is done."""
        with self._news:
            self._steps = max(0, self._steps - 1)


MADE_ANEW: Final = (DECISION, INSTRUCTION, POLICY_CHUNK)
OF_THE_NODES: Final = (HEARTBEAT, DIAGNOSTICS, ROSOUT)
"""What every node says of itself: those of the replay do so too."""


@dataclass(frozen=True)
class Published:
    """A topic of a bag that is published again.

    Attributes:
        name: relative name, so that a replay never publishes where a live system listens.
        topic: its type and quality of service.
        packed: whether its images are compressed in the bag.
    """

    name: str
    topic: Topic
    packed: bool = False


def published_topics(reader: BagReader, task: Task) -> tuple[dict[str, Published], list[str]]:
    """Return the topics to publish by their recorded names, and a reason for each topic that is left out.

    Args:
        reader: the bag.
        task: whose topics keep their own names.

    Raises:
        RecordingError: a topic of an observation cannot be published; or the bag is one of ROS 1.
    """
    if not reader.is_ros2:
        raise RecordingError(f"bag {reader.path} is of ROS 1; valid for live nodes is one of ROS 2: leave out --nodes")
    known = system_topics(task)
    own = {reader.recorded_name(name): name for name in known}
    left: list[str] = []
    found: dict[str, Published] = {}
    for name, type_name in reader.topics.items():
        relative = own.get(name, name.lstrip("/"))
        if relative in (*MADE_ANEW, *OF_THE_NODES):
            continue
        if problem := _problem(reader, type_name):
            left.append(f"{name} is left out: {problem}")
            continue
        qos = known[relative].qos if relative in known else REPLAY_QOS
        # Nothing may be lost between two decisions, and a best-effort publisher loses what nobody takes at once.
        qos = replace(qos, depth=max(qos.depth, REPLAY_QOS.depth), reliability="reliable")
        packed = type_name == COMPRESSED_IMAGE_TYPE and relative in known
        found[name] = Published(relative.lstrip("/"), Topic(IMAGE_TYPE if packed else type_name, qos), packed)
    return found, left


def _problem(reader: BagReader, type_name: str) -> str:
    """Return why messages of a type cannot be published; empty if they can."""
    try:
        installed = installed_types(type_name)
    except RecordingError as error:
        return str(error)
    return "" if reader.defines(installed) else f"the recorded {type_name} differs from the installed one"
