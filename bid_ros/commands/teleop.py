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
    parser = verbs.add_parser(
        "teleop",
        help="drive the arm yourself",
        description="Drive the arm of a system, in its twin unless a robot is named. Each device below has a dead "
        "man's switch. The safety node checks your motions as it checks those of a policy. What you do is recorded, "
        "episode by episode.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("system", help=SYSTEM_HELP)
    parser.add_argument("--device", default=KEYBOARD, help=f"what you hold, see below (default {KEYBOARD})")
    defaults = {"moving": 0.0, "timeout": MINUTES, "episodes": 5, "out": "out/teleop"}
    add_run_arguments(parser, ARGUMENTS, defaults)
    parser.set_defaults(run=run)
    format_help = parser.format_help

    def with_devices() -> str:
        """Return the help. Only it needs the devices, whose modules take a while to import."""
        found = {name: DEVICES.find(name).help for name in DEVICES.names()}
        parser.epilog = "\n\n".join(["devices:", *(f"{name}\n{text}" for name, text in found.items() if text)])
        return str(format_help())

    parser.format_help = with_devices


def run(options: argparse.Namespace) -> int:
    """Start the system with a device at the controls; return the exit status of the run."""
    system, arguments, device = find_system(options.system), run_arguments(options), DEVICES.find(options.device)
    settings, line = device.completed(arguments.device_settings)
    print(*filter(None, (line, device.help)), sep="\n", file=sys.stderr)
    return up.play(system, replace(arguments, acts=options.device, device_settings=settings), options.json)
