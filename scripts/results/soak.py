"""Run a system in its twin for an hour, one process each node: does memory grow, are more decisions missed later?

In the second half other processes compute. The decoders take turns, a minute each. Every minute is a line of
OUT/soak.jsonl: episodes, decisions, missed ones, stops, and the most memory that each node has used so far. Ctrl-C ends
it early, and the table is of what there is. The memory counts from --settle on: until then libraries load and buffers
fill. Nothing here ever moves a robot.

Usage: soak SYSTEM [--minutes 60] [--busy 2] [--decoders vanilla,ema,bid,bid+lead] [--out OUT]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import rclpy
from computing import computing
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient

from bid_ros.commands.arguments import SYSTEM_HELP, add_run_arguments, run_arguments
from bid_ros.core.errors import BidError
from bid_ros.core.tables import markdown_table
from bid_ros.system.description import environment
from bid_ros.system.folder import System, find_system
from bid_ros.system.run import RunArguments
from results.system.usage import Usage
from results.system.watch import Watch, run_watched

LOOK_S: Final = 60.0
WATCH_S: Final = 10.0  # between two looks at the memory
TURNS: Final = ("vanilla", "ema", "bid", "bid+lead")
GROWTH: Final = 0.05  # of the memory of a node, from --settle on
ANSWER_S: Final = 20.0
_OURS: Final = ("samples", "moving", "seed", "bundle", "decision_rate", "out")
_COUNTED: Final = ("episodes", "successes", "decisions", "missed", "safety_stops")


class Looks(threading.Thread):
    """Notes once a minute what the run has done and what it uses, and takes the next decoder; ends it after its time.

    Args:
        out: folder of the run.
        watch: of its nodes.
        minutes: length of the run.
        busy: processes that compute in its second half.
        decoders: those that take turns; the next episode uses the new one.
    """

    def __init__(self, out: Path, watch: Watch, minutes: int, busy: int, decoders: Sequence[str]) -> None:
        super().__init__(name="looks", daemon=True)
        self.over = threading.Event()
        self._out, self._watch, self._minutes, self._busy, self._decoders = out, watch, minutes, busy, decoders

    def run(self) -> None:
        """Look until the time is over, then interrupt this process as Ctrl-C does."""
        begin, half = time.monotonic(), self._minutes // 2
        with ExitStack() as ends:
            rclpy.init()
            ends.callback(rclpy.shutdown)
            node = rclpy.create_node("soak")
            policy = AsyncParameterClient(node, "policy")
            for minute in range(1, self._minutes + 1):
                if self.over.wait(begin + minute * LOOK_S - time.monotonic()):
                    return
                self._look(minute, minute > half, self._decoders[(minute - 1) % len(self._decoders)])
                if minute == half:
                    ends.enter_context(computing(self._busy))
                told = policy.set_parameters([Parameter("decoder", value=self._decoders[minute % len(self._decoders)])])
                rclpy.spin_until_future_complete(node, told, timeout_sec=ANSWER_S)
                if (answer := told.result()) is None or not answer.results[0].successful:
                    print(f"the policy node did not take another decoder: {answer}", file=sys.stderr)
            os.kill(os.getpid(), signal.SIGINT)
            self.over.wait()

    def _look(self, minute: int, busy: bool, decoder: str) -> None:
        courses = dict(self._watch.courses).items()
        used = {name: [Usage(*values) for values in course.values] for name, course in courses}
        memory_mb = {name: max(item.memory_mb for item in looks) for name, looks in used.items() if looks}
        said = counted(self._out / "run.json")
        row = {"minute": minute, "decoder": decoder, "busy": busy, **said, "memory_mb": memory_mb}
        with (self._out / "soak.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        shown = ", ".join(f"{name} {count}" for name, count in said.items())
        print(f"{minute} min, {decoder}{' beside others' if busy else ''}: {shown}", file=sys.stderr, flush=True)


def counted(path: Path) -> dict[str, int]:
    """Return the counters of a run so far; 0 before its first episode has ended."""
    found = json.loads(path.read_text()) if path.exists() else {}
    return {name: int(found.get(name) or 0) for name in _COUNTED}


def rows_of(out: Path) -> list[dict[str, Any]]:
    """Return the minutes of a run."""
    file = out / "soak.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def soak(system: System, arguments: RunArguments, minutes: int, busy: int, decoders: Sequence[str]) -> int:
    """Run the system so long; return the status of the run."""
    out = Path(arguments.out)
    if rows_of(out):
        raise BidError(f"{out} holds a run already; valid is another --out")
    watch = Watch(WATCH_S)
    looks = Looks(out, watch, minutes, busy, decoders)
    looks.start()
    try:
        return run_watched(system, arguments, watch)
    finally:
        looks.over.set()
        looks.join()


def table(rows: list[dict[str, Any]], settle: float) -> str:
    """Return the counts of each sixth of the run and of each decoder, and the memory of each node."""
    size = max(1, len(rows) // 6)
    sixths = [f"until minute {row['minute']}" for row in rows[size - 1 :: size] for _ in range(size)]
    left = [f"until minute {rows[-1]['minute']}"] * (len(rows) - len(sixths))
    deciding = [f"{row['decoder']}, {'beside others' if row['busy'] else 'alone'}" for row in rows]
    first, last = _settled(rows, settle)["memory_mb"], rows[-1]["memory_mb"]
    memory = [
        [name, f"{first[name]:.0f}", f"{last[name]:.0f}", f"{100 * (last[name] / first[name] - 1):+.1f} %"]
        for name in sorted(first)
    ]
    nodes = markdown_table(["node", f"MB at {settle:g} min", "MB at the end", "growth"], memory)
    return "\n\n".join((_sums(rows, sixths + left), _sums(rows, deciding), nodes))


def _sums(rows: list[dict[str, Any]], groups: Sequence[str]) -> str:
    """Return what was counted in the minutes of each group, as a table."""
    sums: dict[str, list[int]] = {}
    before = dict.fromkeys(_COUNTED, 0)
    for row, group in zip(rows, groups, strict=True):
        added = [row[name] - before[name] for name in _COUNTED]
        sums[group] = [sum(pair) for pair in zip(sums.get(group, [0] * len(added)), added, strict=True)]
        before = row
    return markdown_table(["", *_COUNTED], [[group, *map(str, counts)] for group, counts in sums.items()])


def _settled(rows: list[dict[str, Any]], settle: float) -> dict[str, Any]:
    """Return the first minute from which memory counts."""
    return next((row for row in rows if row["minute"] >= settle), rows[-1])


def grown(rows: list[dict[str, Any]], settle: float) -> list[str]:
    """Return the nodes whose memory grew by more than :data:`GROWTH` from ``settle`` min on."""
    first = _settled(rows, settle)["memory_mb"]
    return [name for name, used in rows[-1]["memory_mb"].items() if used > (1 + GROWTH) * first.get(name, used)]


def main() -> int:
    """Read the options, run, print the table. Return 1 if a node grew or safety stopped an episode."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", help=SYSTEM_HELP)
    add_run_arguments(parser, only=_OURS, defaults={"out": "out/soak"}, printed="the numbers")
    parser.add_argument("--minutes", type=int, default=60, help="length of the run (default: 60)")
    parser.add_argument("--busy", type=int, default=2, help="processes that compute in the second half (default: 2)")
    parser.add_argument(
        "--decoders", default=",".join(TURNS), help=f"those that take turns (default: {','.join(TURNS)})"
    )
    parser.add_argument("--settle", type=float, default=6.0, help="minute from which memory counts (default: 6)")
    given = parser.parse_args()
    decoders = given.decoders.split(",")
    arguments = replace(run_arguments(given), episodes=100_000, decoder=decoders[0])
    out = Path(arguments.out)
    os.environ |= environment()
    status = soak(find_system(given.system), arguments, given.minutes, given.busy, decoders)
    rows = rows_of(out)
    if status != 128 + signal.SIGINT or not rows:
        raise BidError(f"the run ended by itself with status {status}; its logs: {out / 'logs'}")
    above = grown(rows, given.settle)
    print(json.dumps(rows) if given.json else table(rows, given.settle))
    for name in above:
        print(f"{name} grew by more than {100 * GROWTH:.0f} %", file=sys.stderr)
    return int(bool(above) or rows[-1]["safety_stops"] > 0)


if __name__ == "__main__":
    sys.exit(main())
