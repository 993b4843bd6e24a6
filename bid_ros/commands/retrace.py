"""``bid retrace``: the arm follows a recorded motion again, slowed down and through the safety node."""

import argparse
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from bid_ros.commands import up
from bid_ros.commands.arguments import SYSTEM_HELP, add_run_arguments, run_arguments
from bid_ros.commands.tasks import recorded
from bid_ros.core.checks import check_range
from bid_ros.core.errors import BidError
from bid_ros.system.folder import find_system
from bid_ros.teleop.retrace import SLOWEST

ARGUMENTS: Final = ("robot_ip", "peers", "unstaged", "rviz", "out", "namespace")
APPROACH_S: Final = 60.0  # more than any way to the first pose takes


def add_parser(verbs: Any) -> None:
    """Add ``retrace``."""
    parser = verbs.add_parser(
        "retrace",
        help="let the arm follow a recorded motion again",
        description="Let the arm of a system follow the motion of a recorded episode, in its twin unless a robot is "
        "named. The arm does not look: whatever stood there then must stand there now. The tool first goes slowly to "
        "where the motion began. The safety node judges every chunk. The command asks before anything moves.",
    )
    parser.add_argument("system", help=SYSTEM_HELP)
    parser.add_argument("bag", help="a bag: its folder or file; BAG:N is its episode N, counted from 0 (default 0)")
    parser.add_argument(
        "--speed", type=float, default=0.5, help="factor of the recorded speed, 0.05 to 1 (default 0.5)"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_run_arguments(parser, ARGUMENTS, {"out": "out/retrace"})
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Ask, then start the system; return the exit status of the run."""
    from dataclasses import replace

    from bid_ros.control.joint_chunks import tool_task
    from bid_ros.curation.catalog import split_name
    from bid_ros.recording.reader import BagReader
    from bid_ros.replay.motion import read_recorded_motion

    check_range("", "--speed", options.speed, SLOWEST, 1.0, BidError)
    system, arguments = find_system(options.system), run_arguments(options)
    task = tool_task(system.task)  # of a task that commands joints the tool's motion is followed, by inverse kinematics
    bag, number = split_name(options.bag)
    with BagReader(bag) as reader:
        motion, own = read_recorded_motion(reader, task, number or 0), reader.custom.get("task", "")
    where = f"robot {arguments.robot_ip}" if arguments.robot_ip else "twin"
    print(f"arm          {system.task.robot}, {where}\n{motion.described(task, options.speed)}", file=sys.stderr)
    if own not in ("", task.name):
        print(
            f"recorded     for task '{own}', not '{task.name}': are table, tool and objects the same?", file=sys.stderr
        )
    if not options.yes:
        _ask()
    # Beside the folder of the run, which is moved aside if it exists.
    file = Path(f"{arguments.out}.motion.npz").resolve()
    motion.save(file, task)
    given = yaml.safe_dump({"motion": str(file), "speed": options.speed}, default_flow_style=True, width=4096)
    moving = recorded(bag).get("moving")
    changed = replace(
        arguments,
        driver="retrace",
        device_settings=given.strip(),
        seed=motion.seed,
        episodes=1,
        moving=moving if isinstance(moving, float) else 0.0,
        timeout=APPROACH_S + motion.times[-1] / options.speed,
    )
    return up.play(system, changed, options.json)


def _ask() -> None:
    """Ask the person. Raises BidError unless the answer is yes."""
    if not sys.stdin.isatty():
        raise BidError("nobody can answer here whether the arm may move; valid is a terminal, or --yes")
    if input("may the arm follow it? yes, or anything else to leave it: ").strip().lower() != "yes":
        raise BidError("not confirmed, so nothing moves")
