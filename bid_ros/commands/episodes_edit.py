"""``bid episodes trim``, ``split``, ``merge``, ``delete`` and ``restore``: cut recorded bags."""

import argparse
import json
from pathlib import Path
from typing import Any

from bid_ros.commands.progress import progress
from bid_ros.commands.tasks import recorded_task
from bid_ros.core.errors import BidError


def add_edits(inner: Any) -> None:
    """Add the verbs that write bags."""
    trim = add_verb(inner, "trim", "write a part of an episode into a new bag", run_trim)
    trim.add_argument("bag", help="BAG:N, episode N of a bag; N may be left out if it is the only one")
    trim.add_argument("--from", type=float, default=0.0, dest="begin", metavar="S", help="s after START (default 0)")
    trim.add_argument("--to", type=float, dest="end", metavar="S", help="s after START (default: the end)")
    trim.add_argument("-o", "--out", required=True, help="bag folder to create")
    add_remap(trim)

    split = add_verb(inner, "split", "write each episode of a bag into a bag of its own", run_split)
    split.add_argument("bag", help="folder of the recorded bag")
    split.add_argument("-o", "--out", required=True, help="folder to write the bags to")

    merge = add_verb(inner, "merge", "write several bags of one system into one", run_merge)
    merge.add_argument("paths", nargs="+", help="bags, runs that hold one, or folders of these")
    merge.add_argument("-o", "--out", required=True, help="bag folder to create")

    delete = add_verb(inner, "delete", "move a bag, or an episode of it, to the trash beside it", run_delete)
    delete.add_argument("bag", nargs="+", help="a bag; BAG:N deletes its episode N alone")

    restore = add_verb(inner, "restore", "restore what was last deleted of a bag", run_restore)
    restore.add_argument("bag", help="path that the bag had; a folder lists what is in its trash")


def add_verb(inner: Any, name: str, what: str, run: Any) -> Any:
    """Add a verb of ``bid episodes``, with ``--json``, and return its parser."""
    parser = inner.add_parser(name, help=what)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=run)
    return parser


def add_remap(parser: Any) -> None:
    """Add ``--remap``, for bags of other recorders."""
    parser.add_argument(
        "--remap",
        nargs="+",
        default=(),
        metavar="TOPIC:=/NAME",
        help="for bags of other recorders: topic of bid_ros := recorded topic, as camera/wrist/image:=/cam/image_raw",
    )


def about_of(bag: Path) -> dict[str, str]:
    """Return the custom data that a new bag gets: the task of the bag that it comes from, if that is known."""
    try:
        return {"task": recorded_task([bag])}
    except BidError:
        return {}


def _say(options: argparse.Namespace, text: str, about: dict[str, Any]) -> int:
    print(json.dumps(about) if options.json else text)
    return 0


def run_trim(options: argparse.Namespace) -> int:
    """Trim an episode."""
    from bid_ros.curation.catalog import one_bag, split_name
    from bid_ros.curation.edit import trim
    from bid_ros.recording.bag_topics import read_remapped

    path, number = split_name(options.bag)
    bag = one_bag(path)
    part = (options.begin, options.end)
    count = trim(bag, number, *part, Path(options.out), about_of(bag), read_remapped(options.remap))
    return _say(options, f"wrote {options.out}: {count} messages", {"written": options.out, "messages": count})


def run_split(options: argparse.Namespace) -> int:
    """Split a bag."""
    from bid_ros.curation.catalog import one_bag
    from bid_ros.curation.edit import split

    bag = one_bag(options.bag)
    with progress("episodes") as step:
        made = [str(path) for path in split(bag, Path(options.out), about_of(bag), step)]
    return _say(options, f"wrote {len(made)} bags: {made[0]} to {made[-1]}", {"written": made})


def run_merge(options: argparse.Namespace) -> int:
    """Merge bags."""
    from bid_ros.curation.catalog import find_bags
    from bid_ros.curation.edit import merge

    bags = find_bags(options.paths)
    try:
        about = {"task": recorded_task(bags)}
    except BidError as error:
        if "are of the tasks" in str(error):
            raise
        about = {}
    with progress("thousand messages") as step:
        count = merge(bags, Path(options.out), about, step)
    text = f"wrote {options.out}: {count} messages of {len(bags)} bags"
    return _say(options, text, {"written": options.out, "messages": count})


def run_delete(options: argparse.Namespace) -> int:
    """Delete bags or episodes: all that are named, or none if one of them does not exist."""
    from bid_ros.curation.catalog import chosen, one_bag, split_name
    from bid_ros.curation.trash import delete
    from bid_ros.recording.reader import BagReader

    # Each once: the numbers of those behind a deleted episode change.
    named = {(one_bag(path).absolute(), number) for path, number in map(split_name, options.bag)}
    for bag, number in named:
        if number is not None:
            with BagReader(bag) as reader:
                chosen(reader, number)
    # The last episode of a bag first: the numbers of those before it stay.
    ordered = sorted(named, key=lambda item: (str(item[0]), -1 if item[1] is None else item[1]), reverse=True)
    gone = [delete(bag, number) for bag, number in ordered]
    lines = [
        f"{item.name}{'' if item.number is None else f' episode {item.number}'}: moved to {item.place}; "
        "bid episodes restore takes it back"
        for item in gone
    ]
    return _say(options, "\n".join(lines), {"deleted": [vars(item) for item in gone]})


def run_restore(options: argparse.Namespace) -> int:
    """Restore a bag, or list the trash of a folder."""
    from bid_ros.curation.trash import restore, trashed

    path = Path(options.bag)
    inside = trashed(path) if path.is_dir() else []
    if inside:
        lines = [f"{item.when}  {item.name}{'' if item.number is None else f':{item.number}'}" for item in inside]
        return _say(options, "\n".join(lines), {"trash": [vars(item) for item in inside]})
    back = restore(path)
    what = "the bag" if back.number is None else f"episode {back.number}"
    return _say(options, f"{path}: {what} is back", {"restored": vars(back)})
