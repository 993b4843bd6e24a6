import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


class Server:
    """A simulated robot in its own process, which a test may freeze, kill or give a command of the pendant."""

    def __init__(self, script: str, *arguments: str) -> None:
        path = Path(__file__).with_name(script)
        self.process = subprocess.Popen(
            [sys.executable, str(path), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.address = self.process.stdout.readline().strip()
        assert self.address, "the simulated robot did not start"

    def ask(self, line: str) -> str:
        """Give a command and return the answer."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def freeze(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def _servers() -> Iterator[Callable[..., Server]]:
    running: list[Server] = []

    def start(*command: str) -> Server:
        running.append(Server(*command))
        return running[-1]

    yield start
    for server in running:
        server.close()


# Start simulated robots by script and arguments; they end with the test or with its module.
own_servers = pytest.fixture(_servers)
module_servers = pytest.fixture(_servers, scope="module")
