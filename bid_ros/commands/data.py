"""``bid data``: build data sets from bags, convert them between formats, and look at one."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bid_ros.commands.data_info import describe
from bid_ros.commands.data_map import add_map
from bid_ros.commands.tasks import task_file_of_bags, task_of
from bid_ros.core.errors import BidError
from bid_ros.core.task import Task, load_task
from bid_ros.recording.outcomes import ALL, OUTCOMES, SUCCESS

if TYPE_CHECKING:
    from bid_ros.formats import Contents, Options, Source
    from bid_ros.formats.bag import BagReport

SOURCE_HELP = "a data set of any known format, a bag, or a folder of runs with bags"
TASK_HELP = "name or path of the task file, whose section data says where the features are (default: what the data say)"


def add_parser(verbs: Any) -> None:
    """Add ``data`` and its parts."""
    data = verbs.add_parser(
        "data",
        help="build data sets from bags, convert them, look at one, and propose its task",
        description="Data sets of other formats: LeRobotDataset, the zarr of Diffusion Policy, robomimic's HDF5. "
        "bid train reads all of them as they are.",
    )
    parts = data.add_subparsers(title="actions", dest="part", required=True, metavar="ACTION")
    _add_build(parts)
    _add_convert(parts)
    info = parts.add_parser(
        "info",
        help="say what a data set holds, and what each other format would lose of it",
        description="Say what a data set holds: episodes, rows, rate, features with their keys and shapes. Say also "
        "what is read differently from what its files declare, and which format keeps or changes which feature. With "
        "--task: where each feature of the task comes from.",
    )
    info.add_argument("path", help=SOURCE_HELP)
    info.add_argument("--task", default="", help=TASK_HELP)
    info.add_argument("--from", dest="source_format", default="", help="format of the data set (default: recognised)")
    info.add_argument("--json", action="store_true", help="print the report as JSON")
    info.set_defaults(run=run_info)
    add_map(parts, SOURCE_HELP)


def _add_build(parts: Any) -> None:
    build = parts.add_parser("build", help="build a data set from bags")
    build.add_argument("bags", nargs="+", help="bags, or folders that hold runs with a bag")
    build.add_argument("--task", default="", help="name or path of the task file (default: what the bags are of)")
    build.add_argument("-o", "--out", default="data/dataset.npz", help="file to write (default data/dataset.npz)")
    build.add_argument("--json", action="store_true", help="print the report as JSON")
    build.set_defaults(run=run_build)


def _add_convert(parts: Any) -> None:
    convert = parts.add_parser(
        "convert",
        help="write a data set in another format",
        description="Write a data set in another format, one episode in memory at a time. Running a killed command "
        "again continues after the last whole episode. The target appears once it is complete; no file is replaced.",
        epilog="With a task the target holds the task's features, under their names. Without one it holds what the "
        "source holds, under the source's keys.",
    )
    convert.add_argument("source", help=SOURCE_HELP)
    convert.add_argument("target", help="file or folder to write; a name ending in .zip makes zarr one file")
    convert.add_argument(
        "--to",
        required=True,
        metavar="FORMAT",
        help="lerobot_v30, lerobot_v21, zarr, robomimic, npz, bag, or another's",
    )
    convert.add_argument("--from", dest="source_format", default="", help="format of the source (default: recognised)")
    convert.add_argument("--task", default="", help=TASK_HELP)
    convert.add_argument(
        "--images",
        default="video",
        metavar="FORM",
        help="for LeRobot: png, exact; or video, small with loss, or video:RATE with a rate factor of H.264 from 0 to "
        "51, smaller is better (default video:18)",
    )
    convert.add_argument(
        "--outcome",
        default="",
        metavar="WHICH",
        help=f"episodes that ended as: {', '.join(OUTCOMES)} (default: {SUCCESS} for bags, {ALL} for other sets)",
    )
    convert.add_argument(
        "--verify",
        action="store_true",
        help="compare every written episode with its source; default: of large data sets only a sample",
    )
    convert.add_argument("--json", action="store_true", help="print the report as JSON")
    convert.set_defaults(run=run_convert)


def run_build(options: argparse.Namespace) -> int:
    """Build a data set from bags."""
    from bid_ros.formats import convert
    from bid_ros.formats.bag import BagSource, bags_below
    from bid_ros.recording.dataset import check_place

    bags = [bag for path in options.bags for bag in bags_below(Path(path))]
    if not bags:
        raise BidError(
            f"there is no bag in {', '.join(options.bags)}; valid are bags, or folders that hold runs with one"
        )
    task = load_task(task_file_of_bags(options.task, bags))
    out = Path(options.out)
    check_place(out)
    reports: list[BagReport] = []

    def told(report: BagReport) -> None:
        reports.append(report)
        _report(report)

    source = BagSource(bags, task, told=told)
    for note in source.contents.notes:
        print(f"read otherwise: {note}", file=sys.stderr)
    made = convert(source, out, "npz", keep=out.parent / "parts")
    with np.load(out) as written:
        sha256 = str(written["sha256"])
    print(f"{out}: {made.episodes} episodes, {made.rows} rows, sha256 {sha256}", file=sys.stderr)
    if options.json:
        whole = {"path": str(out), "episodes": made.episodes, "rows": made.rows, "sha256": sha256}
        notes = list(source.contents.notes)
        print(json.dumps({**whole, "notes": notes, "bags": [vars(report) for report in reports]}))
    return 0


def _report(report: BagReport) -> None:
    print(f"{report.path}: {report.used} of {report.episodes} episodes, {report.rows} rows", file=sys.stderr)
    for reason in report.reasons:
        print(f"  {reason}", file=sys.stderr)


def run_convert(options: argparse.Namespace) -> int:
    """Convert a data set."""
    from bid_ros.formats import convert

    source, task = opened(options.source, options.task, options.source_format, options.outcome)
    written = _written(options.images, task)
    origin = str(Path(options.source).resolve())
    with progress_bar(source.contents) as progress:
        report = convert(source, options.target, options.to, written, progress, origin, whole=options.verify)
    left = list(getattr(source, "reasons", ()))
    if options.json:
        print(json.dumps(report.__dict__ | {"left_out": left}))
        return 0
    again = f", {report.resumed} from an earlier run" if report.resumed else ""
    print(f"{report.target}: {report.format}, {report.episodes} episodes{again}, {report.rows} rows", file=sys.stderr)
    more = "" if report.compared == report.episodes else "; --verify compares all"
    lines = [f"{report.compared} of {report.episodes} episodes read again and equal to what was read{more}"]
    if report.unread:
        lines.append(f"{report.unread} rows of these are left out when the bags are read")
    for name, (median, lowest) in report.fidelity.items():
        lines.append(f"pictures of {name}: median PSNR {median:.1f} dB, lowest {lowest:.1f} dB")
    changes = [f"{name}: {how}" for name, how in report.changed.items()]
    lines += [f"  {line}" for line in (*report.notes, *changes, *report.lost)]
    lines += [f"  left out: {line}" for line in left]
    print("\n".join(lines), file=sys.stderr)
    return 0


def _written(images: str, task: Task | None) -> Options:
    """Return how a data set is written. Raises BidError for another ``--images``."""
    from bid_ros.formats import Options

    form, _, rate = images.partition(":")
    if form == "png" and not rate:
        return Options("png", task=task)
    if form == "video" and not rate:
        return Options("video", task=task)
    if form == "video" and rate.isdecimal():
        return Options("video", int(rate), task)
    raise BidError(f"--images is '{images}'; valid are png, video and video:RATE with a rate factor of 0 to 51")


def run_info(options: argparse.Namespace) -> int:
    """Describe a data set."""
    source, task = opened(options.path, options.task, options.source_format)
    describe(options.path, source, task, options.json)
    return 0


def opened(path: str, named: str, form: str = "", outcome: str = "") -> tuple[Source, Task | None]:
    """Open a data set as that of a task, if one is named or the data say one that is shipped.

    Args:
        path: file or folder.
        named: value of ``--task``.
        form: format of the data set; empty: recognised.
        outcome: of the episodes, one of ``OUTCOMES``; empty: of bags success, of other data sets all.

    Raises:
        BidError: the data set is damaged or unknown, or does not hold what the task needs.
    """
    from bid_ros.formats import chosen, mapped, open_source
    from bid_ros.formats.bag import bags_below
    from bid_ros.formats.base import format_of

    form = form or format_of(Path(path))
    if form == "bag":
        bags = bags_below(Path(path))
        task = load_task(task_file_of_bags(named, bags)) if bags else None
        return chosen(open_source(path, task, form), outcome or SUCCESS), task
    source = chosen(open_source(path, None, form), outcome or ALL)
    task = task_of(named, "", path) if named else _task_said(source.contents, path)
    return (source, None) if task is None else (mapped(source, task), task)


def _task_said(contents: Contents, path: str) -> Task | None:
    """Return the task that the data name, if it is shipped and has not changed since."""
    if not contents.task:
        return None
    try:
        task = task_of("", contents.task, path)
    except BidError:
        return None
    return task if task.signature() == contents.signature else None


def dataset_task(path: str, named: str) -> Task:
    """Return the task that the data set at ``path`` is read for.

    Raises:
        BidError: neither ``named`` nor the data say it, or its file is invalid.
    """
    from bid_ros.formats import open_source
    from bid_ros.formats.bag import bags_below
    from bid_ros.formats.base import format_of

    form = "" if named else format_of(Path(path))
    if form == "bag":
        return load_task(task_file_of_bags("", bags_below(Path(path))))
    said = named or open_source(path, None, form).contents.task
    if not said:
        raise BidError(f"{path} does not say which task its data are of; give the task file with --task")
    return task_of(named, said, path)


@contextmanager
def progress_bar(contents: Contents, most: int | None = None) -> Iterator[Callable[[int, int], None]]:
    """Show a bar of episodes, ``most`` at most, on standard error, where it is a terminal."""
    from bid_ros.core.extras import extra

    with extra("data", "bid data"):
        from tqdm import tqdm
    total = most if contents.lengths is None else len(contents.lengths[:most])
    with tqdm(total=total, unit="episode", file=sys.stderr, disable=None) as bar:

        def show(episodes: int, rows: int) -> None:
            bar.set_postfix(rows=rows, refresh=False)
            bar.update(episodes - bar.n)

        yield show
