import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from fork_server import ForkedProcess, fork_server
from real_time import real_time


@pytest.fixture(autouse=True, scope="session")
def forked_processes_of_arms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fork the process that drives a robot, where a test drives one itself: else each connection imports for 0.6 s."""
    nothing = tmp_path_factory.mktemp("fork_server") / "nothing.py"
    nothing.touch()
    # Now: it has the priority that a process has, and no test with a limit of time waits for its imports.
    fork_server().start(str(nothing), []).wait()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bid_ros.robots.link._spawn", fork_arm_process)
        yield


@pytest.fixture(autouse=True, scope="module")
def _in_real_time(forked_processes_of_arms: None) -> Iterator[None]:
    """A client that is held up for 0.2 s stops its robot, as it should."""
    with real_time(5):
        yield


_ARM_PROCESSES: list[ForkedProcess] = []


def fork_arm_process(module: str, memory: int, requests: int) -> ForkedProcess:
    _ARM_PROCESSES.append(fork_server().start(module, [memory, requests], (0, 2, 2)))
    return _ARM_PROCESSES[-1]


@pytest.fixture
def newest_arm_pid() -> Callable[[], int]:
    """Return the id of the process that drives the robot which was connected last."""
    return lambda: _ARM_PROCESSES[-1].pid


def running(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Server:
    """A simulated robot in its own process, which a test may freeze, kill or give a command of the pendant."""

    def __init__(self, script: str, *arguments: str) -> None:
        (their_input, ours), (output, theirs) = os.pipe(), os.pipe()
        path = str(Path(__file__).with_name(script))
        self.process = fork_server().start(path, arguments, (their_input, theirs, 2))
        os.close(their_input)
        os.close(theirs)
        self._input, self._output = os.fdopen(ours, "w"), os.fdopen(output)
        self.address = self._output.readline().strip()
        assert self.address, "the simulated robot did not start"

    def ask(self, line: str) -> str:
        """Give a command and return the answer."""
        print(line, file=self._input, flush=True)
        return self._output.readline().strip()

    def freeze(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._input.close()
        self._output.close()


class Owner:
    """A program beside these tests that drives a robot, and what it prints."""

    def __init__(self, script: str, *arguments: str) -> None:
        output, theirs = os.pipe()
        self.process = fork_server().start(str(Path(__file__).parent / script), arguments, (0, theirs, 2))
        os.close(theirs)
        self._output = os.fdopen(output)

    def line(self) -> str:
        return self._output.readline().strip()

    def child(self) -> int:
        """Return the id of the process that drives its robot."""
        pid = self.process.pid
        (child,) = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return child

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._output.close()


Program = TypeVar("Program", Owner, Server)


def _started(kind: Callable[..., Program]) -> Iterator[Callable[..., Program]]:
    running: list[Program] = []

    def start(*command: str) -> Program:
        running.append(kind(*command))
        return running[-1]

    yield start
    for program in running:
        program.close()


@pytest.fixture
def owners() -> Iterator[Callable[..., Owner]]:
    """Start programs by script and arguments; they are killed at the end of the test."""
    yield from _started(Owner)


def _servers() -> Iterator[Callable[..., Server]]:
    yield from _started(Server)


# Start simulated robots by script and arguments; they end with the test or with its module.
own_servers = pytest.fixture(_servers)
module_servers = pytest.fixture(_servers, scope="module")
