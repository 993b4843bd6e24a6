"""``bid data map``: propose the task file of a data set."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from bid_ros.core.errors import BidError


def add_map(parts: Any, source_help: str) -> None:
    """Add ``bid data map``."""
    parser = parts.add_parser(
        "map",
        help="propose the task file of a data set",
        description="Propose the task file of a data set, of any robot: observations and actions with their keys and "
        "units, rate and limits, judged by names, shapes and numbers. What these do not tell is printed, and stays in "
        "the file as comments. The task has no robot: bid train and bid evaluate take it, but no arm runs it.",
    )
    parser.add_argument("source", help=source_help)
    parser.add_argument("-o", "--out", default="task.yaml", help="file to write (default task.yaml)")
    parser.add_argument("--json", action="store_true", help="print the features and what is undecided as JSON")
    parser.set_defaults(run=run_map)


def run_map(options: argparse.Namespace) -> int:
    """Propose a task file."""
    from bid_ros.formats import open_source
    from bid_ros.formats.base import format_of
    from bid_ros.formats.proposal import propose

    out = Path(options.out)
    if out.exists():
        raise BidError(f"{out} exists; name another file with --out")
    form = format_of(Path(options.source))
    if form == "bag":
        _refuse_bags(options.source)
    found = propose(open_source(options.source, None, form), options.source)
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("x") as file:
        file.write(found.text)
    if options.json:
        print(json.dumps({"path": str(out), "features": found.features, "undecided": found.undecided}))
        return 0
    for each in found.features:
        unit = f", {each['unit']}" if each["unit"] else ""
        print(f"{each['group']} {each['name']}: {each['kind']}{unit}, from {each['key']}")
    for sentence in found.undecided:
        print(f"undecided: {sentence}", file=sys.stderr)
    if form == "npz":
        print("bid train takes an npz with the task that it was built for; bid data convert it first", file=sys.stderr)
    print(f"wrote {out}; look at it, then: bid data info {options.source} --task {out}", file=sys.stderr)
    return 0


def _refuse_bags(source: str) -> None:
    """Raise BidError: the topics of bags are named by the task that they were recorded for, or by a person."""
    from bid_ros.commands.tasks import task_file_of_bags
    from bid_ros.formats.bag import bags_below

    try:
        task = task_file_of_bags("", bags_below(Path(source)))
    except BidError:
        raise BidError(
            f"{source} holds bags of another recorder, and bags are not mapped; valid is a data set, or a task file "
            "that you write, whose section data names the topics"
        ) from None
    raise BidError(f"{source} holds bags that were recorded for {task}; use that task file as it is")
