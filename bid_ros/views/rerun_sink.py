"""Where a Rerun recording goes: into a file, into Rerun's own window, or to browsers on this computer."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from bid_ros.core.errors import BidError
from bid_ros.core.extras import extra
from bid_ros.core.files import replacing

with extra("view", "bid view"):
    import rerun as rr

APPLICATION: Final = "bid_ros"
HOST: Final = "127.0.0.1"
START_S: Final = 20.0


@contextmanager
def into_file(path: Path) -> Iterator["rr.RecordingStream"]:
    """Give a recording that is written to a file, whole at the end of the block.

    Raises:
        BidError: the name does not end in .rrd.
    """
    if path.suffix != ".rrd":
        raise BidError(f"--save is '{path}'; valid is a name that ends in .rrd")
    recording = rr.RecordingStream(APPLICATION)
    with replacing(path) as part:
        recording.save(part)
        yield recording
        recording.disconnect()


@contextmanager
def into_window() -> Iterator["rr.RecordingStream"]:
    """Give a recording that Rerun's window shows. The window stays at the end of the block.

    Raises:
        BidError: there is no screen, or the window does not open.
    """
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform == "darwin"):
        raise BidError("there is no screen for Rerun's window; use --web for a browser, or --save FILE.rrd")
    recording = rr.RecordingStream(APPLICATION)
    try:
        rr.spawn(recording=recording, hide_welcome_screen=True, executable_path=_executable())
    except (RuntimeError, OSError) as error:
        raise BidError(f"Rerun's window does not open: {error}") from error
    yield recording
    recording.flush()


@contextmanager
def into_browsers(port: int) -> Iterator[tuple["rr.RecordingStream", str]]:
    """Give a recording and the address of a page that shows it. Only this computer reaches the page.

    Args:
        port: of the page; the data come from the next one. Both must be free.

    Raises:
        BidError: a port is in use, or Rerun's server does not start.
    """
    if taken := [number for number in (port, port + 1) if _listens(number)]:
        raise BidError(f"port {taken[0]} is in use; give --port a free port whose next port is free too")
    ports = ["--web-viewer-port", str(port), "--port", str(port + 1)]
    command = [_executable(), "--serve-web", "--bind", HOST, *ports]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _wait(server, (port, port + 1))
        source = f"rerun+http://{HOST}:{port + 1}/proxy"
        recording = rr.RecordingStream(APPLICATION)
        recording.connect_grpc(source)
        yield recording, f"http://{HOST}:{port}/?url={quote(source, safe='')}"
        recording.disconnect()
    finally:
        server.terminate()
        server.communicate()


def _executable() -> str:
    """Return the program of the same package as the library, which need not be on the path."""
    with extra("view", "bid view"):
        import rerun_cli
    return str(Path(str(rerun_cli.__file__)).with_name("rerun"))


def _wait(server: "subprocess.Popen[bytes]", ports: tuple[int, ...]) -> None:
    """Wait until a server listens. Raises BidError if it does not."""
    end = time.monotonic() + START_S
    while not all(_listens(port) for port in ports):
        if server.poll() is not None:
            said = server.stderr.read().decode(errors="replace").strip().splitlines() if server.stderr else []
            raise BidError(f"Rerun's server does not start on ports {ports[0]} and {ports[1]}: {(said or ['?'])[-1]}")
        if time.monotonic() > end:
            raise BidError(f"Rerun's server does not listen on ports {ports[0]} and {ports[1]} after {START_S:g} s")
        time.sleep(0.05)


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex((HOST, port)) == 0
