"""The arm's side of the process that owns a robot's connection: starts it, asks it, notices its end."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from multiprocessing import Pipe
from pathlib import Path
from typing import Final, Protocol

from bid_ros.core.errors import ArmError, RobotAwayError
from bid_ros.core.fault_words import BUSY, DRIVER
from bid_ros.core.margins import Margins
from bid_ros.robots.protocol import (
    EXIT_LOST,
    EXIT_STUCK,
    MEMORY_SIZE,
    DriverMemory,
    DriverRequest,
    DriverState,
    Mode,
    PeriodStatistics,
    TimedJoints,
    TimedSetpoint,
    shared_memory,
)
from bid_ros.robots.unheard import Unheard

ANSWER_S: Final = 1.0
CLOSE_S: Final = 2.5
START_S: Final = 30.0
POLL_S: Final = 0.002


class DriverConfig(Protocol):
    """What this side needs of a robot's configuration."""

    @property
    def address(self) -> str:
        """Host name or IP address of the robot."""

    @property
    def connect_timeout_s(self) -> float:
        """Time in s to wait until the process has connected."""


class DriverLink:
    """A process connected to a robot. Every method may be called from any thread. None waits longer than documented.

    Args:
        module: of the process, whose ``main`` takes the descriptors of memory and requests.
        config: configuration of the arm.
        release: on a person's request: clear what stops the robot, and end what else drives it.
        beat_s: time in s without a beat of the process after which it is ended.
        library: what the process drives the robot with, for errors.

    Raises:
        ArmError: nothing answers in time, the robot cannot be used, or this computer has nothing left to start a
            process with.
    """

    def __init__(self, module: str, config: DriverConfig, release: bool, beat_s: float, library: str) -> None:
        self._config = config
        self._library = library
        self._asking = threading.Lock()
        self._unheard = Unheard(beat_s)
        self._beats = Margins()
        self._mute = ""
        try:
            self._launch(module)
        except OSError as error:
            raise ArmError(
                f"{DRIVER} at {config.address} cannot be started ({error.strerror}): end what uses up this computer, "
                "or raise the limit on open files (ulimit -n), then reset"
            ) from error
        try:
            self._open(release)
        except BaseException:  # whatever it was: nobody else could end the process
            self.kill()
            raise

    def state(self) -> DriverState:
        """Return the newest state without waiting.

        Raises:
            ArmError: there is none. This cannot happen after construction.
        """
        state = self._memory.read_state()
        if state is None:
            raise ArmError(f"robot at {self._config.address} has not sent a state yet")
        return state

    def margins(self) -> Margins:
        """Return how near robot and process came to the limits of the checks, without waiting."""
        return self._memory.read_margins().joined(self._beats)

    def send(self, setpoint: TimedSetpoint | TimedJoints) -> None:
        """Pass on the newest set-point without waiting."""
        self._memory.setpoint.write(setpoint)

    def brake(self) -> None:
        """Let the arm brake to rest, without waiting for it."""
        self._memory.setpoint.write(None)

    def trouble(self, state: DriverState) -> str:
        """Return one sentence if the process is gone, or hangs and was ended; otherwise an empty text."""
        if self._mute:
            return self._mute
        code = self._process.poll()
        where, driver = f"robot at {self._config.address}", f"{DRIVER} at {self._config.address}"
        if code is None:
            silence_s = self._unheard.look(state.beat, time.monotonic_ns())
            if not self._beats.over("beat of the driver", silence_s, self._unheard.limit_s):
                return ""
            self._mute = (
                f"{driver} gave no sign of life for {silence_s:.2f} s and was ended: find what held it up, then reset"
            )
            self._process.kill()
            return self._mute
        if code == EXIT_LOST:
            return self.state().fault  # written after the state that the caller has
        if code == EXIT_STUCK:
            return f"{where} answered a command no more: check cable and power, then reset"
        how = f"by signal {-code}" if code < 0 else f"with status {code}"
        return f"{driver} was ended {how}: damaged data can make {self._library} crash; reset to start it again"

    def rests_within(self, wait_s: float) -> bool:
        """Wait up to so many s for the arm to be at rest; return whether it is, or the process is gone."""
        end = time.monotonic() + wait_s
        while (state := self.state()).mode is not Mode.IDLE and not self.trouble(state):
            if time.monotonic() > end:
                return False
            time.sleep(POLL_S)
        return True

    def ask(self, request: DriverRequest, *arguments: object, wait_s: float = ANSWER_S) -> str:
        """Send a request to the process. Return one sentence if it failed; otherwise an empty text.

        Args:
            request: what to do.
            arguments: of the request.
            wait_s: longest time to wait for the answer, s.
        """
        answer = self._ask(wait_s, request, *arguments)
        return answer if isinstance(answer, str) else ""

    def statistics(self) -> PeriodStatistics:
        """Return the statistics of the periods. Waits up to 1 s.

        Raises:
            ArmError: the process does not answer.
        """
        answer = self._ask(ANSWER_S, DriverRequest.STATISTICS)
        if not isinstance(answer, PeriodStatistics):
            raise ArmError(str(answer))
        return answer

    def close(self) -> None:
        """Bring the arm to rest, leave the robot and end the process. Waits up to 3.5 s."""
        if self._ask(ANSWER_S, DriverRequest.CLOSE) == "":
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(CLOSE_S)
        self.kill()

    def kill(self) -> None:
        """End the process at once. The robot's watchdog stops a moving arm."""
        self._process.kill()
        self._process.wait()
        with self._asking:
            self._requests.close()

    def _launch(self, module: str) -> None:
        """Start the process, last of all: until then nothing is left behind if the system has no more to give."""
        with contextlib.ExitStack() as inherited:
            descriptor = shared_memory(MEMORY_SIZE)
            inherited.callback(os.close, descriptor)
            self._memory = DriverMemory(os.dup(descriptor))
            self._requests, theirs = Pipe()
            inherited.enter_context(theirs)
            self._process = _spawn(module, descriptor, theirs.fileno())

    def _open(self, release: bool) -> None:
        limit = self._config.connect_timeout_s
        try:
            # Apart, so that a busy computer, on which the process imports for long, is no silence of the robot.
            if not self._requests.poll(START_S):
                raise ArmError(
                    f"{DRIVER} at {self._config.address} did not start within {START_S:g} s: find what {BUSY}"
                )
            self._requests.recv()
            self._requests.send((self._config, release))
            if not self._requests.poll(limit):
                raise RobotAwayError(
                    f"no answer from the robot at {self._config.address} within {limit:g} s: check its power, the "
                    "cable and the address, and that no other program is connected to it"
                )
            answer = self._requests.recv()
        except (EOFError, OSError) as error:
            code = self._process.wait()
            raise ArmError(f"{DRIVER} at {self._config.address} ended while it connected ({code})") from error
        if isinstance(answer, ArmError):
            raise answer

    def _ask(self, wait_s: float, request: DriverRequest, *arguments: object) -> object:
        mute = f"{DRIVER} at {self._config.address} does not answer; reset to start it again"
        with self._asking:
            if self._mute:
                return self._mute
            try:
                self._requests.send((request, *arguments))
                if self._requests.poll(wait_s):
                    return self._requests.recv()
            except (EOFError, OSError):
                return self._mute or mute
            # A late answer would be mistaken for the answer to the next request, and the arm may move.
            self._mute = self._mute or mute
            self._process.kill()
        return self._mute


def _spawn(module: str, memory: int, requests: int) -> subprocess.Popen[bytes]:
    root = str(Path(__file__).resolve().parents[2])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    # The library prints to standard output, which may be somebody's data: it goes where errors go.
    return subprocess.Popen(
        [sys.executable, "-m", module, str(memory), str(requests)],
        stdin=subprocess.DEVNULL,
        stdout=2,
        pass_fds=(memory, requests),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
