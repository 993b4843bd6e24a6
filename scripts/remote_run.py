"""Run a system in its twin whose policy is elsewhere, behind a link that holds packets back and loses some.

The link is that of lossy_network.py: it needs root on Linux.

Usage: remote_run.py CONGESTION CONNECTIONS SYSTEM [OPTION ...]
  CONGESTION   Linux's congestion control, such as cubic
  CONNECTIONS  side by side
  SYSTEM       such as franka_place; its shipped policy is served
  OPTION       of bid up, such as --episodes 6
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from lossy_network import Network
from remote_parts import pointer, served

from bid_ros.commands.tasks import task_of
from bid_ros.policy.bundle import bundled_task

DELAY_MS, LOSS, SAMPLES = 5.0, 0.01, 16


def main(control: str, connections: str, system: str, *options: str) -> int:
    """Serve, run, and return the exit status of the run."""
    bundle = Path("models") / system
    task = task_of("", bundled_task(str(bundle)), str(bundle))
    with (
        Network([(DELAY_MS, LOSS, control)]) as network,
        served(bundle, SAMPLES, network.within, "0.0.0.0") as port,
        tempfile.TemporaryDirectory() as folder,
    ):
        where = pointer(Path(folder) / "bundle", task, port, network.server(0), int(connections))
        return subprocess.run(["bid", "up", system, "--bundle", where, *options]).returncode


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
