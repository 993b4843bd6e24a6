"""The arm's side of the process that owns a UR's connection: starts it, asks it, notices its end."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from multiprocessing import Pipe
from pathlib import Path
from typing import Final

from bid_ros.core.errors import ArmError
from bid_ros.robots.ur.config import UrConfig
from bid_ros.robots.ur.follower import TimedJoints, TimedSetpoint
from bid_ros.robots.ur.protocol import (
    EXIT_LOST,
    EXIT_STUCK,
    MEMORY_SIZE,
    PeriodStatistics,
    UrMemory,
    UrRequest,
    UrState,
    shared_memory,
)
from bid_ros.robots.ur.rtde import PORT as RTDE_PORT

PORTS: Final = ((29999, "Dashboard"), (RTDE_PORT, "RTDE"))
ANSWER_S: Final = 1.0
CLOSE_S: Final = 2.5
# The process knows best why the robot is silent. This side reports only if the process does not.
GRACE_S: Final = 0.15


class UrLink:
    """A process connected to a robot. Every method may be called from any thread. None waits longer than documented.

    Args:
        config: configuration of the arm.
        release: on a person's request: release a protective stop and end any program on the robot.

    Raises:
        ArmError: nothing answers in time, or the robot cannot be used.
    """

    def __init__(self, config: UrConfig, release: bool = False) -> None:
        self._config = config
        self._asking = threading.Lock()
        self._mute = ""
        _demand_answer(config)
        descriptor = shared_memory(MEMORY_SIZE)
        self._requests, theirs = Pipe()
        try:
            self._process = _spawn(descriptor, theirs.fileno())
        finally:
            theirs.close()
        self._memory = UrMemory(descriptor)
        try:
            self._open(release)
        except BaseException:  # whatever it was: nobody else could end the process
            self.kill()
            raise

    def state(self) -> UrState:
        """Return the newest state without waiting.

        Raises:
            ArmError: there is none. This cannot happen after construction.
        """
        state = self._memory.read_state()
        if state is None:
            raise ArmError(f"robot at {self._config.address} has not sent a state yet")
        return state

    def send(self, setpoint: TimedSetpoint | TimedJoints) -> None:
        """Pass on the newest set-point without waiting."""
        self._memory.setpoint.write(setpoint)

    def brake(self) -> None:
        """Let the arm brake to rest, without waiting for it."""
        self._memory.setpoint.write(None)

    def trouble(self, state: UrState) -> str:
        """Return one sentence if the process is gone or hangs; otherwise an empty text."""
        if self._mute:
            return self._mute
        code = self._process.poll()
        if code is None:
            silence = (time.monotonic_ns() - state.steady_ns) / 1e9
            if silence < self._config.state_timeout_s + GRACE_S:
                return ""
            where = f"robot at {self._config.address}"
            return f"{where} has been silent for {silence:.1f} s: check cable and power, then reset"
        if code == EXIT_LOST:
            return self.state().fault  # written after the state that the caller has
        if code == EXIT_STUCK:
            return f"robot at {self._config.address} answered a command no more: check cable and power, then reset"
        how = f"by signal {-code}" if code < 0 else f"with status {code}"
        return (
            f"the process that drives the robot at {self._config.address} was ended {how}: damaged data can make "
            "ur_rtde crash; reset to start it again"
        )

    def ask(self, request: UrRequest, *arguments: object) -> str:
        """Send a request to the process. Return one sentence if it failed; otherwise an empty text. Waits up to 1 s."""
        answer = self._ask(request, *arguments)
        return answer if isinstance(answer, str) else ""

    def statistics(self) -> PeriodStatistics:
        """Return the statistics of the periods. Waits up to 1 s.

        Raises:
            ArmError: the process does not answer.
        """
        answer = self._ask(UrRequest.STATISTICS)
        if not isinstance(answer, PeriodStatistics):
            raise ArmError(str(answer))
        return answer

    def close(self) -> None:
        """Bring the arm to rest, then end our program on the robot and the process. Waits up to 3.5 s."""
        if self._ask(UrRequest.CLOSE) == "":
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(CLOSE_S)
        self.kill()

    def kill(self) -> None:
        """End the process at once. The robot's watchdog stops a moving arm."""
        self._process.kill()
        self._process.wait()
        with self._asking:
            self._requests.close()

    def _open(self, release: bool) -> None:
        self._requests.send((self._config, release))
        limit = self._config.connect_timeout_s
        try:
            if not self._requests.poll(limit):
                raise ArmError(
                    f"no answer from the robot at {self._config.address} within {limit:g} s: check its power, the "
                    "cable and the address"
                )
            answer = self._requests.recv()
        except (EOFError, OSError) as error:
            code = self._process.wait()
            raise ArmError(
                f"the process that drives the robot at {self._config.address} ended while it connected ({code})"
            ) from error
        if answer:
            raise ArmError(answer)

    def _ask(self, request: UrRequest, *arguments: object) -> object:
        mute = f"the process that drives the robot at {self._config.address} does not answer; reset to start it again"
        with self._asking:
            try:
                self._requests.send((request, *arguments))
                if self._requests.poll(ANSWER_S):
                    return self._requests.recv()
            except (EOFError, OSError):
                return mute
            # A late answer would be mistaken for the answer to the next request, and the arm may move.
            self._mute = mute
            self._process.kill()
        return mute


def _demand_answer(config: UrConfig) -> None:
    """Raise ArmError if nothing listens. ur_rtde in the process would need seconds for that."""
    for port, name in PORTS:
        try:
            socket.create_connection((config.address, port), config.connect_timeout_s).close()
        except OSError as error:
            reason = error.strerror or str(error)
            raise ArmError(
                f"robot at {config.address}: {reason} on port {port} ({name}): check the address, power and cable"
            ) from error


def _spawn(memory: int, requests: int) -> subprocess.Popen[bytes]:
    root = str(Path(__file__).resolve().parents[3])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    # The library prints to standard output, which may be somebody's data: it goes where errors go.
    return subprocess.Popen(
        [sys.executable, "-m", "bid_ros.robots.ur.process", str(memory), str(requests)],
        stdin=subprocess.DEVNULL,
        stdout=2,
        pass_fds=(memory, requests),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
