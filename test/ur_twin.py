"""A UR twin in a process of its own: ur_rtde's constructors hold Python's lock while they wait for its answers."""

import itertools
import os
import queue
import subprocess
import tempfile
import threading
from pathlib import Path

from fork_server import fork_server

_NUMBERS = itertools.count(1)
START_LIMIT_S = 30.0


def free_address() -> str:
    """A loopback address that no other test process takes."""
    pid = os.getpid()
    return f"127.{64 + (pid >> 8) % 128}.{pid % 256}.{next(_NUMBERS)}"


class TwinProcess:
    """A running twin, its pendant and its log."""

    def __init__(self, *options: str, address: str | None = None) -> None:
        self.address = address or free_address()
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        (their_input, ours), (output, theirs) = os.pipe(), os.pipe()
        self._process = fork_server().start(
            "bid_ros.robots.ur.twin.pendant",
            ["--address", self.address, *options],
            (their_input, theirs, self._log.fileno()),
        )
        os.close(their_input)
        os.close(theirs)
        self._input, self._output = os.fdopen(ours, "w"), os.fdopen(output)
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        assert self._answers.get(timeout=START_LIMIT_S) == f"ready {self.address}", self.log()

    def pendant(self, line: str) -> str:
        """Press a button and return the answer."""
        print(line, file=self._input, flush=True)
        return self._answers.get(timeout=5.0)

    def log(self) -> str:
        """Everything the twin said so far."""
        return Path(f"/proc/self/fd/{self._log.fileno()}").read_text()

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """End the twin and wait for it."""
        self._input.close()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._thread.join()
        self._output.close()
        self._log.close()

    def _read(self) -> None:
        for line in self._output:
            self._answers.put(line.strip())
        self._answers.put("")
