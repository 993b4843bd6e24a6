"""Start a twin and the process that drives it again and again beside busy processes: does each start follow set-points?

One start: the twin node of a system and its driver, as `bid up` starts them, without the other nodes. The driver
connects, the arm rests for a second, and follows set-points that swing along y for two. What ends it before that is a
false stop. Each start is a line of OUT/starts.jsonl; call it again to go on. Nothing here ever moves a robot.

Usage: starts SYSTEM... [--starts N] [--busy N] [--out OUT]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from computing import computing

from bid_ros.control.setpoint import Setpoint
from bid_ros.core.errors import ArmError
from bid_ros.core.tables import markdown_table
from bid_ros.nodes.base import COMMAND_PRIORITY
from bid_ros.robots.connecting import connect_within
from bid_ros.robots.process_arm import ProcessArm
from bid_ros.robots.registry import build_arm, load_arm_config
from bid_ros.system.description import NodeSpec, command_line, describe, environment
from bid_ros.system.folder import find_system
from bid_ros.system.priority import raise_thread_priority
from bid_ros.system.run import RunArguments

CONNECT_S, REST_S, SWING_S, PERIOD_S = 60.0, 1.0, 2.0, 0.01
SPEED, RATE = 0.05, 2.5  # of the tool, m/s, and of its swing, rad/s


def as_arm_node() -> None:
    """Give this thread, and the driver that it starts, the priority of an arm node. Busy processes keep theirs."""
    raise_thread_priority(COMMAND_PRIORITY)


@contextmanager
def twin_node(spec: NodeSpec) -> Iterator[subprocess.Popen[str]]:
    """Run the twin node, in a graph of this computer alone, until the block ends."""
    with tempfile.TemporaryDirectory() as folder, Path(folder, "log").open("w") as log:
        node = subprocess.Popen(
            ["sh", "-c", command_line(spec, Path(folder))],
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | environment(),
            start_new_session=True,
        )
        try:
            yield node
        finally:
            node.send_signal(signal.SIGINT)
            try:
                node.wait(15)
            except subprocess.TimeoutExpired:
                node.kill()


def follow(arm: ProcessArm) -> None:
    """Rest, then stream set-points that swing along y. Raises ArmError if the driver gives up."""
    arm.start()
    begin = arm.state()
    started = time.monotonic()
    while (passed := time.monotonic() - started) < REST_S + SWING_S:
        moved = max(0.0, passed - REST_S)
        way = np.array([0.0, SPEED / RATE * (1 - np.cos(RATE * moved)), 0.0])
        velocity = np.array([0.0, SPEED * np.sin(RATE * moved), 0.0])
        arm.command(Setpoint(begin.tool_position + way, begin.tool_quaternion, velocity, np.zeros(3)))
        if fault := arm.state().fault:
            raise ArmError(fault)
        time.sleep(PERIOD_S)


def start(system: str) -> dict[str, Any]:
    """Start twin and driver once; return what was found."""
    specs = {spec.name: spec for spec in describe(find_system(system), RunArguments(record=False))}
    parameters, began = specs["arm"].parameters, time.monotonic()
    name = str(parameters["arm"])
    config = load_arm_config(str(parameters["arm_config"]), str(parameters["robot_ip"]), True, name)
    found: dict[str, Any] = {"system": system, "reason": "", "load": round(os.getloadavg()[0], 1)}
    with twin_node(specs["twin"]) as node:
        arm = build_arm(name, config)
        assert isinstance(arm, ProcessArm), "a robot over ROS has no process of its own"
        try:
            connect_within(arm, CONNECT_S, lambda: node.poll() is not None)
            found["connected_s"] = round(time.monotonic() - began, 1)
            follow(arm)
        except ArmError as error:
            found["reason"] = str(error)
        finally:
            found["margins"] = {check: round(share, 3) for check, share in arm.margins().items()}
            arm.close()
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """Return starts, failures and the largest share of each limit, by system."""
    lines = []
    for system in sorted({row["system"] for row in rows}):
        mine = [row for row in rows if row["system"] == system]
        checks = {check for row in mine for check in row["margins"]}
        largest = {check: max(row["margins"].get(check, 0.0) for row in mine) for check in checks}
        worst = sorted(largest.items(), key=lambda item: -item[1])[:4]
        failed = [row for row in mine if row["reason"]]
        loads = [row["load"] for row in mine]
        lines.append(
            [
                system,
                f"{len(mine)}",
                f"{len(failed)}",
                f"{min(loads):.0f} to {max(loads):.0f}",
                ", ".join(f"{check} {share:.2f}" for check, share in worst),
            ]
        )
    reasons = "".join(f"\n- {row['system']}: {row['reason']}" for row in rows if row["reason"])
    return markdown_table(["system", "starts", "gave up", "load", "largest shares of limits"], lines) + reasons


def main() -> int:
    """Make the starts that are missing. Return 1 if one gave up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="+", metavar="SYSTEM", help="such as franka_place; by turns")
    parser.add_argument("--starts", type=int, default=100, help="of each system (default: 100)")
    parser.add_argument("--busy", type=int, default=2, help="processes that compute meanwhile (default: 2)")
    parser.add_argument("--out", type=Path, default=Path("out/starts"), help="folder (default: out/starts)")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / "starts.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    with computing(given.busy):
        for number in range(given.starts):
            for system in given.systems:
                if sum(row["system"] == system for row in rows) > number:
                    continue
                rows.append(ThreadPoolExecutor(1, initializer=as_arm_node).submit(start, system).result())
                with file.open("a") as output:
                    output.write(json.dumps(rows[-1]) + "\n")
                print(f"{system} {number + 1}/{given.starts}: {rows[-1]['reason'] or 'followed'}", flush=True)
    print(table(rows))
    return int(any(row["reason"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
