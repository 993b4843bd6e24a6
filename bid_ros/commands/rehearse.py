"""``bid rehearse``: try a policy and a decoder in lockstep, without ROS."""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bid_ros.commands.arguments import ARMS_HELP, POLICY_ARGUMENTS, add_run_arguments, run_arguments
from bid_ros.core.files import check_folder
from bid_ros.system.arms import find_arms
from bid_ros.system.folder import POLICY, find_system

if TYPE_CHECKING:
    from bid_ros.episodes.arms import ArmsRehearsal
    from bid_ros.episodes.log import RunLog
    from bid_ros.episodes.rehearsal import Rehearsal
    from bid_ros.system.arms import ArmsSystem


def add_parser(verbs: Any) -> None:
    """Add ``rehearse``."""
    parser = verbs.add_parser(
        "rehearse",
        help="try a policy in lockstep, without ROS or real time",
        description="Rehearse episodes with the real cameras, policy, decoder, safety envelope and servo, but an arm "
        "that is a pure delay, and contact that is geometry (placing) or the twin's physics (picking, and the objects "
        "of a task file). The result does not depend on the computer's speed. Use it to choose a policy; measure "
        "with bid up.",
    )
    parser.add_argument("system", help=ARMS_HELP)
    add_run_arguments(parser, POLICY_ARGUMENTS, {"episodes": 20, "seed": 8_000})
    parser.add_argument("--runtime", default="auto", help="network runtime; decoder rtc needs torch (default auto)")
    parser.add_argument("-o", "--out", default="", help="folder for run.json; without it nothing is written")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Rehearse. Return 0."""
    if options.out:
        check_folder(Path(options.out))
    if (several := find_arms(options.system)) is not None:
        return _run_arms(several, options)
    from bid_ros.episodes.log import REHEARSAL, RunLog
    from bid_ros.episodes.rehearsal import Rehearsal
    from bid_ros.policy.bundle import bundle_sha256, load_bundle
    from bid_ros.policy.decide import DecisionMaker, bundle_decoder
    from bid_ros.policy.decision_rate import decisions_a_step, decoder_between
    from bid_ros.policy.registry import load_policy
    from bid_ros.safety.screen import policy_chunks
    from bid_ros.system.description import decided

    # The policy is rehearsed, whoever drives otherwise.
    chosen = decided(find_system(options.system), replace(run_arguments(options), driver=POLICY))
    task, policy = chosen.system.task, chosen.policy
    policy_task, arm = chosen.system.policy_task, chosen.system.arm()
    bundle = load_bundle(Path(policy.bundle), policy_task)
    decisions = decisions_a_step(task, policy.decision_rate_hz)
    text = decoder_between(policy.decoder, decisions)
    decoder = bundle_decoder(text, bundle, policy_task, policy.samples, policy.action_horizon)
    log = RunLog(
        task=task.name,
        decoder=decoder.name,
        samples=policy.samples,
        action_horizon=policy.action_horizon,
        decision_rate_hz=policy.decision_rate_hz,
        bundle_sha256=bundle_sha256(bundle.path),
        moving=chosen.moving,
        seed=options.seed,
        hardware=REHEARSAL,
    )
    chunks, screen = policy_chunks(task, policy_task, arm)
    drawn = load_policy(bundle, policy_task, options.runtime)
    maker = DecisionMaker(drawn, decoder, policy_task, screen=screen.passes, free=screen.free)
    rehearsal = Rehearsal(task, maker, chosen.system.stage(), None, arm, chunks, policy_task, decisions)
    return _rehearse(rehearsal, log, chosen.moving, options)


def _rehearse(rehearsal: "Rehearsal | ArmsRehearsal", log: "RunLog", moving: float, options: argparse.Namespace) -> int:
    """Rehearse the episodes, write and print their log. Return 0."""
    from bid_ros.episodes.log import write_run
    from bid_ros.episodes.summary import format_summary

    try:
        for episode in range(options.episodes):
            result = rehearsal.run(episode, options.seed + episode, moving, log.decoder)
            log.results.append(result)
            if options.out:  # now, as a person may end it
                write_run(Path(options.out) / "run.json", log)
            print(f"episode {episode + 1}: {result.outcome} after {result.duration_s:.1f} s", file=sys.stderr)
    finally:
        rehearsal.close()
    print(json.dumps(log.to_dict()) if options.json else format_summary(log))
    return 0


def _run_arms(system: "ArmsSystem", options: argparse.Namespace) -> int:
    """Rehearse a system of several arms. Return 0."""
    from bid_ros.episodes.arms import ArmsRehearsal
    from bid_ros.episodes.log import REHEARSAL, RunLog
    from bid_ros.episodes.rehearsal import RehearsalConfig, RehearsedArm
    from bid_ros.policy.arms import arms_decoder, joint_bundle, load_arms_policy, load_bundles, screens_of
    from bid_ros.policy.decide import DecisionMaker

    given = system.run(run_arguments(options))
    folders = system.bundles(given.bundle)
    arms, tasks = system.decided_by(folders), system.commanded.tasks
    bundles = load_bundles(folders, arms)
    bundle, samples, horizon = joint_bundle(bundles), int(given.samples or 1), int(given.action_horizon or 1)
    decoder = arms_decoder(str(given.decoder), bundle, arms, samples, horizon)
    models = {arm: item.arm() for arm, item in system.systems.items()}
    chunks, screen = screens_of(arms, tasks, models)
    policy = load_arms_policy(bundles, arms, options.runtime)
    maker = DecisionMaker(policy, decoder, arms.task, screen=screen.passes, free=screen.free)
    rehearsed = {
        arm: RehearsedArm(tasks[arm], item.stage(), RehearsalConfig(), models[arm], chunks[arm], arms.tasks[arm])
        for arm, item in system.systems.items()
    }
    moving = float(given.moving or 0.0)
    log = RunLog(arms.task.name, decoder.name, samples, moving, options.seed, REHEARSAL, bundle.sha256)
    log.action_horizon = horizon
    return _rehearse(ArmsRehearsal(arms, maker, rehearsed), log, moving, options)
