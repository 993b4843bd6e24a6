"""A policy server as a process of its own, for measurements, and the bundle that points to it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bid_ros.core.task import Task
from bid_ros.policy.remote.config import RemoteConfig
from bid_ros.policy.remote.dial import WANTED
from bid_ros.policy.remote.pointing import ask_metadata, write_remote_bundle
from bid_ros.policy.remote.wire import own_words

HERE = "127.0.0.1"
START_S, TIMEOUT_MS = 60.0, 250.0


@contextmanager
def served(
    bundle: Path, samples: int, within: Sequence[str] = (), host: str = HERE, congestion: str = WANTED
) -> Iterator[int]:
    """Run ``bid serve`` as a process of its own; yield its port, and print its report at the end.

    Args:
        bundle: that is served.
        samples: N.
        within: words of a command that starts it.
        host: whose questions it takes.
        congestion: congestion control that it asks the kernel for.
    """
    options = ["--host", host, "--port", "0", "--samples", str(samples)]
    program = (
        f"from bid_ros import cli; from bid_ros.policy.remote import dial; dial.WANTED = {congestion!r}; cli.main()"
    )
    command = [*within, sys.executable, "-c", program, "serve", str(bundle), *options]
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


def pointer(folder: Path, task: Task, port: int, host: str = HERE) -> Path:
    """Write the bundle that points to a server."""
    settings = RemoteConfig(f"ws://{host}:{port}", TIMEOUT_MS)
    write_remote_bundle(folder, task, settings, own_words(ask_metadata(settings, START_S)))
    return folder
