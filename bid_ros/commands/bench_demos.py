"""``bid bench demos``: demonstrations of scripted operators for a simulated task."""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from bid_ros.bench.demonstrating import check_count, record
from bid_ros.bench.operators import OPERATORS
from bid_ros.bench.scene import SCENES
from bid_ros.commands.tasks import task_path
from bid_ros.core.errors import BidError
from bid_ros.core.extras import check_extra
from bid_ros.core.files import check_folder
from bid_ros.core.task import load_task
from bid_ros.recording.dataset import check_place


def add_demos_parser(parts: Any) -> None:
    """Add ``demos`` to the benches."""
    demos = parts.add_parser(
        "demos",
        help="make demonstrations of scripted operators",
        description="Let scripted operators do a task, and write the data set of their demonstrations. They differ in "
        "strategy, speed and skill, pause, miss and recover; they are no people. Running the command again goes on "
        "where it stopped. The same count gives the same demonstrations. Example: bid bench demos lift --count 200",
    )
    demos.add_argument("task", choices=tuple(OPERATORS), help=f"one of {', '.join(OPERATORS)}")
    demos.add_argument("--count", type=int, default=200, help="demonstrations (default 200)")
    demos.add_argument("-o", "--out", default="", help="file to write (default data/TASK/dataset.npz)")
    demos.add_argument("--json", action="store_true", help="print what was made as JSON")
    demos.set_defaults(run=run_demos)


def run_demos(options: argparse.Namespace) -> int:
    """Write the demonstrations."""
    check_count(options.count)
    out, task = Path(options.out or f"data/{options.task}/dataset.npz"), load_task(task_path(options.task))
    if out.is_dir():
        raise BidError(f"--out is {out}, which is a folder; valid is a file, such as {out / 'dataset.npz'}")
    check_place(out)
    check_folder(out.parent)
    attempt, began = OPERATORS[options.task](task), time.monotonic()
    check_extra("bench", "the bench", "tqdm")  # whoever makes a simulator that is missing gets this with it
    from tqdm import tqdm

    with tqdm(total=options.count, desc=options.task, file=sys.stderr) as bar:

        def show(done: int, tried: int) -> None:
            bar.set_postfix(attempts=tried, refresh=False)
            bar.update(done - bar.n)

        dataset = record(task, attempt, options.count, out, show, simulator=SCENES[options.task]().simulator)
    dataset.save(out)
    seconds = round(time.monotonic() - began, 1)
    print(f"{out}: {dataset.episodes} scripted demonstrations, {dataset.rows} rows, {seconds} s", file=sys.stderr)
    if options.json:
        found = {"out": str(out), "demonstrations": dataset.episodes, "rows": dataset.rows, "sha256": dataset.sha256}
        print(json.dumps({**found, "seconds": seconds}))
    return 0
