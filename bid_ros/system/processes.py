"""Runs the nodes of a system as processes, where ROS's own launch is not installed."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from io import FileIO
from pathlib import Path
from typing import Final

from bid_ros.system.ended import Ended, forget_end, note_end
from bid_ros.system.ending import ALIVE, END_S, HUNG_S, SIGNALS
from bid_ros.system.progress import PROGRESS

PLAIN_PROGRESS_S = 2.0
SILENT_S: Final = HUNG_S - 5.0  # before a process that is woken ends itself by force and closes nothing
OUTLIVED: Final = ("arm", "episode", "arms_episode")  # nodes for whose last messages others wait, which asks the graph
AGAIN_S: Final = 0.2  # s between two looks at them
KILL_S: Final = END_S + 5.0  # from asking the processes to end until those that did not are killed


@dataclass
class ProgressTerminal:
    """Shows lines to whoever started the run, on standard error, so that results can be piped.

    Progress lines overwrite each other on a terminal. Elsewhere one is printed every few seconds.
    """

    _open_line: bool = False
    _progress_at: float = float("-inf")

    def show(self, line: str) -> None:
        """Show a line; a terminal that is gone, as after its window was closed, is no error."""
        with contextlib.suppress(OSError):
            if not line.startswith(PROGRESS):
                end, self._open_line = "\n" * self._open_line, False
                print(f"{end}{line}", file=sys.stderr, flush=True)
            elif sys.stderr.isatty():
                self._open_line = True
                print(f"\r\x1b[K{_within(line[1:])}", end="", file=sys.stderr, flush=True)
            elif time.monotonic() - self._progress_at >= PLAIN_PROGRESS_S:
                self._progress_at = time.monotonic()
                print(line[1:], file=sys.stderr, flush=True)


def _within(text: str) -> str:
    """Return what of a line fits into the terminal: what wraps around is not overwritten, and each one would stay."""
    columns = os.get_terminal_size(sys.stderr.fileno()).columns
    return text if not columns or len(text) < columns else f"{text[: max(0, columns - 2)]}…"


@dataclass
class _Child:
    """One process, what comes from it, its log, and when it last gave a sign of life (None: it gives none)."""

    name: str
    process: asyncio.subprocess.Process
    log: FileIO
    output: FileIO
    alive: FileIO
    alive_at: float | None = None
    line: bytes = b""
    ended: asyncio.Task[int] = field(init=False)

    def send(self, kind: int) -> None:
        """Send a signal to the process, which runs, and to its children."""
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            os.killpg(self.process.pid, kind)


@dataclass
class Supervisor:
    """Runs processes until the first one ends, one of them hangs, or a signal comes; then ends them all.

    Args:
        logs: folder of one log file per process.
        foreground: process that ends a run that is complete, and whose output goes to the terminal.
        hung_s: s without a sign of life of a process that gave one, after which it counts as hung.
        kill_s: s to end in, then a process is killed.
        started: told name and process id of each process.
    """

    logs: Path
    foreground: str
    hung_s: float
    kill_s: float
    started: Callable[[str, int], None]
    _terminal: ProgressTerminal = field(default_factory=ProgressTerminal, init=False)
    _children: list[_Child] = field(default_factory=list, init=False)
    _signal: asyncio.Future[int] = field(init=False)

    async def run(self, commands: Mapping[str, str], env: Mapping[str, str]) -> int:
        """Run the shell lines ``commands``, by name, with ``env`` added; return the exit status of the run."""
        loop = asyncio.get_running_loop()
        self._signal = loop.create_future()
        for kind in SIGNALS:
            loop.add_signal_handler(kind, self._on_signal, kind)
        try:
            for name, command in commands.items():
                self._children.append(await self._start(name, command, {**os.environ, **env}))
            status = await self._first_end()
        finally:
            await self._end_all()
            if self._signal.done():  # this process ends next, and one more Ctrl-C must not disturb that
                _ignore_signals(loop)
        return status

    async def _start(self, name: str, command: str, env: Mapping[str, str]) -> _Child:
        log = (self.logs / f"{name}.log").open("wb", buffering=0)  # also for one that says nothing
        (output, their_output), (alive, their_alive) = os.pipe(), os.pipe()
        for descriptor in (output, alive):
            os.set_blocking(descriptor, False)
        try:
            process = await asyncio.create_subprocess_shell(
                command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=their_output,
                stderr=their_output,
                start_new_session=True,
                pass_fds=(their_alive,),
                env={**env, ALIVE: str(their_alive)},
            )
        finally:
            os.close(their_output)
            os.close(their_alive)
        self.started(name, process.pid)
        child = _Child(name, process, log, FileIO(output), FileIO(alive))
        child.ended = asyncio.create_task(self._follow(child))
        return child

    async def _follow(self, child: _Child) -> int:
        """Take what comes from a process until it ends; return its exit status.

        Its children may outlive it and keep its output open, so the end of the output tells nothing.
        """
        loop = asyncio.get_running_loop()
        loop.add_reader(child.output, self._on_output, child)
        loop.add_reader(child.alive, self._on_alive, child)
        status = await child.process.wait()
        while self._on_output(child):
            pass
        if child.line:
            self._write(child, child.line)
        for pipe in (child.output, child.alive):
            loop.remove_reader(pipe)
            pipe.close()
        child.log.close()
        return status

    def _on_output(self, child: _Child) -> bool:
        """Take some output of a process; return whether there was any."""
        data = _read(child.output)
        *lines, child.line = (child.line + data).split(b"\n")
        for line in lines:
            self._write(child, line)
        return bool(data)

    def _write(self, child: _Child, data: bytes) -> None:
        """Take one line of a process; a full disk loses it and nothing else."""
        line = data.decode("utf-8", "replace").rstrip("\r")
        with contextlib.suppress(OSError):
            child.log.write(f"{datetime.now():%H:%M:%S.%f} {line.lstrip(PROGRESS)}\n".encode())
        if child.name == self.foreground or line.startswith("error: "):
            self._terminal.show(line)

    def _on_alive(self, child: _Child) -> None:
        if _read(child.alive):
            child.alive_at = time.monotonic()

    def _on_signal(self, kind: int) -> None:
        if not self._signal.done():
            self._signal.set_result(kind)
        self._terminal.show(f"ending: waiting for {', '.join(child.name for child in self._running()) or 'nobody'}")

    def _running(self) -> list[_Child]:
        return [child for child in self._children if not child.ended.done()]

    async def _first_end(self) -> int:
        """Wait for what ends the run, say what it was unless it was the foreground, and return the status."""
        while True:
            ends = {child.ended for child in self._children}
            await asyncio.wait({self._signal, *ends}, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
            if self._signal.done():
                return 128 + self._signal.result()
            for child in self._children:
                if child.ended.done():
                    return self._status(Ended(child.name, child.ended.result()))
            latest = time.monotonic() - self.hung_s
            if hung := [child.name for child in self._children if child.alive_at and child.alive_at < latest]:
                self._terminal.show(f"error: {', '.join(hung)} hung: no sign of life for {self.hung_s:g} s")
                note_end(self.logs.parent, Ended(hung[0], None))
                return 1

    def _status(self, first: Ended) -> int:
        """Return the status of a run that this process ended; only the foreground can make it a success."""
        status = 1 if first.status is None else first.status
        leads = first.name == self.foreground
        if not leads or status < 0:
            note_end(self.logs.parent, first)
        if (leads and status >= 0) or status == 2:
            return status  # with status 2 a process has said itself what was wrong
        self._terminal.show(f"error: {first}; see {self.logs / first.name}.log")
        return status if status > 0 else 1

    async def _end_all(self) -> None:
        for child in self._running():
            child.send(signal.SIGTERM)
            child.send(signal.SIGCONT)  # one that is frozen hears nothing before
        outlived = [child for child in self._children if child.name.rpartition(".")[2] in OUTLIVED]
        end = time.monotonic() + self.kill_s
        while (running := self._running()) and (left := end - time.monotonic()) > 0:
            # Of a node that was killed, or whose libraries ended it, the graph tells for seconds that it is there.
            gone = all(child.ended.done() for child in outlived) and any(child.ended.result() for child in outlived)
            await asyncio.wait([child.ended for child in running], timeout=min(left, AGAIN_S) if outlived else left)
            if gone:
                for child in self._running():
                    child.send(signal.SIGTERM)
        if hung := self._running():
            names = ", ".join(child.name for child in hung)
            self._terminal.show(f"error: {names} did not end within {self.kill_s:g} s and had to be killed")
            for child in hung:
                child.send(signal.SIGKILL)
            await asyncio.wait([child.ended for child in hung])


def _ignore_signals(loop: asyncio.AbstractEventLoop) -> None:
    """Ignore the signals from here on. To block them in this thread is not enough: another one may take them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    with contextlib.suppress(KeyboardInterrupt):  # between these two lines Python's own handler holds
        for kind in SIGNALS:
            loop.remove_signal_handler(kind)
            signal.signal(kind, signal.SIG_IGN)


def _read(pipe: FileIO) -> bytes:
    """Return what waits in a pipe, nothing at its end, which is not waited for any more."""
    data = pipe.read(1 << 16)
    if data == b"":
        asyncio.get_running_loop().remove_reader(pipe)
    return data or b""


def supervise(
    commands: Mapping[str, str],
    env: Mapping[str, str],
    logs: Path,
    foreground: str,
    hung_s: float = SILENT_S,
    kill_s: float = KILL_S,
    started: Callable[[str, int], None] = lambda name, process: None,
) -> int:
    """Run the commands until the first one ends, then end the others; return the exit status of the run.

    A run is only complete when the foreground process ends it: if another one ends first the status is never 0. After
    a signal it is 128 and the signal's number. However many processes hang, this returns at most
    ``hung_s + kill_s + 3`` s after the last sign of life of one of them, and ``kill_s + 2`` s after a signal.

    Args:
        commands: shell line per process name.
        env: added to the environment of each.
        logs: folder of one log file per process.
        foreground: process whose output goes to the terminal (standard error, so that results can be piped).
        hung_s: s without a sign of life of a process that gave one (``BID_ALIVE``), after which it counts as hung.
        kill_s: s that the processes have to end in, once asked; then they are killed.
        started: told name and process id of each process; it leads a session of its own.
    """
    logs.mkdir(parents=True, exist_ok=True)
    forget_end(logs.parent)
    return asyncio.run(Supervisor(logs, foreground, hung_s, kill_s, started).run(commands, env))
