"""Starts processes of Python quickly: each one is forked from a process that has imported what it needs already.

A node that is started by hand imports for a second, and so do the process of a robot, a twin and ``bid``. Several
hundred tests would each wait for that. What is forked is the same program with its own interpreter state, its own
middleware and its own signals: nothing of ROS runs before the fork. A few tests of each start it from scratch all the
same.

``bid up`` that is forked forks its nodes too, and an arm node the process of its robot. Each has the name of its
module, such as ``episode_node``, in ``/proc/PID/comm``, as its command line is that of the server.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import ctypes
import gc
import importlib
import inspect
import json
import os
import runpy
import select
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from rclpy.type_support import check_for_type_support

ROOT = Path(__file__).resolve().parent.parent
NODES = ("arm", "camera", "episode", "monitor", "policy", "recorder", "safety", "teleop", "twin")
PRELOADED = (
    *(f"bid_ros.nodes.{name}_node" for name in NODES),
    "bid_ros.cli",
    "bid_ros.policy.diffusion.policy",
    "bid_ros.robots.franka.driver",
    "bid_ros.robots.franka.process",
    "bid_ros.robots.ur.driver",
    "bid_ros.robots.ur.process",
    "bid_ros.robots.ur.twin.pendant",
    "bid_ros.tasks.picking.world",
    "bid_ros.tasks.placing.world",
    "franky_sim.mujoco_simulator",
)
PR_SET_CHILD_SUBREAPER = 36  # prctl(2): orphans of a descendant become children of this process
MOST_DESCRIPTORS = 8
ENDING = (signal.SIGTERM, signal.SIGHUP)


class ForkedProcess:
    """A forked process: what the tests need of ``subprocess.Popen``. Any thread may call its methods."""

    def __init__(self, pid: int, output: int | None) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdout: Any = None if output is None else os.fdopen(output, "rb", buffering=0)
        self._ended = os.pidfd_open(pid)
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while it runs."""
        with self._lock:
            if self.returncode is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
                    os.close(self._ended)
            return self.returncode

    def send_signal(self, kind: int) -> None:
        """Send a signal unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, kind)

    def terminate(self) -> None:
        """Ask the process to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the process by force."""
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. Raises subprocess.TimeoutExpired."""
        end = float("inf") if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            left = end - time.monotonic()
            if left < 0:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            self._await_end(min(left, 1.0))
        return status

    def communicate(self, timeout: float = 60.0) -> tuple[str, None]:
        """Read the output up to the end of the process. Raises subprocess.TimeoutExpired."""
        os.set_blocking(self.stdout.fileno(), False)
        parts: list[bytes] = []
        end = time.monotonic() + timeout
        while True:
            ended = self.poll() is not None  # before the read, which then finds everything
            parts += iter(lambda: self.stdout.read(1 << 16) or b"", b"")
            if ended:
                self.stdout.close()
                return b"".join(parts).decode(errors="replace"), None
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            self._await_end(0.01)  # not longer: a process that fills its pipe waits for this one

    def _await_end(self, seconds: float) -> None:
        """Wait until the process ends, or for some time."""
        with self._lock:
            descriptor = os.dup(self._ended) if self.returncode is None else -1
        if descriptor >= 0:
            select.select([descriptor], [], [], seconds)
            os.close(descriptor)


class ForkServer:
    """The process that others are forked from. It ends with this process."""

    def __init__(self) -> None:
        # So that this process can wait for what is forked: the server leaves it to this process.
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._socket, theirs = socket.socketpair()
        self._asking = threading.Lock()
        command = [sys.executable, __file__, str(theirs.fileno())]
        # What a test of this process rendered with is not what a program starts with.
        given = {name: value for name, value in os.environ.items() if name not in ("MUJOCO_GL", "PYOPENGL_PLATFORM")}
        one_thread = {**given, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # as `bid up` has it
        self._server = subprocess.Popen(command, cwd=ROOT, pass_fds=(theirs.fileno(),), env=one_thread)
        theirs.close()

    @property
    def pid(self) -> int:
        """Process id of the server."""
        return self._server.pid

    def start(
        self, program: str, arguments: Sequence[str | int], streams: tuple[int, int, int] | None = None
    ) -> ForkedProcess:
        """Run a program with the present environment and folder, in a process of its own.

        Args:
            program: a module with a function ``main``, or the path of a script.
            arguments: of the program; a number is a descriptor that is handed over, and becomes its number there.
            streams: descriptors of its standard streams. Without them its output can be read from the process.
        """
        output, theirs = os.pipe() if streams is None else (None, -1)
        descriptors = list(streams or (0, theirs, theirs))
        descriptors += [word for word in arguments if isinstance(word, int)]
        words = {"program": program, "arguments": arguments, "environment": dict(os.environ), "folder": str(Path.cwd())}
        request = json.dumps(words).encode()
        handed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        with self._asking:
            self._socket.sendmsg([len(request).to_bytes(4, "big")], handed)
            self._socket.sendall(request)
            pid = int.from_bytes(self._socket.recv(4, socket.MSG_WAITALL), "big")
        if output is not None:
            os.close(theirs)
        return ForkedProcess(pid, output)


@cache
def fork_server() -> ForkServer:
    """The server of this process. The first program that a test starts starts it."""
    return ForkServer()


def servers() -> list[int]:
    """Return the id of this process's server, if it was started."""
    return [fork_server().pid] if fork_server.cache_info().currsize else []


def preload() -> None:
    """Do once what every forked process would do first, and would do again."""
    for name in PRELOADED:
        importlib.import_module(name)
    for verb in importlib.import_module("bid_ros.cli").VERBS:
        importlib.import_module(f"bid_ros.commands.{verb}")
    # The support of a type of message is loaded when it is first used: a generator of code and its parsers.
    types = [kind for name in list(sys.modules) if ".msg._" in name or ".srv._" in name for kind in types_in(name)]
    for kind in types:
        check_for_type_support(kind)
    inspect.getmodule(inspect.currentframe())  # goes through all modules, and remembers
    importlib.import_module("bid_ros.robots.link")._spawn = fork_driver  # type: ignore[attr-defined]
    gc.collect()
    gc.freeze()  # else the collection of each process would touch, and so copy, all of this memory


def types_in(name: str) -> list[type]:
    """Return the types of messages and services that a generated module defines."""
    return [
        kind
        for kind in vars(sys.modules[name]).values()
        if isinstance(kind, type) and kind.__module__ == name and hasattr(type(kind), "__import_type_support__")
    ]


def serve(connection: socket.socket) -> None:
    """Fork a process for each request, until the tests end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    preload()
    while True:
        size, handed, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(4 * MOST_DESCRIPTORS))
        if not size:
            return
        descriptors = list(array.array("i", handed[0][2]))
        request = json.loads(connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            # A grandchild, whose parent ends at once: so it becomes a child of the tests.
            if pid := os.fork():
                os.write(tell, pid.to_bytes(4, "big"))
                os._exit(0)
            connection.close()
            for descriptor in (told, tell):
                os.close(descriptor)
            run(request, descriptors)
        os.waitpid(child, 0)  # before the tests hear of the process, and may wait for it
        connection.sendall(os.read(told, 4))
        for descriptor in (*descriptors, told, tell):
            os.close(descriptor)


def run(request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Become the process of a request."""

    def work() -> int:
        for stream, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, stream)
            os.close(descriptor)
        handed = iter(descriptors[3:])
        arguments = [str(next(handed)) if isinstance(word, int) else word for word in request["arguments"]]
        os.chdir(request["folder"])
        if request["program"] == "bid_ros.cli":
            asyncio.create_subprocess_shell = fork_command
        return run_main(request["program"], arguments, request["environment"])

    end_with(work)


def end_with(work: Callable[[], int]) -> NoReturn:
    """Do the work of this process and end it with the status that comes of it, as Python would."""
    status = 1
    try:
        status = work()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def run_main(program: str, arguments: list[str], environment: dict[str, str]) -> int:
    """Run a module's ``main`` or a script; return its exit status."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [program, *arguments]
    sys.path[1:1] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    if program.endswith(".py"):
        sys.path[0] = str(Path(program).parent)
        runpy.run_path(program, run_name="__main__")
        return 0
    Path("/proc/self/comm").write_text(program.rpartition(".")[2])
    return importlib.import_module(program).main() or 0


class ForkedCommand:
    """A child of a forked ``bid``: what its supervisor needs of ``asyncio.subprocess.Process``."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    async def wait(self) -> int:
        """Wait for the end; return the exit status."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        descriptor = os.pidfd_open(self.pid)
        loop.add_reader(descriptor, ended.set)
        await ended.wait()
        loop.remove_reader(descriptor)
        os.close(descriptor)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def fork_driver(module: str, memory: int, requests: int) -> ForkedProcess:
    """Do what :mod:`bid_ros.robots.link` does to start the process of a robot, without its imports."""
    if pid := os.fork():
        return ForkedProcess(pid, None)

    def work() -> int:
        gc.freeze()  # what ROS made belongs to the parent
        give_streams(2)
        close_all_but((memory, requests))
        return run_main(module, [str(memory), str(requests)], dict(os.environ))

    end_with(work)


def give_streams(output: int) -> None:
    """Let this process read nothing, and write to a descriptor."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream, descriptor in enumerate((nothing, output, output)):
        os.dup2(descriptor, stream)


def close_all_but(kept: Sequence[int]) -> None:
    """Close what this process has from its parent, but the standard streams."""
    for entry in list(Path("/proc/self/fd").iterdir()):
        if int(entry.name) > 2 and int(entry.name) not in kept:
            with contextlib.suppress(OSError):  # the one that lists them is closed already
                os.close(int(entry.name))


async def fork_command(command: str, *, stdout: int, pass_fds: Sequence[int], env: dict[str, str], **_: Any) -> Any:
    """Do what ``asyncio.create_subprocess_shell`` does for the shell line of a node, without a shell."""
    execute, python, as_module, package, node, *arguments = shlex.split(command)
    assert (execute, python, as_module, package) == ("exec", sys.executable, "-m", "bid_ros.nodes")
    # A signal to the child waits until the child does with it what a new process does: the handlers of ``bid`` lose it.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    ready, tell = os.pipe()
    if pid := os.fork():
        os.close(tell)
        os.read(ready, 1)  # until the child has a group of its own, to which signals are sent
        os.close(ready)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return ForkedCommand(pid)

    def work() -> int:
        os.setsid()
        os.close(tell)
        signal.set_wakeup_fd(-1)
        for kind in ENDING:
            signal.signal(kind, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        give_streams(stdout)
        close_all_but(pass_fds)
        return run_main(f"{package}.{node}", arguments, env)

    end_with(work)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
