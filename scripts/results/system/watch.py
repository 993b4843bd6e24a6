"""Watches the processes of a running system."""

import threading
import time
from dataclasses import astuple, dataclass, field
from typing import Final, Self

import numpy as np

from results.system.usage import usage_by_session

PERIOD_S: Final = 0.5


@dataclass(frozen=True)
class Course:
    """Counters of one node over time.

    Attributes:
        stamps_ns: wall time of each look, ns.
        values: what was found, the same counters each time.
    """

    stamps_ns: list[int] = field(default_factory=list)
    values: list[tuple[float, ...]] = field(default_factory=list)

    def add(self, stamp_ns: int, values: tuple[float, ...]) -> None:
        """Append a look. No counter falls: a process that ends loses those of its threads first."""
        before = self.values[-1] if self.values else values
        self.stamps_ns.append(stamp_ns)
        self.values.append(tuple(map(max, before, values)))

    def at(self, stamp_ns: int) -> tuple[float, ...]:
        """Return the counters at a time, linear between two looks."""
        return tuple(float(np.interp(stamp_ns, self.stamps_ns, part)) for part in zip(*self.values, strict=True))


class Watch:
    """Looks at the processes that it is told of, twice a second, in a thread of its own, until its block ends.

    Attributes:
        courses: the fields of :class:`Usage` by node.
    """

    def __init__(self) -> None:
        self.courses: dict[str, Course] = {}
        self._names: dict[int, str] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def started(self, name: str, process: int) -> None:
        """Note that the process of a node has started; it leads a session."""
        self._names[process] = name
        self.courses[name] = Course()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(PERIOD_S):
            names = dict(self._names)
            stamp_ns, found = time.time_ns(), usage_by_session(names)
            for process, used in found.items():
                self.courses[names[process]].add(stamp_ns, astuple(used))
