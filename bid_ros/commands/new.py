"""``bid new``: write the folder of a new system, ready to be edited."""

import argparse
from typing import Any, Final

EXAMPLES: Final = """\
examples:
  bid new push_cup --robot franka                        a task of your own, over an empty table
  bid new push_cup --robot ur --cameras front wrist_cam  its cameras under other names
  bid new my_place --like franka_place                   a copy of a shipped system, its policy included"""


def add_parser(verbs: Any) -> None:
    """Add ``new``."""
    parser = verbs.add_parser(
        "new",
        help="write the folder of a system of your own",
        description="Write a folder with all that a system needs, commented and ready to be edited. It starts in the "
        "twin as it is: an empty table, over which the arm draws a small rectangle; or what --like names. Objects and "
        "a judge are lines of its task.yaml.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", help="to write; its name becomes that of the task")
    parser.add_argument("--robot", default="", help="franka, ros, ur, or a robot that an installed package brings")
    parser.add_argument("--like", default="", help="copy a shipped system, franka_place or ur5_pick, policy and all")
    parser.add_argument(
        "--cameras",
        nargs="+",
        default=[],
        metavar="NAME",
        help="names of the cameras, in the order of task.yaml: the fixed one, then the one at the wrist, whose name "
        "has wrist or hand in it (a shipped policy knows only its own names, so it is left out)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the folder; return 0."""
    from bid_ros.system.new import new_system

    system = new_system(options.folder, options.robot, options.like, options.cameras)
    print(f"wrote {', '.join(sorted(file.name for file in system.folder.iterdir()))}")
    print(
        f"next: bid check {options.folder}, then bid up {options.folder}, and bid record {options.folder} to "
        f"demonstrate it; {options.folder}/README.md says how to go on"
    )
    return 0
