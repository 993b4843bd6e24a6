"""``bid teleop``: a person drives the arm of a system."""

import argparse
import json
import sys
from typing import Any, Final

from bid_ros.commands import up
from bid_ros.commands.arguments import SYSTEM_HELP, add_run_arguments, run_arguments
from bid_ros.core.errors import BidError
from bid_ros.system.driving import DEFAULTS, KEYBOARD, driven
from bid_ros.system.folder import find_system
from bid_ros.teleop.base import DEVICES

# Of daily use; bid up has them all.
ARGUMENTS: Final = (
    *("robot_ip", "peers", "device_settings", "moving", "episodes", "unstaged", "prepare", "rviz"),
    *("record", "out", "namespace", "parameters"),
)

GAMEPAD: Final = "gamepad"
LEARNED: Final = (GAMEPAD, "joy")  # devices whose buttons --learn asks for


def add_parser(verbs: Any) -> None:
    """Add ``teleop``."""
    parser = verbs.add_parser(
        "teleop",
        help="drive the arm yourself",
        description="Drive the arm of a system, in its twin unless a robot is named. Before each episode the gripper "
        "opens, and the arm goes to its start by itself; a robot waits until a person lets it go to the first. With "
        "--no-prepare it stays where it is. In an episode it moves only while you hold a key, a pad or the dead man's "
        "switch of the device. The safety node checks your motions as it checks those of a policy. What you do is "
        "recorded, episode by episode.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("system", nargs="?", default="", help=SYSTEM_HELP)
    parser.add_argument("--device", default=KEYBOARD, help=f"what you hold, see below (default {KEYBOARD})")
    learn = (
        "start nothing: ask for each button and stick of a gamepad that nobody knows (with --device joy: of one on a "
        "topic), and print its settings"
    )
    parser.add_argument("--learn", action="store_true", help=learn)
    add_run_arguments(parser, ARGUMENTS, DEFAULTS)
    parser.set_defaults(run=run)
    add_devices(parser)


def add_devices(parser: argparse.ArgumentParser) -> None:
    """Let the help of a verb say what each key and button of each device does."""
    format_help = parser.format_help

    def with_devices() -> str:
        """Return the help. Only it needs the devices, whose modules take a while to import."""
        found = {name: DEVICES.find(name).help for name in DEVICES.names()}
        parser.epilog = "\n\n".join(["devices:", *(f"{name}\n{text}" for name, text in found.items() if text)])
        return str(format_help())

    parser.format_help = with_devices  # type: ignore[method-assign]


def run(options: argparse.Namespace) -> int:
    """Start the system with a device at the controls; return the exit status of the run."""
    if options.learn:
        return _learn(options)
    if not options.system:
        raise BidError("bid teleop names no system; valid is one, as in: bid teleop franka_place")
    system = find_system(options.system)
    arguments, known = driven(run_arguments(options), options.device)
    print(known, file=sys.stderr)
    return up.play(system, arguments, options.json)


def _learn(options: argparse.Namespace) -> int:
    """Print the settings of a gamepad whose buttons a person has pressed one after the other. Return 0."""
    from bid_ros.teleop.learn import settings_text

    device = GAMEPAD if options.device == KEYBOARD else options.device
    if device not in LEARNED:
        raise BidError(f"--learn asks for the buttons of device '{device}'; valid are {' and '.join(LEARNED)}")
    settings = DEVICES.find(device).read(options.device_settings)
    learned = _lesson(device, settings, options.namespace)
    print(json.dumps(learned) if options.json else f"--device {device} --device-settings '{settings_text(learned)}'")
    return 0


def _lesson(device: str, settings: Any, namespace: str) -> dict[str, dict[str, int]]:
    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    if device == GAMEPAD:
        from bid_ros.teleop.gamepad import learn_gamepad

        return learn_gamepad(settings, say)
    from bid_ros.nodes.joy_lesson import learn_joy

    return learn_joy(settings, namespace, say)
