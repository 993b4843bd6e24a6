"""``bid episodes video``, ``repair``, ``table`` and ``motion``: look at recorded runs."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from bid_ros.commands.run_video import CAMERAS, draw_run, draw_studio
from bid_ros.commands.tasks import moving_in, recorded, task_file_of_bags
from bid_ros.core.errors import BidError
from bid_ros.core.task import load_task


def add_runs(inner: Any) -> None:
    """Add the four verbs."""
    video = inner.add_parser("video", help="draw a recorded run with its decisions")
    video.add_argument("bag", help="folder of the recorded bag; BAG:N is its episode N")
    video.add_argument("--task", default="", help="name or path of the task file (default: that of run.json beside it)")
    video.add_argument("-o", "--out", default="run.gif", help="GIF, WebP or MP4 file to write (default run.gif)")
    video.add_argument(
        "--quality",
        choices=("run", CAMERAS, "480p", "720p", "1080p"),
        default="run",
        help="run: the shaded scene of the twin with the policy's images beside it; cameras: what the cameras saw (run "
        "shows this for a robot too); 480p to 1080p: the shaded scene alone, also as .png (default run)",
    )
    video.add_argument(
        "--episode", type=int, help="for a shaded scene: only this episode, counted from 0 (default all)"
    )
    video.add_argument("--at", type=float, default=3.0, help="for a .png: s after the start of the episode (default 3)")
    video.set_defaults(run=run_video)

    repair = inner.add_parser("repair", help="repair a bag whose recorder was killed")
    repair.add_argument("bag", help="folder of the recorded bag")
    repair.set_defaults(run=run_repair)

    table = inner.add_parser("table", help="table and bar chart of the success of runs")
    table.add_argument("runs", nargs="+", help="run.json files or folders that hold one")
    table.add_argument("--plot", default="", help="PNG file to write")
    table.add_argument("--json", action="store_true", help="print the numbers as JSON")
    table.set_defaults(run=run_table)

    motion = inner.add_parser(
        "motion",
        help="compare the commanded motion of a run with the limits, at switches of chunks and elsewhere",
        description="Speed and acceleration of the recorded set-points beside the task's limits. The arm node records "
        "one set-point in two, so an acceleration is the mean over two steps of the servo. A line gives the tool's lag "
        "behind its set-points, and its distance from them without that lag. The last table says how near the checks "
        "of robot, link and computer came to their limits. Exit status 1 if a motion is above a limit.",
    )
    motion.add_argument("bag", help="folder of the recorded bag")
    motion.add_argument(
        "--task", default="", help="name or path of the task file (default: that of run.json beside it)"
    )
    motion.add_argument("--plot", default="", help="PNG file to write")
    motion.add_argument("--json", action="store_true", help="print the report as JSON")
    motion.set_defaults(run=run_motion)


def run_video(options: argparse.Namespace) -> int:
    """Draw the video of a bag."""
    from bid_ros.curation.catalog import split_name  # imports the readers of bags

    (bag, named), out = split_name(options.bag), Path(options.out)
    episode = named if options.episode is None else options.episode
    if named not in (None, episode):
        raise BidError(f"{options.bag} names episode {named} and --episode {episode}; valid is one of them")
    if options.quality == CAMERAS and episode is not None:
        raise BidError(
            f"quality {CAMERAS} shows the whole bag, not episode {episode}; valid with it is another quality"
        )
    file, twin = task_file_of_bags(options.task, [bag]), recorded(bag).get("hardware", "twin") == "twin"
    if options.quality == CAMERAS:
        from bid_ros.views.replay_video import write_run_video

        written = write_run_video(bag, out, file, twin)
    elif options.quality == "run" and episode is None and out.suffix != ".png":
        written = draw_run(bag, out, file, twin)
    else:
        written = draw_studio(bag, out, file, options.quality, twin, options.at, episode)
    print(f"wrote {written}" if written else "the bag has nothing of such an episode to show", file=sys.stderr)
    return 0 if written else 1


def run_repair(options: argparse.Namespace) -> int:
    """Repair a bag."""
    from bid_ros.recording.repair import repair_bag

    report = repair_bag(Path(options.bag))
    print(
        f"{options.bag}: {report.messages} messages, {report.damaged_chunks} damaged chunks left out, "
        f"{report.cut_bytes} bytes cut",
        file=sys.stderr,
    )
    return 0


def run_table(options: argparse.Namespace) -> int:
    """Compare runs."""
    from bid_ros.episodes.comparison import collect, success_json, success_table

    files = [path / "run.json" if path.is_dir() else path for path in map(Path, options.runs)]
    table = success_table(files, Path(options.plot) if options.plot else None, moving_in(files))
    print(json.dumps(success_json(collect(files))) if options.json else table)
    return 0


def run_motion(options: argparse.Namespace) -> int:
    """Compare the commanded motion of a run with the limits, and the tool's motion with the commanded one."""
    from bid_ros.curation.commanded import commanded_report, commanded_table, draw_commanded, read_commanded
    from bid_ros.curation.shares import margins_report, margins_table, read_margins
    from bid_ros.views.lag import followed_line, followed_report, read_followed

    limits = load_task(task_file_of_bags(options.task, [Path(options.bag)])).limits
    motion = read_commanded(Path(options.bag))
    report = commanded_report(motion, limits)
    tool = followed_report(read_followed(Path(options.bag)))
    checks = read_margins(Path(options.bag))
    text = f"{commanded_table(report)}\n{followed_line(tool)}\n{margins_table(checks)}".rstrip()
    print(json.dumps({**report, "tool": tool, "margins": margins_report(checks)}) if options.json else text)
    if options.plot:
        draw_commanded(motion, limits, Path(options.plot))
    return 1 if any(row["above"] for row in report["quantities"].values()) else 0
