"""Watches the processes of a running system."""

import threading
import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

import numpy as np

from bid_ros.system.description import command_line, describe, environment
from bid_ros.system.folder import System
from bid_ros.system.preparation import prepare
from bid_ros.system.processes import supervise
from bid_ros.system.run import RunArguments
from results.system.usage import usage_by_session

PERIOD_S: Final = 0.5
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


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
    """Looks at the processes that it is told of, again and again, in a thread of its own, until its block ends.

    Args:
        period_s: s between two looks.

    Attributes:
        courses: the fields of :class:`Usage` by node.
    """

    def __init__(self, period_s: float = PERIOD_S) -> None:
        self._period_s = period_s
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
        while not self._ended.wait(self._period_s):
            names = dict(self._names)
            stamp_ns, found = time.time_ns(), usage_by_session(names)
            for process, used in found.items():
                self.courses[names[process]].add(stamp_ns, astuple(used))


def run_watched(system: System, arguments: RunArguments, watch: Watch, own: Mapping[str, str] = NOTHING) -> int:
    """Run a system as ``bid up`` does, with its nodes watched; return the exit status.

    Args:
        system: of the run.
        arguments: of the run.
        watch: told of each node.
        own: added to the environment of the nodes.
    """
    specs, out = describe(system, arguments), Path(arguments.out)
    prepare(specs, out)
    commands = {spec.name: command_line(spec, out / "parameters") for spec in specs}
    with watch:
        return supervise(commands, {**environment(), **own}, out / "logs", "episode", started=watch.started)
