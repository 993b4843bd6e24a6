"""A system that runs for one trial: its plan, its processes, and what is left of it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

FRONT: Final = Path(__file__).with_name("front.py")
END_S: Final = 30.0  # the supervisor kills what does not end within 20 s
SUPERVISOR, DRIVER, TWIN = "supervisor", "driver", "twin"
NODES: Final = (TWIN, "camera", "safety", "arm", "policy", "recorder", "episode")
_NODE: Final = re.compile(r"__node:=(\w+)")
_DRIVER: Final = re.compile(r"bid_ros\.robots\.\w+\.process")


@dataclass
class Plan:
    """How a system is started.

    Attributes:
        system: name.
        arguments: of the run, as in ``RunArguments``.
        trace: path of the twin's trace.
        parameters: of nodes, laid over the system's, by node.
        remapped: names of topics, by node.
        before: shell words before the line of a node, such as ``ulimit -n 64;``, by node.
        further: arguments of ``NodeSpec`` for nodes that the system does not have.
        environment: added to that of every process.
        domain: ROS domain of the system.
    """

    system: str
    arguments: dict[str, Any]
    trace: str
    parameters: dict[str, dict[str, Any]] = field(default_factory=dict)
    remapped: dict[str, dict[str, str]] = field(default_factory=dict)
    before: dict[str, str] = field(default_factory=dict)
    further: list[dict[str, Any]] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    domain: int = 0


@dataclass(frozen=True)
class Process:
    """A process at one look.

    Attributes:
        pid, parent: ids; began: start time in clock ticks, which tells a process from a later one of its id.
        state: letter as in /proc; words: its command line.
    """

    pid: int
    parent: int
    began: int
    state: str
    words: str


def processes() -> Iterator[Process]:
    """Yield every process of this computer that has not ended."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parts = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if parts[0] not in "ZX":
                yield Process(int(folder.name), int(parts[1]), int(parts[19]), parts[0], words)


class RunningSystem:
    """Starts a system and knows its processes.

    Args:
        plan: of the system.
        folder: takes everything that it writes.
    """

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder = plan, folder
        file = folder / "plan.json"
        file.write_text(json.dumps(asdict(plan), indent=1))
        variables = {
            **os.environ,
            "ROS_DOMAIN_ID": str(plan.domain),
            "ROS_LOG_DIR": str(folder / "ros"),
            **plan.environment,
        }
        with (folder / "front_end.txt").open("wb") as output:
            self.front = subprocess.Popen(
                [sys.executable, str(FRONT), str(file)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=variables,
            )
        self._known: dict[tuple[int, int], str] = {}
        self.names: dict[str, int] = {}

    @property
    def out(self) -> Path:
        """Folder of the run."""
        return Path(self.plan.arguments["out"])

    def look(self) -> dict[str, int]:
        """Note the processes of the system that run now; return the ids by name."""
        every = list(processes())
        ours = {self.front.pid}
        for _ in range(4):  # front end, nodes, what nodes start, and what those start
            ours |= {process.pid for process in every if process.parent in ours}
        self.names = {SUPERVISOR: self.front.pid}
        for process in every:
            if process.pid in ours and process.pid != os.getpid():
                name = self._name(process)
                self._known[process.pid, process.began] = name
                self.names.setdefault(name, process.pid)
        return self.names

    def send(self, name: str, kind: int) -> None:
        """Send a signal to one process by its name."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.names[name], kind)

    def left(self) -> list[str]:
        """Return name and state of every process that was seen and still runs, the front end among them."""
        self.front.poll()
        alive = {(process.pid, process.began): process.state for process in processes()}
        return sorted(f"{name} ({alive[key]})" for key, name in self._known.items() if key in alive)

    def end(self) -> tuple[float, list[str]]:
        """End the system as Ctrl-C does, if it still runs; return the s that took, and what was left and is killed.

        A front end that a fault has frozen is woken first: whoever froze it would have to.
        """
        self.send(SUPERVISOR, signal.SIGCONT)
        if self.front.poll() is None:
            self.send(SUPERVISOR, signal.SIGINT)
        return self.await_end(END_S)

    def await_end(self, limit_s: float) -> tuple[float, list[str]]:
        """Wait until no process runs any more, then kill what is left; return the s and what was left."""
        begun = time.monotonic()
        while (left := self.left()) and time.monotonic() - begun < limit_s:
            time.sleep(0.1)
        took = time.monotonic() - begun
        alive = {(process.pid, process.began) for process in processes()}
        for key in self._known.keys() & alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(key[0], signal.SIGKILL)
        self.front.wait()
        return took, left

    def _name(self, process: Process) -> str:
        if process.pid == self.front.pid:
            return SUPERVISOR
        if found := _NODE.search(process.words):
            return found[1]
        return DRIVER if _DRIVER.search(process.words) else process.words[:60]
