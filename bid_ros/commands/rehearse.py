"""``bid rehearse``: a first look at a policy and a decoder, in lockstep, without ROS."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from bid_ros.bringup import SYSTEMS
from bid_ros.commands.arguments import add_run_arguments
from bid_ros.commands.tasks import task_path
from bid_ros.errors import BidError
from bid_ros.evaluation.stage import STAGES
from bid_ros.paths import share
from bid_ros.task import load_task


def add_parser(verbs: Any) -> None:
    """Add ``rehearse``."""
    parser = verbs.add_parser(
        "rehearse",
        help="try a policy in lockstep, without ROS or real time",
        description="Rehearse episodes with the real cameras, policy, decoder, safety envelope and servo, but an arm "
        "that is a pure delay, and contact that is geometry (placing) or the twin's physics (picking). What comes out "
        "does not depend on the computer's speed. Use it to choose a policy; measure with bid up.",
    )
    parser.add_argument("system", choices=sorted(STAGES))
    add_run_arguments(parser, episodes=20, seed=300_000)
    parser.add_argument("--out", default="", help="folder for run.json; without it nothing is written")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Rehearse; return 0."""
    from bid_ros.evaluation.episode import RunLog
    from bid_ros.evaluation.rehearsal import Rehearsal
    from bid_ros.evaluation.summary import format_summary, write_run

    if options.episodes < 1:
        raise BidError(f"episodes is {options.episodes}; valid is 1 or more")
    moving = SYSTEMS[options.system].cup_speed(options.moving)
    bundle = Path(options.bundle) if options.bundle else share("models", options.system)
    task = load_task(task_path(options.system))
    rehearsal, log = Rehearsal(task, _maker(options, bundle, task)), RunLog()
    try:
        for episode in range(options.episodes):
            result = rehearsal.run(episode, options.seed + episode, moving, options.decoder)
            log.results.append(result)
            print(f"episode {episode + 1}: {result.outcome} after {result.duration_s:.1f} s", file=sys.stderr)
    finally:
        rehearsal.close()
    summary = log.summary(
        task=task.name,
        decoder=options.decoder,
        samples=options.samples,
        action_horizon=options.action_horizon,
        bundle=bundle,
        moving=moving,
        seed=options.seed,
        hardware="rehearsal",
        safety_stop="",
    )
    if options.out:
        write_run(Path(options.out) / "run.json", summary)
    print(json.dumps(summary.to_dict()) if options.json else format_summary(summary))
    return 0


def _maker(options: argparse.Namespace, folder: Path, task: Any) -> Any:
    from bid_ros.policy.bundle import load_bundle
    from bid_ros.policy.decide import DecisionMaker, bundle_decoder
    from bid_ros.policy.policy import Policy

    bundle = load_bundle(folder, task)
    decoder = bundle_decoder(options.decoder, bundle, task, options.samples, options.action_horizon)
    return DecisionMaker(Policy(bundle, task), decoder, task)
