"""Interrupt a system at random moments of its start and run, and check that it always ends in order.

Usage: interrupts FOLDER [--starts 200] [--seed 0] [--by up,launch] [--system franka_place] [--span 30]

Each start gets one or two signals: Ctrl-C (SIGINT) at a moment up to --span seconds after it, and with even odds a
second one within 3 s. `launch` needs ROS's launch and launch_ros, and bid_ros in AMENT_PREFIX_PATH. Results go to
FOLDER/results.jsonl; a second call goes on where the first one ended. Exit status 0 if every start ended in order.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from bid_ros.core.errors import BidError
from bid_ros.recording.reader import BagReader

LIMIT_S = 30.0  # from the last signal to the end of the last process
# What Python, its C library or a thread prints when something was not closed in order, or hung.
BAD_WORDS = ("Traceback", "Fatal Python error", "Timeout (", "malloc", "free()", "terminate called", "Segmentation")
OF_A_NODE = re.compile(r"\[[a-z]+-\d+\]")  # what launch puts before a line of a process
LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
arguments = [tuple(word.split(":=", 1)) for word in sys.argv[2:]]
source = PythonLaunchDescriptionSource(sys.argv[1])
service = LaunchService()
service.include_launch_description(
    LaunchDescription([IncludeLaunchDescription(source, launch_arguments=arguments)])
)
sys.exit(service.run())
"""
Row = dict[str, object]


def command(by: str, system: str, out: Path, seed: int) -> list[str]:
    """Return the command of a front end that runs a system."""
    if by == "up":
        arguments = f"up {system} --episodes 100 --seed {seed} --out {out}".split()
        return [sys.executable, "-m", "bid_ros.cli", *arguments]
    file = Path(__file__).resolve().parents[2] / "launch" / f"{system}.launch.py"
    return [sys.executable, "-c", LAUNCH, str(file), "episodes:=100", f"seed:={seed}", f"out:={out}"]


def left_over(out: Path, group: int) -> dict[int, str]:
    """Return the processes of a start that still run: those of its group, and those whose words name its folder."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, pgrp = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:3]
            words = (folder / "cmdline").read_text().replace("\0", " ").strip()
        except OSError:
            continue
        if state != "Z" and int(folder.name) != os.getpid() and (int(pgrp) == group or str(out) in words):
            found[int(folder.name)] = words
    return found


def interrupt(process: subprocess.Popen[bytes], moments: Iterable[float]) -> float:
    """Send Ctrl-C to the group of a front end, as a terminal does, at moments in s; return the time of the last one."""
    begun = time.monotonic()
    for moment in moments:
        time.sleep(max(0.0, begun + moment - time.monotonic()))
        try:
            os.killpg(process.pid, signal.SIGINT)
        except ProcessLookupError:
            break
    return time.monotonic()


def until_ended(process: subprocess.Popen[bytes], out: Path, since: float) -> tuple[float, list[str]]:
    """Wait until every process of a start has ended; return after how many s, and what had to be killed."""
    while (left := left_over(out, process.pid)) and time.monotonic() - since < LIMIT_S:
        process.poll()
        time.sleep(0.05)
    took = time.monotonic() - since
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    process.wait()
    return took, sorted(left.values())


def bad_lines(folder: Path, by: str) -> list[str]:
    """Return the lines of every log below a folder that tell of an end out of order, launch's own left out."""
    texts = (file.read_text(errors="replace") for file in folder.rglob("*") if file.suffix in (".log", ".txt"))
    lines = [line for text in texts for line in text.splitlines() if any(word in line for word in BAD_WORDS)]
    return [line for line in lines if by != "launch" or OF_A_NODE.search(line)]


def check_bag(bag: Path) -> tuple[str, str]:
    """Return what is wrong with a bag, and how the arm was in its last state; "" and "none" if there is nothing."""
    if not bag.exists():
        return "", "none"
    try:
        with BagReader(bag) as reader:
            statuses = [item.message for item in reader.messages(["/arm/status"])]
            problem = "" if reader.was_complete else "the bag was not closed"
    except BidError as error:
        return str(error), "none"
    if not statuses:
        return problem, "none"
    moves = bool(np.any(np.asarray(statuses[-1].reference_twist)))
    return problem, "moving" if moves else "at rest"


def rest(folder: Path, last: str) -> str:
    """Return how the arm was left, from the words of the arm node and its last recorded state."""
    text = "".join(file.read_text(errors="replace") for file in folder.rglob("*") if file.suffix in (".log", ".txt"))
    if "in control:" not in text:
        return "never in control"
    if "[arm]: at rest, out of control" not in text or last == "moving":
        return "NOT AT REST"
    return "at rest"


def run_one(index: int, by: str, system: str, folder: Path, seed: int, span: float) -> Row:
    """Start a system, interrupt it, and return what came of it."""
    rng = random.Random(f"{seed} {index} {by}")
    moments = [rng.uniform(0.0, span)]
    if rng.random() < 0.5:
        moments.append(moments[0] + rng.uniform(0.0, 3.0))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    out = folder / "out"
    with (folder / "front_end.txt").open("wb") as output:
        process = subprocess.Popen(
            command(by, system, out, 100 + index),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "ROS_LOG_DIR": str(folder / "ros")},
        )
        took, killed = until_ended(process, out, interrupt(process, moments))
    problem, last = check_bag(out / "bag")
    return {
        "index": index,
        "by": by,
        "moments": [round(moment, 2) for moment in moments],
        "status": process.returncode,
        "took_s": round(took, 2),
        "hung": killed,
        "words": bad_lines(folder, by)[:5],
        "bag": problem,
        "arm": rest(folder, last),
    }


def is_good(row: Row) -> bool:
    """Return whether a start ended in order."""
    return not (row["hung"] or row["words"] or row["bag"]) and row["arm"] != "NOT AT REST"


def table(rows: list[Row]) -> str:
    """Return a table with one line for each front end and number of signals."""
    lines = ["| by | signals | starts | arm in control | at rest | hung | words | bags not whole | end p50 | max s |"]
    lines.append("|---|---|---|---|---|---|---|---|---|---|")
    for by, count in sorted({(str(row["by"]), len(row["moments"])) for row in rows}):  # type: ignore[arg-type]
        group = [row for row in rows if row["by"] == by and len(row["moments"]) == count]  # type: ignore[arg-type]
        took = [float(row["took_s"]) for row in group]  # type: ignore[arg-type]
        numbers = [
            len(group),
            sum(row["arm"] != "never in control" for row in group),
            sum(row["arm"] == "at rest" for row in group),
            *(sum(bool(row[key]) for row in group) for key in ("hung", "words", "bag")),
        ]
        lines.append(f"| {by} | {count} | {' | '.join(map(str, numbers))} | {np.median(took):.1f} | {max(took):.1f} |")
    return "\n".join(lines)


def main() -> int:
    """Run what is missing, print a line for each start and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--starts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--by", default="up")
    parser.add_argument("--system", default="franka_place")
    parser.add_argument("--span", type=float, default=30.0)
    options = parser.parse_args()
    # What runs in the background of a shell ignores Ctrl-C, and so would all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options.folder.mkdir(parents=True, exist_ok=True)
    results = options.folder / "results.jsonl"
    rows = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    ways = options.by.split(",")
    for index in range(len(rows), options.starts):
        by = ways[index % len(ways)]
        folder = options.folder.resolve() / f"start_{index:03d}"
        row = run_one(index, by, options.system, folder, options.seed, options.span)
        rows.append(row)
        with results.open("a") as file:
            print(json.dumps(row), file=file)
        if is_good(row):
            shutil.rmtree(folder)
        print(f"{index + 1}/{options.starts}  good {sum(map(is_good, rows))}  {json.dumps(row)}", flush=True)
    print(table(rows))
    return 0 if all(map(is_good, rows)) else 1


if __name__ == "__main__":
    sys.exit(main())
