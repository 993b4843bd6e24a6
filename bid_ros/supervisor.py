"""Runs the nodes of a system as processes where ROS's own launch is not installed."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import IO, Any

from honcho.manager import Manager

from bid_ros.progress import PROGRESS

PLAIN_PROGRESS_S = 2.0


class LogPrinter:
    """Sends each process's lines to its own file and those of the foreground process to the terminal.

    Lines that start with the progress mark overwrite each other on a terminal; elsewhere one is kept every few seconds.
    """

    width = 0  # honcho aligns prefixes with it

    def __init__(self, folder: Path, foreground: str, output: IO[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._foreground = foreground
        self._output = output
        self._files: dict[str, IO[str]] = {}
        self._open_line = False
        self._progress_at = float("-inf")

    def write(self, message: Any) -> None:
        """Take one honcho message."""
        text = message.data.decode("utf-8", "replace") if isinstance(message.data, bytes) else message.data
        name = message.name or "system"
        for line in text.splitlines():
            self._log(name, f"{message.time:%H:%M:%S.%f} {line.lstrip(PROGRESS)}")
            if name == self._foreground or line.startswith("error: "):
                self._show(line)

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()

    def _log(self, name: str, line: str) -> None:
        if name not in self._files:
            self._files[name] = (self._folder / f"{name}.log").open("w", buffering=1)
        print(line, file=self._files[name])

    def _show(self, line: str) -> None:
        if line.startswith(PROGRESS):
            if not self._output.isatty():
                if time.monotonic() - self._progress_at >= PLAIN_PROGRESS_S:
                    self._progress_at = time.monotonic()
                    print(line[1:], file=self._output, flush=True)
            else:
                self._output.write(f"\r\x1b[K{line[1:]}")
                self._output.flush()
                self._open_line = True
            return
        end = "\n" if self._open_line else ""
        self._open_line = False
        print(f"{end}{line}", file=self._output, flush=True)


class FirstToEnd(Manager):  # type: ignore[misc]  # honcho has no types
    """Honcho's manager, which also remembers whose end ended the system."""

    first = ""

    def terminate(self) -> None:
        """End the other processes; called when the first one has ended, or by a signal."""
        ended = (name for name, process in self._processes.items() if process.get("returncode") is not None)
        self.first = self.first or next(ended, "")
        super().terminate()


def supervise(commands: dict[str, str], env: dict[str, str], logs: Path, foreground: str) -> int:
    """Run the commands until the first one ends, then end the others; return the first one's exit status.

    A run is only complete when the foreground process ends it: if another one ends first the status is never 0.

    Args:
        commands: shell line per process name.
        env: added to the environment of each.
        logs: folder of one log file per process.
        foreground: process whose output goes to the terminal (standard error, so that results can be piped).
    """
    printer = LogPrinter(logs, foreground, sys.stderr)
    manager = FirstToEnd(printer)
    for name, command in commands.items():
        (logs / f"{name}.log").touch()  # one for each, also of a process that says nothing
        manager.add_process(name, command, env={**os.environ, **env})
    try:
        manager.loop()
    finally:
        printer.close()
    status = int(manager.returncode or 0)
    if manager.first in ("", foreground) or status == 2:
        return status  # with status 2 a process has said itself what was wrong
    print(f"error: {manager.first} ended first (status {status}); see {logs / manager.first}.log", file=sys.stderr)
    return status if status > 0 else 1
