import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


class Server:
    """A simulated robot in its own process, which a test may freeze or kill."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("franky_sim_server.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.address = self.process.stdout.readline().strip()
        assert self.address, "the simulated robot did not start"

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.fixture
def own_server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()
