"""The cost of each node of a run."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from bid_ros.core.chunk import NANOSECONDS
from bid_ros.recording.reader import BagReader
from results.system.budget import Budget, excess
from results.system.record import counted, working_time
from results.system.usage import Usage
from results.system.watch import Course

AROUND: Final = ("camera", "safety", "arm", "recorder", "episode")
"""The nodes around the policy."""


@dataclass(frozen=True)
class Cost:
    """What a node costs, per second of the time in which its system works. None: the node does not count it.

    Attributes:
        cpu, middleware: CPU time in % of a core, and the part of it in the threads of the middleware.
        executor: CPU time of the executor itself, outside callbacks, in % of the node's.
        messages_in, messages_out: messages a second.
        waits, preemptions: voluntary and involuntary context switches a second.
        memory_mb: most memory, MB.
    """

    cpu: float
    middleware: float
    executor: float | None
    messages_in: float | None
    messages_out: float | None
    waits: float
    preemptions: float
    memory_mb: float

    def excess(self, node: str) -> list[str]:
        """Return what exceeds the budget of the node, a sentence each."""
        return excess(node, Budget(self.cpu, self.messages_in or 0.0, self.messages_out or 0.0))


def costs(courses: Mapping[str, Course], bag: Path) -> dict[str, Cost]:
    """Return the cost of each node from its first preparation of an episode to the last end of one.

    Args:
        courses: the fields of :class:`Usage` by node.
        bag: recording of the run.

    Raises:
        RecordingError: the bag cannot be read, or no episode was completed.
    """
    with BagReader(bag) as reader:
        begin, end = working_time(reader)
        counters = counted(reader)
    watched = {name: course for name, course in courses.items() if course.stamps_ns}
    return {name: _cost(course, counters.get(name), begin, end) for name, course in watched.items()}


def _cost(course: Course, counters: Course | None, begin: int, end: int) -> Cost:
    seconds = max((end - begin) / NANOSECONDS, 1e-9)
    first, last = Usage(*course.at(begin)), Usage(*course.at(end))
    cpu_s = last.cpu_s - first.cpu_s
    executor = arrived = sent = None
    if counters is not None:
        arrived, sent, executor_s = (
            after - before for before, after in zip(counters.at(begin), counters.at(end), strict=True)
        )
        executor, arrived, sent = 100 * executor_s / max(cpu_s, 1e-9), arrived / seconds, sent / seconds
    return Cost(
        cpu=100 * cpu_s / seconds,
        middleware=100 * (last.middleware_s - first.middleware_s) / seconds,
        executor=executor,
        messages_in=arrived,
        messages_out=sent,
        waits=(last.waits - first.waits) / seconds,
        preemptions=(last.preemptions - first.preemptions) / seconds,
        memory_mb=last.memory_mb,
    )


def mean(runs: list[dict[str, Cost]]) -> dict[str, Cost]:
    """Return the mean cost of each node over runs of the same system."""
    found = {}
    for name in runs[0]:
        rows = [asdict(run[name]) for run in runs if name in run]
        found[name] = Cost(**{key: _mean([row[key] for row in rows]) for key in rows[0]})
    return found


def _mean(values: list[Any]) -> Any:
    return None if None in values else fmean(values)


def around(nodes: Mapping[str, Cost]) -> float:
    """Return the CPU time of the nodes around the policy together, in % of a core."""
    return sum(nodes[name].cpu for name in AROUND if name in nodes)
