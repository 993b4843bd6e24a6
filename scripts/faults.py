"""Injects faults into a running system in its twin and measures, by the twin's ground truth, what the arm does.

Usage: python scripts/faults.py [--faults arm-killed,pairs] [--tasks ur5_pick] [--repeat 5] [--out FOLDER] [--table]

Each trial starts a system as `bid up` does, waits until the policy moves the arm, injects one fault, and appends one
line of JSON to results.jsonl in the folder. A trial whose line is there is not run again, so a campaign that was cut
off goes on where it was. Exit status 0 if every trial of this call met the bars. A
twin that did not keep real time excuses times and speeds, and nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
from pathlib import Path

from fault_campaign.fault import Fault, Robot
from fault_campaign.kinds import GROUPS, faults
from fault_campaign.table import missed_bars, table

from bid_ros.core.errors import BidError
from bid_ros.system.middleware import middleware_environment

TASKS = ("franka_place", "ur5_pick")


def chosen(names: str, every: list[Fault]) -> list[Fault]:
    """Return the faults of a comma list of names and groups; empty: all."""
    wanted = [name for name in names.split(",") if name]
    known = {fault.name for fault in every} | set(GROUPS)
    for name in wanted:
        if name not in known:
            raise BidError(f"--faults names '{name}'; valid are what --list shows, and {', '.join(GROUPS)}")
    return [fault for fault in every if not wanted or fault.name in wanted or fault.group in wanted]


def parsed() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/faults"), help="folder of the campaign (out/faults)")
    parser.add_argument("--faults", default="", help="comma list of names and groups (default: all)")
    parser.add_argument("--tasks", default=",".join(TASKS), help=f"comma list of systems (default {','.join(TASKS)})")
    parser.add_argument("--repeat", type=int, default=1, help="trials of each fault and system (default 1)")
    parser.add_argument("--pairs", type=int, default=100, help="number of random pairs (default 100)")
    parser.add_argument("--seed", type=int, default=0, help="of pairs and scenes (default 0)")
    parser.add_argument("--keep", action="store_true", help="keep bag and logs of trials that met the bars, too")
    parser.add_argument("--list", action="store_true", help="list the faults")
    parser.add_argument("--table", action="store_true", help="print the table of what was tried, and try nothing")
    return parser.parse_args()


def campaign(options: argparse.Namespace, wanted: list[Fault]) -> int:
    """Run the trials that are missing; return 0 if all of them met the bars."""
    from fault_campaign.trial import run_trial

    signal.signal(signal.SIGTERM, _end)
    os.environ.update(middleware_environment())
    # Each trial starts ten processes, which must not compile the same sources again and again.
    os.environ.update(PYTHONDONTWRITEBYTECODE="", PYTHONPYCACHEPREFIX=str(options.out.resolve() / "compiled"))
    options.out.mkdir(parents=True, exist_ok=True)
    results = options.out / "results.jsonl"
    rows = read(results)
    done = {(row["fault"], row["task"], row["repeat"]) for row in rows if "problem" not in row}
    good = True
    for repeat in range(options.repeat):
        for fault in wanted:
            for task in options.tasks.split(","):
                if not due(fault, task, repeat) or (fault.name, task, repeat) in done:
                    continue
                if problem := fault.missing():
                    print(f"{fault.name}: {problem}", file=sys.stderr)
                    continue
                folder = options.out.resolve() / f"{fault.name}_{task}_{repeat}"
                shutil.rmtree(folder, ignore_errors=True)
                row = run_trial(fault, Robot(task), folder, repeat, options.seed)
                with results.open("a") as file:
                    print(json.dumps(row), file=file)
                fine = "problem" not in row and not row["wrong"]
                good = good and "problem" not in row and not missed_bars(row)
                if fine and not options.keep:
                    shutil.rmtree(folder)
                print(summary(row), flush=True)
    return 0 if good else 1


def _end(*_: object) -> None:
    """End, and the system of the trial with it. A second signal must not interrupt that."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(143)


def due(fault: Fault, task: str, repeat: int) -> bool:
    """Whether a fault is tried in a system for the n-th time. A random pair is tried once."""
    return (not fault.tasks or task in fault.tasks) and not (fault.group == "pairs" and repeat)


def read(results: Path) -> list[dict[str, object]]:
    """Return the lines of a campaign so far. A last line that was cut off is left out."""
    lines = results.read_text().splitlines(keepends=True) if results.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def summary(row: dict[str, object]) -> str:
    """Return one line for the terminal."""
    name = f"{row['fault']} {row['task']} {row['repeat']}"
    if "problem" in row:
        return f"{name}: {row['problem']}"
    numbers = {
        key: row[key] for key in ("deadline_s", "rest_s", "again_s", "before", "peak", "far", "reason_s", "lost")
    }
    return f"{name}: {'; '.join(map(str, row['wrong'])) or 'good'}  {json.dumps(numbers)}"  # type: ignore[call-overload]


def main() -> int:
    """List, try, or show a table."""
    options = parsed()
    wanted = chosen(options.faults, faults(options.pairs, options.seed))
    if options.list:
        for fault in wanted:
            print(f"{fault.group:<10} {fault.name:<24} {fault.what}")
        return 0
    if options.table:
        print(table(wanted, options.tasks.split(","), read(options.out / "results.jsonl")))
        return 0
    return campaign(options, wanted)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BidError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
