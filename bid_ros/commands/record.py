"""``bid record``: a person records episodes, driving the arm, or taking over from a policy."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bid_ros.commands import up
from bid_ros.commands.arguments import SYSTEM_HELP, add_run_arguments, run_arguments
from bid_ros.commands.teleop import add_devices
from bid_ros.core.errors import BidError
from bid_ros.system.driving import KEYBOARD, MINUTES
from bid_ros.system.folder import POLICY, find_system
from bid_ros.teleop.base import DEVICES

CODEC: Final = "png"
ARGUMENTS: Final = (
    *("robot_ip", "peers", "device_settings", "image_codec", "bundle", "moving", "episodes", "seed", "timeout"),
    *("unstaged", "rviz", "out", "namespace", "parameters"),
)
EPISODES: Final = """\
Each episode waits until you start it, and gets a bag of its own in OUT/episodes. With the device:
  success           starts the episode, and ends it as a success
  failure           ends it as a failure; afterwards: makes a failure of it
  discard           ends it and moves its bag into the trash; afterwards: takes the last episode back
  note              stores a text with the episode"""


def add_parser(verbs: Any) -> None:
    """Add ``record``."""
    parser = verbs.add_parser(
        "record",
        help="record demonstrations, or interventions into a policy",
        description="Record episodes that you start, end, mark and take back. You drive the arm, or with --policy the "
        "policy does, and you take over while you hold the dead man's switch.\n\n" + EPISODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("system", help=SYSTEM_HELP)
    parser.add_argument("--device", default=KEYBOARD, help=f"what you hold, see below (default {KEYBOARD})")
    parser.add_argument("--policy", action="store_true", help="the policy drives, and you take over")
    defaults = {"timeout": MINUTES, "episodes": 10, "out": "out/record", "image_codec": CODEC}
    add_run_arguments(parser, ARGUMENTS, defaults)
    parser.set_defaults(run=run)
    add_devices(parser)


def run(options: argparse.Namespace) -> int:
    """Record; return the exit status of the run. A bag that its recorder did not close is repaired."""
    system, arguments, device = find_system(options.system), run_arguments(options), DEVICES.find(options.device)
    if not device.help:
        held = [name for name in DEVICES.names() if DEVICES.find(name).help]
        raise BidError(
            f"nobody holds the device '{options.device}', so no episode would start; valid are {', '.join(held)}, or "
            f"without a person: bid up {options.system} --driver {options.device}"
        )
    settings, line = device.completed(arguments.device_settings)
    who = {"driver": POLICY, "takeover": options.device} if options.policy else {"driver": options.device}
    print(*filter(None, (line, device.help, EPISODES)), sep="\n", file=sys.stderr)
    if not options.policy and arguments.moving is None:
        arguments = replace(arguments, moving=0.0)  # what a person learns with stands still
    arguments = replace(arguments, **who, device_settings=settings, human=True)
    status = up.play(system, arguments, options.json)
    _finish(Path(arguments.out) / "episodes", lambda text: print(text, file=sys.stderr))
    return status


def _finish(folder: Path, say: Callable[[str], None]) -> None:
    """Close what a killed recorder left open, and say what there is."""
    from bid_ros.curation.trash import trashed
    from bid_ros.recording.files import bag_files, is_bag_folder
    from bid_ros.recording.repair import is_complete, repair_bag

    if not folder.is_dir():
        return
    bags = [path for path in sorted(folder.iterdir()) if path.name[0] != "." and is_bag_folder(path)]
    for bag in bags:
        try:
            if not all(is_complete(file) for file in bag_files(bag)):
                say(f"{bag} was not closed: it is whole up to its message {repair_bag(bag).messages}")
        except BidError as error:
            say(str(error))
    gone = len(trashed(folder))
    trash = f", {gone} in the trash (bid episodes restore)" if gone else ""
    say(f"{len(bags)} episodes in {folder}{trash}; look at them with: bid episodes list {folder}")
