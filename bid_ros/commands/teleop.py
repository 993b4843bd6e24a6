"""``bid teleop``: a person drives the arm of a system."""

import argparse
import sys
from dataclasses import replace
from typing import Any, Final

from bid_ros.commands import up
from bid_ros.commands.arguments import SYSTEM_HELP, add_run_arguments, run_arguments
from bid_ros.system.folder import find_system
from bid_ros.teleop.registry import DEVICES

KEYBOARD: Final = "keyboard"
MINUTES: Final = 120.0  # s for an episode of a person, who is slower than a policy
# A person's arguments: what concerns a policy alone is left out.
ARGUMENTS: Final = (
    *("robot_ip", "device_settings", "moving", "episodes", "seed", "timeout"),
    *("rviz", "record", "out", "namespace", "parameters", "log_level"),
)


def add_parser(verbs: Any) -> None:
    """Add ``teleop``."""
    people = [name for name in DEVICES.names() if DEVICES.find(name).help]
    keys = "\n\n".join(f"{name}\n{DEVICES.find(name).help}" for name in people)
    parser = verbs.add_parser(
        "teleop",
        help="drive the arm yourself",
        description="Drive the arm of a system, in its twin unless a robot is named. Each device has a dead man's "
        "switch. The safety node checks your motions as it checks those of a policy. What you do is recorded, "
        "episode by episode.",
        epilog=f"How to drive:\n\n{keys}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("system", help=SYSTEM_HELP)
    parser.add_argument("--device", default=KEYBOARD, help=f"one of {', '.join(people)} (default {KEYBOARD})")
    defaults = {"moving": 0.0, "timeout": MINUTES, "episodes": 5, "out": "out/teleop"}
    add_run_arguments(parser, ARGUMENTS, defaults)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Start the system with a device at the controls; return the exit status of the run."""
    system, arguments, device = find_system(options.system), run_arguments(options), DEVICES.find(options.device)
    settings, line = device.completed(arguments.device_settings)
    print(*filter(None, (line, device.help)), sep="\n", file=sys.stderr)
    return up.play(system, replace(arguments, acts=options.device, device_settings=settings), options.json)
