"""``bid replay``: a bag passes through the code that runs live, and the same decisions come out."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

from bid_ros.commands.arguments import SYSTEM_HELP, add_run_arguments, given_arguments
from bid_ros.commands.progress import progress
from bid_ros.commands.tasks import recorded_task
from bid_ros.commands.up import run_nodes
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.errors import BidError
from bid_ros.system.folder import System, find_system
from bid_ros.system.replay_nodes import REPLAY, ReplayArguments, describe_replay
from bid_ros.system.run import RunArguments, argument_fields

DESCRIPTION: Final = """Replay a bag, of bid_ros or of another recorder. The policy decides again wherever the recorded
one did: on the same samples, with the same noise. The table says whether the same came out, bit for bit. Nothing moves.

Without --nodes one process does it, as fast as the policy decides. With --nodes the live nodes do, in the namespace
/replay and in simulated time: watch them in RViz, listen to their topics."""


def add_parser(verbs: Any) -> None:
    """Add ``replay``."""
    parser = verbs.add_parser(
        "replay",
        help="let the policy decide again on a bag",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("bag", help="a bag: its folder or file")
    parser.add_argument("--system", default="", help=f"{SYSTEM_HELP} (default: that of run.json beside the bag)")
    parser.add_argument("--nodes", action="store_true", help="replay through the live nodes, in simulated time")
    parser.add_argument("--check", action="store_true", help="exit status 1 unless all is equal in every bit")
    names = [item.name for item in argument_fields(ReplayArguments) if item.name != "bag"]
    add_run_arguments(parser, names, printed="the counts", of=ReplayArguments)
    parser.add_argument("--runtime", default="auto", help="network runtime, without --nodes (default auto)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Replay. Return 0, or with ``--check`` 1 if something differs."""
    arguments = given_arguments(options, ReplayArguments)
    system = _system(options)
    found = _through_nodes(system, arguments) if options.nodes else _in_lockstep(system, arguments, options)
    if isinstance(found, int):
        return found
    if options.json:
        print(json.dumps(found))
    if options.check and not found["exact"]:
        print(f"error: not every decision is the recorded one: {found['same']} of {found['compared']}", file=sys.stderr)
        return 1
    return 0


def _system(options: argparse.Namespace) -> System:
    if options.system:
        return find_system(options.system)
    named = recorded_task([Path(options.bag)], "--system")
    try:
        return find_system(named)
    except BidError as error:
        raise BidError(
            f"{options.bag} is of the task '{named}', which names no system; give it with --system"
        ) from error


def _in_lockstep(system: System, arguments: ReplayArguments, options: argparse.Namespace) -> dict[str, Any]:
    from bid_ros.policy.bundle import load_bundle
    from bid_ros.policy.registry import load_policy
    from bid_ros.recording.bag_topics import read_remapped
    from bid_ros.recording.provenance import in_twin
    from bid_ros.recording.reader import BagReader
    from bid_ros.replay.lockstep import CHANGEABLE, Changes, Joints, lockstep_decider, replay
    from bid_ros.replay.parity import Parity, summary, table
    from bid_ros.replay.shadow import BagShadow, executed_row
    from bid_ros.safety.screen import policy_chunks
    from bid_ros.safety.shadow import shadow_table

    task, settings = system.policy_task, system.settings.policy
    changes = Changes(**{name: getattr(arguments, name) for name in CHANGEABLE})
    with BagReader(arguments.bag, {**task.recorded_names, **read_remapped(arguments.remap)}) as reader:
        twin = in_twin(reader.custom)
        arm, judged = system.arm(twin), system.judged_arm(twin)
        chunks, screen = policy_chunks(system.task, task, arm, None if arm is not None else judged)
        shadow = BagShadow(reader, system.task, judged)
        joints = Joints(chunks) if chunks.joints is not None else None
        bundle = load_bundle(system.bundle(arguments.bundle), task)
        policy = load_policy(bundle, task, options.runtime)
        given = settings.decoder, settings.samples, settings.action_horizon, 0
        decider, parity = lockstep_decider(task, bundle, policy, given, changes, screen), Parity()
        begin_ns, end_ns = reader.span_ns
        seconds = (end_ns - begin_ns) // NANOSECONDS
        with progress("s", seconds) as second:
            shown, others = 0, set[str]()

            def passed(stamp_ns: int) -> None:
                nonlocal shown
                while not arguments.step and shown < min((stamp_ns - begin_ns) // NANOSECONDS, seconds):
                    shown += 1
                    second()

            for cue, record in replay(reader, task, decider, parity, passed, joints):
                if cue.recorded is not None and _digits(cue.recorded.setting.bundle) not in ("", bundle.sha256[:12]):
                    others.add(cue.recorded.setting.bundle)
                made = record.chunk if joints is None and record is not None else joints and joints.made
                if record is not None and made:
                    shadow.decided(made, cue.stream)
                if arguments.step and not _go_on(cue, record):
                    parity.miss(cue.stream, "the replay was ended before the end of the bag")
                    break
    report = shadow.report()
    if others and not arguments.bundle:
        said = f"the policy of the bag was {' and '.join(sorted(others))}, and that of this replay is {bundle.label}"
        print(f"{said}: name the recorded one with --bundle", file=sys.stderr)
    if not options.json:
        print(table(parity))
        if shadow.known:
            print("\n".join(f"{name:<12} {text}" for name, text in (*shadow_table(report), executed_row(report))))
        if parity.problem:
            print(f"missing: {parity.problem}", file=sys.stderr)
    return {**summary(parity), "shadow": report}


def _digits(recorded: str) -> str:
    """Return the first digits of the hash of a recorded bundle; empty: none is known."""
    return recorded.rpartition("@")[2]


def _go_on(cue: Any, record: Any) -> bool:
    """Show a decision and wait for the person. Return whether to go on."""
    if record is None:
        print(f"{cue.stamp_ns}: {cue.problem or 'goes on with the last decision'}")
    else:
        recorded = f", recorded {cue.recorded.index}" if cue.recorded is not None else ""
        first = " ".join(f"{value:.4f}" for value in record.chunk.actions[0])
        print(f"{cue.stamp_ns}: sample {record.choice.index} of {len(record.strong)}{recorded}; first action {first}")
    try:
        return input("[enter] next, q ends: ").strip() != "q"
    except EOFError:
        return False


def _through_nodes(system: System, arguments: ReplayArguments) -> dict[str, Any] | int:
    """Return the counts, or the exit status of nodes that failed."""
    specs = describe_replay(system, arguments)
    shown = RunArguments(namespace=arguments.namespace, rviz=arguments.rviz, out=arguments.out)
    if status := run_nodes(system, shown, specs, REPLAY, specs[0]):
        return status
    found: dict[str, Any] = json.loads((Path(arguments.out) / "replay.json").read_text())
    return found
