"""Runs the nodes of a system as processes where ROS's own launch is not installed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO, Any

from honcho.manager import Manager

PROGRESS = "\x1f"


class LogPrinter:
    """Sends each process's lines to its own file and those of the foreground process to the terminal.

    Lines that start with the progress mark overwrite each other on a terminal and are dropped elsewhere.
    """

    width = 0  # honcho aligns prefixes with it

    def __init__(self, folder: Path, foreground: str, output: IO[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._foreground = foreground
        self._output = output
        self._files: dict[str, IO[str]] = {}
        self._open_line = False

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
            if self._output.isatty():
                self._output.write(f"\r\x1b[K{line[1:]}")
                self._output.flush()
                self._open_line = True
            return
        end = "\n" if self._open_line else ""
        self._open_line = False
        print(f"{end}{line}", file=self._output, flush=True)


def supervise(commands: dict[str, str], env: dict[str, str], logs: Path, foreground: str) -> int:
    """Run the commands until the first one ends, then end the others; return the first one's exit status.

    Args:
        commands: shell line per process name.
        env: added to the environment of each.
        logs: folder of one log file per process.
        foreground: process whose output goes to the terminal (standard error, so that results can be piped).
    """
    printer = LogPrinter(logs, foreground, sys.stderr)
    manager = Manager(printer)
    for name, command in commands.items():
        manager.add_process(name, command, env={**os.environ, **env})
    try:
        manager.loop()
    finally:
        printer.close()
    return int(manager.returncode or 0)
