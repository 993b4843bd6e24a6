"""``bid up``: start a system, in its twin unless a robot is named, and run its episodes."""

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bid_ros.commands.arguments import ARMS_HELP, add_run_arguments, run_arguments
from bid_ros.commands.run_video import draw_run
from bid_ros.commands.stage import run_stage
from bid_ros.core.errors import BidError
from bid_ros.episodes.log import end_run
from bid_ros.system.arms import HOSTS, ArmsSystem, describe_arms, find_arms
from bid_ros.system.description import NodeSpec, command_line, describe, environment
from bid_ros.system.folder import System, find_system
from bid_ros.system.middleware import ignored_settings
from bid_ros.system.preparation import prepare
from bid_ros.system.processes import supervise
from bid_ros.system.run import RunArguments, argument_fields
from bid_ros.system.rviz import NO_RVIZ, rviz_command

ARGUMENTS: Final = tuple(item.name for item in argument_fields() if item.name != "image_codec")


def add_parser(verbs: Any) -> None:
    """Add ``up``."""
    parser = verbs.add_parser(
        "up",
        help="start a system and run episodes",
        description="Start a system and run its episodes. Exit status: 0 the run completed, 3 safety stopped it, "
        "2 bad input, 1 anything else that ended it early. Writes run.json, a bag, a GIF with the candidates drawn, "
        "and one log per node to --out.",
    )
    parser.add_argument("system", help=ARMS_HELP)
    parser.add_argument("--stage", help="run one stage of a robot's first motions: its number, 1 to 6, or next")
    add_run_arguments(parser, ARGUMENTS)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the system; return its exit status."""
    if (arms := find_arms(options.system)) is not None:
        if options.stage:
            raise BidError(f"--stage is {options.stage}; valid with the system of one arm")
        return _play_arms(arms, run_arguments(options), options.json)
    if options.stage:
        return run_stage(find_system(options.system), run_arguments(options), options.stage, options.json, start)
    return play(find_system(options.system), run_arguments(options), options.json)


def play(system: System, arguments: RunArguments, as_json: bool) -> int:
    """Run a system and draw its video; return the exit status of the run. Raises BidError as :func:`start`."""
    status = start(system, arguments)
    out = Path(arguments.out)
    # Whoever has asked for the end does not wait for a video, which `bid episodes video` draws as well.
    if arguments.record and (out / "bag").exists() and status < 128:
        _draw(out, system, twin=not arguments.robot_ip)
    if as_json and (out / "run.json").exists():
        print(json.dumps(json.loads((out / "run.json").read_text())))
    return status


def _play_arms(arms: ArmsSystem, arguments: RunArguments, as_json: bool) -> int:
    """Run a system of several arms; return the exit status. Its bags, one for each arm, are in their folders."""
    first = next(iter(arms.systems.values()))
    status = run_nodes(first, arguments, describe_arms(arms, arguments), HOSTS[1])
    out = Path(arguments.out)
    file, bags = out / "run.json", [out / arm / "bag" for arm in arms.systems]
    if file.exists():
        print(
            f"wrote {file}, and the bags {', '.join(map(str, filter(Path.exists, bags))) or '(none)'}", file=sys.stderr
        )
    if as_json and file.exists():
        print(json.dumps(json.loads(file.read_text())))
    return status


def _draw(out: Path, system: System, twin: bool) -> None:
    """Draw the run. A failure is printed and does not change the exit status of the run."""
    try:
        video = draw_run(out / "bag", out / "run.gif", system.file("task.yaml"), twin)
    except BidError as error:
        print(f"no video: {error}", file=sys.stderr)
        return
    if video is not None:
        print(f"wrote {video}, {out / 'run.json'} and the bag {out / 'bag'}", file=sys.stderr)


def start(system: System, arguments: RunArguments) -> int:
    """Start the nodes of a system and wait until the episode runner ends. Return the exit status."""
    return run_nodes(system, arguments, describe(system, arguments), "episode")


def run_nodes(
    system: System, arguments: RunArguments, specs: Sequence[NodeSpec], last: str, replay: NodeSpec | None = None
) -> int:
    """Start nodes, and RViz if it is asked for, and wait until one of them ends. Return the exit status.

    Args:
        system: of the nodes.
        arguments: of the run.
        specs: the nodes.
        last: name of the node whose end is the end of the run.
        replay: the node that plays a recording, for RViz.
    """
    out = Path(arguments.out)
    variables = environment(arguments.peers, out)
    for sentence in ignored_settings():
        print(f"warning: {sentence}", file=sys.stderr)
    prepare(specs, out)
    commands = {spec.label: command_line(spec, out / "parameters") for spec in specs}
    if arguments.rviz:
        if rviz := rviz_command(system, arguments, replay):
            commands["rviz"] = f"exec {shlex.join(rviz)}"
        else:
            print(NO_RVIZ, file=sys.stderr)
    status = supervise(commands, variables, out / "logs", last)
    end_run(out)
    return status
