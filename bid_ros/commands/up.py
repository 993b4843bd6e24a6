"""``bid up``: start a system, in its twin unless a robot is named, and run its episodes."""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bid_ros.bringup import SYSTEMS, NodeSpec, UpArguments, command_line, describe, environment, rviz_layout
from bid_ros.commands.arguments import add_run_arguments
from bid_ros.errors import BidError
from bid_ros.paths import share
from bid_ros.supervisor import supervise
from bid_ros.task import load_task
from bid_ros.teleop import STYLES


def add_parser(verbs: Any) -> None:
    """Add ``up``."""
    parser = verbs.add_parser(
        "up",
        help="start a system and run episodes",
        description="Start a system and run its episodes. Exit status: 0 the run completed, 3 safety stopped it, "
        "2 bad input, 1 anything else that ended it early. Writes run.json, a bag, a GIF with the candidates drawn, "
        "and one log per node to --out.",
    )
    parser.add_argument("system", choices=sorted(SYSTEMS))
    defaults = UpArguments()
    parser.add_argument("--robot-ip", default="", help="address of the robot; without it the twin is started")
    add_run_arguments(parser, defaults.episodes, defaults.seed)
    parser.add_argument(
        "--teleop",
        nargs="+",
        choices=STYLES,
        default=(),
        help="demonstrate instead of running a policy, the episodes in these styles in turn; twin only",
    )
    parser.add_argument("--rviz", action="store_true", help="start RViz, where it is installed, and the monitor")
    parser.add_argument("--no-record", action="store_true", help="write no bag and no GIF")
    parser.add_argument("--out", default=defaults.out, help="folder for everything the run writes (default out)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the system; return its exit status."""
    if options.teleop and options.robot_ip:
        raise BidError(
            "--teleop and --robot-ip were both given; valid is one of them: the scripted teleoperator is told by the "
            "twin where everything is, and nobody tells it on a robot"
        )
    arguments = UpArguments(
        robot_ip=options.robot_ip,
        decoder=options.decoder,
        samples=options.samples,
        action_horizon=options.action_horizon,
        moving=options.moving,
        episodes=options.episodes,
        seed=options.seed,
        rviz=options.rviz,
        record=not options.no_record,
        out=options.out,
        bundle=options.bundle,
        teleop=tuple(options.teleop),
    )
    status = start(options.system, arguments)
    out = Path(options.out)
    if arguments.record and (out / "bag").exists():
        _draw(out, options.system, twin=not options.robot_ip)
    if options.json and (out / "run.json").exists():
        print(json.dumps(json.loads((out / "run.json").read_text())))
    return status


def _draw(out: Path, system: str, twin: bool) -> None:
    """Draw the run; what cannot be drawn is said and changes nothing about how the run ended."""
    from bid_ros.evaluation.replay_video import write_run_video  # takes a third of a second to import

    cameras = share("config", f"{system}_cameras{'_twin' if twin else ''}.yaml")
    try:
        task = load_task(share("config", f"{system}.yaml"))
        video = write_run_video(out / "bag", out / "run.gif", task, cameras)
    except BidError as error:
        print(f"no video: {error}", file=sys.stderr)
        return
    if video is not None:
        print(f"wrote {video}, {out / 'run.json'} and the bag {out / 'bag'}", file=sys.stderr)


def start(system: str, arguments: UpArguments) -> int:
    """Start the nodes of a system and wait until the episode runner ends; return the exit status."""
    specs = describe(system, arguments)
    _check(specs)
    out = Path(arguments.out)
    _set_aside(out)
    commands = {spec.name: command_line(spec, out / "parameters") for spec in specs}
    if arguments.rviz and shutil.which("rviz2"):
        commands["rviz"] = f"exec rviz2 -d {shlex.quote(str(rviz_layout(system)))}"
    return supervise(commands, environment(twin=not arguments.robot_ip), out / "logs", "episode")


def _check(specs: Iterable[NodeSpec]) -> None:
    """Hold bundle and decoder against each other and the task before any process is started.

    Raises:
        BidError: what the policy node would refuse; one of its subclasses says which part.
    """
    from bid_ros.policy.bundle import load_bundle
    from bid_ros.policy.decide import bundle_decoder

    for spec in specs:
        if spec.executable == "policy_node":
            wanted = spec.parameters
            task = load_task(wanted["task"])
            bundle = load_bundle(Path(wanted["bundle"]), task)
            rows = task.horizon - task.observation_steps + 1
            if not 1 <= wanted["action_horizon"] <= rows:
                raise BidError(
                    f"action_horizon is {wanted['action_horizon']}; valid is 1 to {rows}, the actions of a chunk"
                )
            bundle_decoder(wanted["decoder"], bundle, task, wanted["samples"], wanted["action_horizon"])


def _set_aside(out: Path) -> None:
    """Move an earlier run out of the way: nothing recorded is ever overwritten."""
    if not (out / "logs").exists():
        return
    number = 1
    while (earlier := out.with_name(f"{out.name}.{number}")).exists():
        number += 1
    out.rename(earlier)
    print(f"moved the earlier run to {earlier}", file=sys.stderr)
