"""The ``bid`` command in a process that is forked, see ``fork_server``."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from fork_server import ForkedProcess, fork_server


def start_bid(*arguments: str, output: Path) -> ForkedProcess:
    """Start ``bid`` without an input; what it says goes to a file."""
    with Path("/dev/null").open("rb") as nothing, output.open("wb") as file:
        return fork_server().start("bid_ros.cli", arguments, (nothing.fileno(), file.fileno(), file.fileno()))


def bid(*arguments: str, limit_s: float = 40.0, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run ``bid`` to its end with ``text`` as its input.

    Raises:
        subprocess.TimeoutExpired: it ran for longer than ``limit_s``, and was killed.
    """
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        given.write(text.encode())
        given.seek(0)
        streams = (given.fileno(), output.fileno(), errors.fileno())
        process = fork_server().start("bid_ros.cli", arguments, streams)
        try:
            status = process.wait(limit_s)
        finally:
            process.kill()
        # The streams share their places with the process.
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(arguments, status, output.read().decode(), errors.read().decode())
