"""What the measurements of a policy elsewhere share: its server as a process, and a link that can be cut."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bid_ros.core.task import Task
from bid_ros.policy.remote.config import RemoteConfig
from bid_ros.policy.remote.parts import USUAL
from bid_ros.policy.remote.pointing import ask_metadata, own_words, write_remote_bundle

HERE = "127.0.0.1"
START_S, TIMEOUT_MS = 60.0, 250.0


class CutLink:
    """A TCP proxy in front of a port of loopback, in a thread of its own.

    Args:
        port: of the server.

    Attributes:
        port: where it serves.
        passing: clear it, and nothing passes any more, as through a cable that is unplugged.
    """

    def __init__(self, port: int) -> None:
        self._behind = port
        self.passing = True
        self.port = 0
        self._writers: list[asyncio.StreamWriter] = []
        self._loop = asyncio.new_event_loop()
        self._end, ready = asyncio.Event(), threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(ready),), daemon=True)
        self._thread.start()
        ready.wait()

    def close(self) -> None:
        """End the proxy and its connections."""
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    async def _serve(self, ready: threading.Event) -> None:
        server = await asyncio.start_server(self._client, HERE, 0, limit=1 << 20)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._end.wait()
        server.close()
        self.passing = True
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            behind, ahead = await asyncio.open_connection(HERE, self._behind, limit=1 << 20)
            self._writers += [writer, ahead]
            await asyncio.gather(self._pass(reader, ahead), self._pass(behind, writer))

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Pass bytes in one direction, in order."""
        with suppress(OSError):
            while data := await source.read(1 << 20):
                while not self.passing:
                    await asyncio.sleep(0.01)
                if sink.is_closing():
                    break
                sink.write(data)
            sink.write_eof()


@contextmanager
def served(bundle: Path, samples: int, within: Sequence[str] = (), host: str = HERE) -> Iterator[int]:
    """Run ``bid serve`` as a process of its own; yield its port, and print its report at the end.

    Args:
        bundle: that is served.
        samples: N.
        within: words of a command that starts it.
        host: whose questions it takes.
    """
    options = ["--host", host, "--port", "0", "--samples", str(samples)]
    command = [*within, sys.executable, "-m", "bid_ros.cli", "serve", str(bundle), *options]
    back = lambda: os.nice(-os.nice(0))  # it takes its own priority  # noqa: E731
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=back)
    try:
        for line in process.stderr:
            if found := re.search(r"at ws://[\d.]+:(\d+);", line):
                break
        else:
            raise SystemExit("error: bid serve did not start")
        threading.Thread(target=lambda: deque(process.stderr, 0), daemon=True).start()
        yield int(found[1])
    finally:
        process.send_signal(signal.SIGINT)
        print(f"  the server: {process.stdout.read().strip()}", flush=True)
        process.wait()


def pointer(folder: Path, task: Task, port: int, host: str = HERE, connections: int = USUAL) -> Path:
    """Write the bundle that points to a server, over a number of connections."""
    address = f"ws://{host}:{port}"
    settings = RemoteConfig(address, TIMEOUT_MS, connections=connections)
    write_remote_bundle(folder, task, settings, own_words(ask_metadata(settings, START_S)))
    return folder
