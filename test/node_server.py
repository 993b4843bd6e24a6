"""Starts node processes quickly: each one is forked from a process that has imported the nodes already.

A node that is started by hand imports for a second, which several hundred tests would each wait for. What is forked is
the same node with its own interpreter state, its own middleware and its own signals: nothing of ROS runs before the
fork. ``bid up`` and the tests of whole systems start their processes from scratch.
"""

from __future__ import annotations

import array
import ctypes
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NODES = ("arm", "camera", "episode", "monitor", "policy", "recorder", "safety", "teleop", "twin")
PR_SET_CHILD_SUBREAPER = 36  # prctl(2): orphans of a descendant become children of this process


class NodeProcess:
    """A forked node: what the tests need of ``subprocess.Popen``."""

    def __init__(self, pid: int, output: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdout: Any = os.fdopen(output, "rb", buffering=0)

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
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

    def wait(self, timeout: float) -> int:
        """Wait for the end. Raises subprocess.TimeoutExpired."""
        end = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(f"node {self.pid}", timeout)
            time.sleep(0.01)
        assert self.returncode is not None
        return self.returncode

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
                raise subprocess.TimeoutExpired(f"node {self.pid}", timeout)
            time.sleep(0.01)


class NodeServer:
    """The process that nodes are forked from. It ends with this process."""

    def __init__(self) -> None:
        # So that this process can wait for the nodes: the server leaves each of them to it.
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._socket, theirs = socket.socketpair()
        command = [sys.executable, __file__, str(theirs.fileno())]
        self._server = subprocess.Popen(command, cwd=ROOT, pass_fds=(theirs.fileno(),))
        theirs.close()

    def start(self, module: str, arguments: list[str]) -> NodeProcess:
        """Run ``main`` of a module with these arguments, and with the present environment, in a process of its own."""
        output, theirs = os.pipe()
        words = json.dumps({"module": module, "arguments": arguments, "environment": dict(os.environ)}).encode()
        handed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs]))]
        self._socket.sendmsg([len(words).to_bytes(4, "big")], handed)
        self._socket.sendall(words)
        os.close(theirs)
        pid = int.from_bytes(self._socket.recv(4, socket.MSG_WAITALL), "big")
        return NodeProcess(pid, output)


def serve(connection: socket.socket) -> None:
    """Fork a node for each request, until the tests end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in NODES:
        importlib.import_module(f"bid_ros.nodes.{name}_node")
    while True:
        size, handed, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(4))
        if not size:
            return
        (output,) = array.array("i", handed[0][2])
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
            run(request, output)
        os.waitpid(child, 0)  # before the tests hear of the node, and may wait for it
        connection.sendall(os.read(told, 4))
        for descriptor in (output, told, tell):
            os.close(descriptor)


def run(request: dict[str, Any], output: int) -> None:
    """Become the node of a request."""
    try:
        for stream in (1, 2):
            os.dup2(output, stream)
        os.close(output)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.argv = [request["module"], *request["arguments"]]
        importlib.import_module(request["module"]).main()
    finally:
        os._exit(70)  # a node ends its process itself


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
