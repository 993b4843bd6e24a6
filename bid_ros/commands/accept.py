"""``bid accept``: a robot goes through its stages and stops once, and one folder holds all that was measured."""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from bid_ros.commands.accept_stops import KILL, STOPS, try_stop
from bid_ros.commands.arguments import SYSTEM_HELP, add_run_arguments, run_arguments
from bid_ros.commands.stage import ask, run_stage
from bid_ros.commands.up import start
from bid_ros.core.errors import BidError
from bid_ros.core.files import replace_text
from bid_ros.recording.events import read_run
from bid_ros.recording.provenance import hardware, installed_version, software
from bid_ros.robots.registry import ROBOTS, load_arm_config
from bid_ros.system.folder import System, find_system
from bid_ros.system.run import RunArguments
from bid_ros.system.stages import STAGES, stage_results

READY: Final = "undo that, and make the robot ready again as after every such stop. Is it ready?"


def add_parser(verbs: Any) -> None:
    """Add ``accept``."""
    parser = verbs.add_parser(
        "accept",
        help="measure a new robot: stages, delays, cameras, stops",
        description="Check a system, let its robot go through the six stages, and stop it three times while it moves: "
        "cable out, emergency stop, a node killed. At a robot a person is asked before each motion and does the stops; "
        "a twin is stopped by the command. Writes report.html, report.json, every bag and log to --out: the folder to "
        "send back. Exit status: 0 everything passed, 1 something did not, 2 bad input.",
    )
    parser.add_argument("system", help=SYSTEM_HELP)
    add_run_arguments(parser, ("robot_ip", "out"), {"out": "acceptance"}, printed="report.json")
    parser.add_argument(
        "--compare",
        metavar="TWIN",
        default="",
        help="folder with the twin's report: compare the report in --out with it; nothing moves",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure, or compare what was measured. Return 0 if all passed, else 1."""
    from bid_ros.episodes.acceptance import FILE, read_report

    system, out = find_system(options.system), Path(options.out).resolve()
    if options.compare:
        report = _compared(out, Path(options.compare))
    else:
        if (out / FILE).exists():
            raise BidError(f"{out} holds a report; valid is a new folder, or --compare with the twin's")
        arguments = replace(run_arguments(options), out=str(out))
        accept(system, arguments, start)
        report = read_report(out)
    if options.json:
        print(json.dumps(report))
    elif not options.compare:
        print("\n".join([*(f"problem      {text}" for text in report["problems"]), f"wrote        {out}/report.html"]))
    return 0 if report["passed"] else 1


def accept(system: System, arguments: RunArguments, play: Callable[[System, RunArguments], int]) -> None:
    """Measure a robot, and write the report, also of what was measured before an error.

    Args:
        system: whose robot.
        arguments: its address; the absolute folder of the report.
        play: runs a system, and returns the exit status of the run.

    Raises:
        BidError: the robot does not tell its firmware, or a person does not let it move.
    """
    report, out, complete = _head(system, arguments), Path(arguments.out), False
    try:
        with redirect_stdout(sys.stderr):
            report["findings"] = _findings(system, arguments)
            if not [item for item in report["findings"] if item["state"] == "fail"]:
                for result in _stages(system, arguments, play):
                    report["stages"].append(result)
                if all(item["passed"] for item in report["stages"]):
                    _stops(system, arguments, report["stops"])
        complete = True
    finally:
        if complete or report["stages"]:  # or nothing was measured, and the folder stays free
            report["problems"] = _problems(report, complete)
            report["passed"] = not report["problems"]
            write(out, report)


def _findings(system: System, arguments: RunArguments) -> list[dict[str, Any]]:
    """Return what `bid check` finds, in a process of its own: it renders, and no run may share that process."""
    words = ["--robot-ip", arguments.robot_ip] if arguments.robot_ip else []
    command = [sys.executable, "-m", "bid_ros.cli", "check", str(system.folder), "--json", *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise BidError(done.stderr.strip().removeprefix("error: "))
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return found


def _head(system: System, arguments: RunArguments) -> dict[str, Any]:
    """Return what is known before anything moves."""
    robot, address = system.task.robot, arguments.robot_ip
    found = ROBOTS.find(robot)
    config = load_arm_config(system.file("robot.yaml"), address or "twin", not address, robot)
    return {
        "system": str(system.folder),
        "task": system.task.name,
        "robot": robot,
        "robot_ip": address,
        "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "versions": {
            "firmware": found.firmware(config) if address else "twin",
            **{name: installed_version(name) for name in (found.library,) if name},
            **software(),
        },
        "computer": hardware(),
        "config": asdict(config),
        "lookahead_s": system.parameters["arm"].get("lookahead_s"),
        "findings": [],
        "stages": [],
        "stops": {},
    }


def _stages(
    system: System, arguments: RunArguments, play: Callable[[System, RunArguments], int]
) -> Iterator[dict[str, Any]]:
    """Go through the stages until one is not passed; yield what each measured, with the cameras and the checks."""
    from bid_ros.curation.shares import margins_report, read_margins
    from bid_ros.views.camera_rates import camera_rates

    for number in range(1, len(STAGES) + 1):
        out = Path(arguments.out, f"stage-{number}")
        status = run_stage(system, replace(arguments, out=str(out)), str(number), False, play)
        result = dict(stage_results(system, arguments.robot_ip)[-1])
        if (bag := out / "bag").exists():
            result |= {"cameras": camera_rates(bag), "margins": margins_report(read_margins(bag))}
        told = read_run(out) or {}
        result |= {name: told[name] for name in ("decisions", "missed", "decision_ms") if name in told}
        yield result
        if status:
            return


def _stops(system: System, arguments: RunArguments, stops: dict[str, Any]) -> None:
    """Stop the arm in each way, and note how; at a robot wait until a person has undone it."""
    for name in STOPS:
        print(f"stop '{name}'", file=sys.stderr, flush=True)
        stops[name] = try_stop(system, replace(arguments, out=str(Path(arguments.out, f"stop-{name}"))), name)
        if arguments.robot_ip and name != KILL:
            ask(READY)


def _problems(report: dict[str, Any], complete: bool) -> list[str]:
    found = [f"{item['what']}: {item['measured']}" for item in report["findings"] if item["state"] == "fail"]
    found += [f"stage {item['stage']}: {text}" for item in report["stages"] for text in item["problems"]]
    found += [f"stop {name}: {text}" for name, item in report["stops"].items() for text in item["problems"]]
    ended = [] if complete else ["it was ended before everything was measured"]
    return found + ended


def write(out: Path, report: dict[str, Any]) -> None:
    """Write a report as JSON and as a page."""
    from bid_ros.episodes.acceptance import FILE
    from bid_ros.views.acceptance_page import acceptance_page

    replace_text(out / FILE, json.dumps(report, indent=1) + "\n")
    replace_text(out / "report.html", acceptance_page(report))


def _compared(out: Path, twin: Path) -> dict[str, Any]:
    """Put a report beside a twin's, write and print what would make the twin alike, and return the report."""
    from bid_ros.core.tables import aligned
    from bid_ros.episodes.acceptance import PARAMETERS, compared, read_report

    report = read_report(out)
    report["comparison"] = found = compared(report, read_report(twin))
    replace_text(out / PARAMETERS, found["text"])
    write(out, report)
    print(aligned([("measured", "this", "twin"), *found["rows"]]), file=sys.stderr)
    print(f"wrote        {out / PARAMETERS}, which would make the twin alike:\n{found['text']}", file=sys.stderr)
    return report
