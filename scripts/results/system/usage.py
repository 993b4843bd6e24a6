"""CPU time, context switches and memory of processes, as the kernel counts them."""

import os
from collections.abc import Collection
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, Self

_TICK: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_MIDDLEWARE: Final = "dds."  # begins the names of Fast DDS's threads
# Fields of /proc/PID/stat after the command in parentheses, which begin with the third of proc_pid_stat(5).
_SESSION, _USER, _SYSTEM, _RSS = 3, 11, 12, 21


@dataclass(frozen=True)
class Usage:
    """What a node has used since its start.

    Attributes:
        cpu_s: CPU time, s.
        middleware_s: share of it in the threads of Fast DDS, s.
        waits, preemptions: voluntary and involuntary context switches.
        memory_mb: memory in use, MB; shared pages count.
    """

    cpu_s: float = 0.0
    middleware_s: float = 0.0
    waits: float = 0.0
    preemptions: float = 0.0
    memory_mb: float = 0.0

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, item.name) + getattr(other, item.name) for item in fields(self)))


def usage_by_session(sessions: Collection[int]) -> dict[int, Usage]:
    """Return what the processes of each of these sessions have used. A node's first process leads a session."""
    found: dict[int, Usage] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                session = int(_stat(folder)[_SESSION])
                if session in sessions:
                    found[session] = found.get(session, Usage()) + usage_of(folder)
            except OSError:
                continue  # it has ended meanwhile
    return found


def usage_of(folder: Path) -> Usage:
    """Return what the process of a folder of /proc has used. Raises OSError if it has ended."""
    stat = _stat(folder)
    threads = [_thread(thread) for thread in (folder / "task").iterdir()]
    cpu_s = (int(stat[_USER]) + int(stat[_SYSTEM])) / _TICK
    used = Usage(cpu_s=cpu_s, memory_mb=int(stat[_RSS]) * _PAGE / 1e6)
    return sum(threads, used)


def _stat(folder: Path) -> list[str]:
    return (folder / "stat").read_text().rpartition(")")[2].split()


def _thread(folder: Path) -> Usage:
    """Return what a thread adds to its process: the middleware's share, and context switches."""
    try:
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line)
        stat = _stat(folder)
    except OSError:
        return Usage()
    cpu_s = (int(stat[_USER]) + int(stat[_SYSTEM])) / _TICK
    return Usage(
        middleware_s=cpu_s if status["Name"].strip().startswith(_MIDDLEWARE) else 0.0,
        waits=float(status["voluntary_ctxt_switches"]),
        preemptions=float(status["nonvoluntary_ctxt_switches"]),
    )
