"""``bid episodes``: look at recorded bags, validate them, and make pictures of them."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bid_ros.commands.episodes_edit import add_edits, add_remap, add_verb
from bid_ros.commands.episodes_runs import add_runs
from bid_ros.commands.progress import progress
from bid_ros.commands.tasks import recorded_task, task_path
from bid_ros.core.errors import BidError
from bid_ros.core.task import Task, load_task

PATHS_HELP = "bags (rosbag2 folders, .mcap, .db3, ROS 1 .bag), runs that hold one, or folders of these"
EPISODE_HELP = "a bag or a run; BAG:N is its episode N, counted from 0"
EPILOG = """examples:
  bid episodes list runs/                               every episode of every run
  bid episodes show runs/today/bag:2                    topics, rates, events and end of one episode
  bid episodes validate runs/ --task franka_place       what a data set must not hold; exit status 1 if there is some
  bid episodes sheet runs/today/bag:2 -o sheet.png      what the cameras saw
  bid episodes video runs/today/bag -o run.gif          the scene, the decisions, what the cameras saw
  bid episodes motion runs/today/bag                    the commanded motion beside the limits
  bid episodes table runs/a runs/b                      the success of runs
  bid episodes trim runs/today/bag:2 --to 4.5 -o good   a bag of the first 4.5 s
  bid episodes delete runs/today/bag:2                  into the trash; bid episodes restore takes it back
"""


def add_parser(verbs: Any) -> None:
    """Add ``episodes``."""
    parser = verbs.add_parser(
        "episodes",
        help="list, check, cut and show recorded episodes",
        description="Look at recorded bags and clean them. Bags of other recorders are read too: MCAP, sqlite3, ROS 1. "
        "Only two change a bag: delete moves it to a trash, and repair mends one whose recorder was killed.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    inner = parser.add_subparsers(title="verbs", dest="inner", required=True, metavar="VERB")
    listing = add_verb(inner, "list", "list the episodes of bags", run_list)
    listing.add_argument("paths", nargs="+", help=PATHS_HELP)

    show = add_verb(inner, "show", "show the topics, rates, events and the end of episodes", run_show)
    show.add_argument("bag", help=EPISODE_HELP)
    add_remap(show)

    validate = add_verb(
        inner, "validate", "find gaps, drops, wrong clocks, stale frames, broken limits, changed events", run_validate
    )
    validate.description = (
        "Check episodes, and the hash chain of a run's events.jsonl. An error: a data set must not hold the episode. A "
        "warning: a person should look at it. Exit status 1 if there is an error. Without a task, the needed topics "
        "and the limits are not checked."
    )
    validate.add_argument("paths", nargs="+", help=f"{PATHS_HELP}; or BAG:N")
    validate.add_argument("--strict", action="store_true", help="exit status 1 for warnings too")
    _task(validate)
    add_remap(validate)

    for name, what, default in (
        ("sheet", "write a contact sheet: what every camera saw over time", "sheet.png"),
        ("plot", "plot the motion: tool, gripper and speed, commanded and measured", "plot.png"),
    ):
        picture = inner.add_parser(name, help=what)
        picture.set_defaults(run=run_picture)
        picture.add_argument("bag", help=EPISODE_HELP)
        picture.add_argument("-o", "--out", default=default, help=f"PNG file to write (default {default})")
        _task(picture)
        add_remap(picture)

    page = inner.add_parser("page", help="write one HTML page of a whole data set")
    page.set_defaults(run=run_page)
    page.add_argument("paths", nargs="+", help=PATHS_HELP)
    page.add_argument("-o", "--out", default="episodes", help="folder to write index.html to (default episodes)")
    _task(page)
    add_remap(page)
    add_runs(inner)
    add_edits(inner)


def _task(parser: Any) -> None:
    parser.add_argument("--task", default="", help="name or path of the task file (default: that of the recorded run)")


@dataclass(frozen=True)
class Tasks:
    """The task of each bag: that of ``--task``, or the one that it was recorded for, if that is known."""

    named: str

    def of(self, bag: Path) -> Task | None:
        """Return the task of a bag; None if nothing says it. Raises BidError for a bad ``--task``."""
        if self.named:
            return load_task(task_path(self.named))
        try:
            return load_task(task_path(recorded_task([bag])))
        except BidError:
            return None


def run_list(options: argparse.Namespace) -> int:
    """List episodes."""
    from bid_ros.curation.catalog import find_bags
    from bid_ros.curation.listing import listed, table

    bags = find_bags(options.paths)
    rows, problems = [], []
    with progress("bags", len(bags)) as step:
        for bag in bags:
            try:
                rows += listed(bag)
            except BidError as error:
                problems.append(str(error))
            step()
    print(json.dumps({"episodes": rows, "problems": problems}) if options.json else table(rows))
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 2 if problems else 0


def run_show(options: argparse.Namespace) -> int:
    """Show one bag or episode."""
    from bid_ros.curation.catalog import one_bag, split_name
    from bid_ros.curation.listing import shown, shown_text
    from bid_ros.recording.bag_topics import read_remapped

    path, number = split_name(options.bag)
    bag = one_bag(path)
    task = Tasks("").of(bag)
    about = shown(bag, number, read_remapped(options.remap), "" if task is None else task.name)
    print(json.dumps(about) if options.json else shown_text(about))
    return 0


def run_validate(options: argparse.Namespace) -> int:
    """Check bags."""
    from bid_ros.curation.catalog import find_bags, split_name
    from bid_ros.curation.validate import runs_of, validate_bag, validate_events
    from bid_ros.recording.bag_topics import read_remapped

    named = [split_name(path) for path in options.paths]
    paths = [path for path, _ in named]
    # A run may have been started without a recorder.
    pairs = [(bag, number) for path, number in named for bag in find_bags([path], bool(runs_of(path)))]
    tasks, remapped = Tasks(options.task), read_remapped(options.remap)
    found = list(validate_events(paths))
    unknown = 0
    with progress("bags", len(pairs)) as step:
        for bag, number in pairs:
            task = tasks.of(bag)
            unknown += task is None
            found += validate_bag(bag, task, remapped, number)
            step()
    errors = sum(item.errors for item in found)
    warnings = sum(len(item.faults) for item in found) - errors
    if options.json:
        print(json.dumps({"errors": errors, "warnings": warnings, "found": [item.as_json() for item in found]}))
    else:
        _print_found(found)
        episodes = sum(item.recorded is not None for item in found)
        print(f"bags: {len(pairs)}, episodes: {episodes}, errors: {errors}, warnings: {warnings}")
        if unknown:
            print(f"bags whose task is not known: {unknown}; their topics and limits were not checked: name it, --task")
    return 1 if errors or (options.strict and warnings) else 0


def _print_found(found: Sequence[Any]) -> None:
    for item in found:
        if item.faults:
            print(item.bag if item.recorded is None else item.recorded.name)
        for fault in item.faults:
            print(f"  {fault.severity:7}  {fault.check}: {fault.text}")


def run_picture(options: argparse.Namespace) -> int:
    """Write a contact sheet or a plot."""
    from bid_ros.curation.catalog import chosen, one_bag, split_name
    from bid_ros.recording.bag_topics import read_remapped
    from bid_ros.recording.reader import BagReader
    from bid_ros.views.contact_sheet import draw_sheet
    from bid_ros.views.episode_plot import write_episode_plot

    path, number = split_name(options.bag)
    bag = one_bag(path)
    task, out = Tasks(options.task).of(bag), Path(options.out)
    with BagReader(bag, read_remapped(options.remap)) as reader:
        episodes = chosen(reader, number)
        if options.inner == "sheet":
            draw_sheet(reader, episodes, out)
        else:
            write_episode_plot(reader, episodes, task, out)
    print(f"wrote {out}")
    return 0


def run_page(options: argparse.Namespace) -> int:
    """Write the page of a data set."""
    from bid_ros.curation.catalog import find_bags
    from bid_ros.recording.bag_topics import read_remapped
    from bid_ros.views.dataset_page import read_cards, write_page

    bags = find_bags(options.paths)
    tasks, remapped = Tasks(options.task), read_remapped(options.remap)
    cards: list[Any] = []
    with progress("bags", len(bags)) as step:
        for bag in bags:
            cards += read_cards(bag, tasks.of(bag), remapped)
            step()
    written = write_page(cards, Path(options.out), " ".join(options.paths))
    print(f"wrote {written}")
    return 0
