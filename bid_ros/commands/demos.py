"""``bid demos``: record demonstrations with the scripted teleoperator on the real nodes."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bid_ros.commands.arguments import SYSTEM_HELP
from bid_ros.commands.up import start
from bid_ros.core.errors import BidError
from bid_ros.system.folder import System, find_system
from bid_ros.system.run import RunArguments
from bid_ros.tasks.base import Demonstrator
from bid_ros.tasks.registry import find_demonstrator

DEVICE = "scripted"
SIGNALLED: Final = 128  # added to the number of a signal, the exit status of a run that it ended
ATTEMPTS: Final = 3  # episodes for each demonstration that is wanted


def add_parser(verbs: Any) -> None:
    """Add ``demos``."""
    parser = verbs.add_parser(
        "demos",
        help="record demonstrations",
        description="Record demonstrations with the scripted teleoperator. The target stands still. Running the "
        "command again continues where it stopped, until there are as many successful episodes as asked for.",
    )
    parser.add_argument("system", help=SYSTEM_HELP)
    parser.add_argument(
        "--count",
        nargs="+",
        default=[],
        metavar="STYLE=N",
        help="demonstrations of a style, for example clean=50 diverse=100; a style that is not named gets none "
        "(default: as many of each style as the task says)",
    )
    parser.add_argument("-o", "--out", default="", help="folder of the bags (default data/demos/SYSTEM)")
    parser.add_argument(
        "--lockstep",
        default="",
        metavar="FILE",
        help="write this data set instead of bags: in lockstep, without ROS or real time, in minutes",
    )
    parser.add_argument("--json", action="store_true", help="print how many there are of each style as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Record the missing demonstrations. Return 0 when complete, or the status of a run that a signal ended."""
    system = find_system(options.system)
    demonstrator = find_demonstrator(system.task)
    wanted = _wanted(options.count, demonstrator)
    if options.lockstep:
        _in_lockstep(system, demonstrator, wanted, Path(options.lockstep))
        _say(options.json, options.lockstep, wanted)
        return 0
    out = Path(options.out or f"data/demos/{system.folder.name}")
    for label, count in wanted.items():
        done, attempted = _count(out, label)
        attempts_left = 3
        while done < count and attempts_left:
            print(f"{label}: {done} of {count} demonstrations", file=sys.stderr)
            arguments = RunArguments(
                driver=DEVICE,
                moving=0.0,
                episodes=count - done,
                seed=demonstrator.styles[label].first_seed + attempted,
                out=str(out / f"{label}_{len(list(out.glob(f'{label}_*'))):03d}"),
                styles=(label,),
            )
            status = start(system, arguments)
            if status > SIGNALLED:  # somebody ends it; no signal is heard any more, so no further run may begin
                return status
            before, (done, attempted) = done, _count(out, label)
            attempts_left = 3 if done > before else attempts_left - 1
        if done < count:
            raise BidError(f"only {done} of {count} {label} demonstrations were recorded; see the logs below {out}")
    print(f"demonstrations are in {out}", file=sys.stderr)
    _say(options.json, str(out), {label: _count(out, label)[0] for label in wanted})
    return 0


def _say(as_json: bool, out: str, counts: Mapping[str, int]) -> None:
    if as_json:
        print(json.dumps({"out": out, "demonstrations": dict(counts)}))


def _in_lockstep(system: System, demonstrator: Demonstrator, wanted: Mapping[str, int], out: Path) -> None:
    """Write the data set of the demonstrations that are wanted of each style. What was recorded before is kept."""
    from tqdm import tqdm

    from bid_ros.episodes.demonstrating import LockstepDemonstrations, recorded
    from bid_ros.recording.dataset import check_place, joined
    from bid_ros.recording.made_with import keep_made_with
    from bid_ros.recording.provenance import installed_version

    check_place(out)
    kept = out.with_suffix(".parts")
    keep_made_with(kept, system.task, mujoco=installed_version("mujoco"))
    parts, stage = [], system.stage()
    try:
        demonstrations = LockstepDemonstrations(system.task, stage, system.arm())
        for style, count in wanted.items():
            first_seed, tried, done = demonstrator.styles[style].first_seed, 0, 0
            with tqdm(total=count, desc=style, file=sys.stderr) as bar:
                while done < count:
                    if tried == ATTEMPTS * count:
                        raise BidError(f"only {done} of {tried} {style} demonstrations succeeded")
                    found = recorded(demonstrations, style, first_seed + tried, kept)
                    tried += 1
                    if found is not None:
                        parts.append(found)
                        done += 1
                        bar.update()
    finally:
        stage.close()
    joined(parts).save(out)
    print(f"{out}: {len(parts)} demonstrations", file=sys.stderr)


def _wanted(counts: Sequence[str], demonstrator: Demonstrator) -> Mapping[str, int]:
    """Return the number of demonstrations of each style that is asked for; none are named: of all that the task has.

    Raises:
        BidError: the task does not have a style, a style is named twice, a number is none, or all numbers are 0.
    """
    asked: dict[str, int] = {}
    for text in counts:
        style, _, number = text.partition("=")
        if not number.isdecimal():
            raise BidError(f"count is '{text}'; valid is STYLE=N, for example clean=50")
        demonstrator.check_style(style)
        if style in asked:
            raise BidError(f"count names {style} twice, {asked[style]} and {number}; valid is once")
        asked[style] = int(number)
    if asked and not any(asked.values()):
        raise BidError("no demonstration is asked for; valid is at least one count above 0")
    return asked or {name: style.count for name, style in demonstrator.styles.items()}


def _count(out: Path, label: str) -> tuple[int, int]:
    """Count the successful and the attempted episodes of a label over all its bags."""
    from bid_ros.recording.episodes import find_episodes
    from bid_ros.recording.reader import BagReader

    done = attempted = 0
    for bag in sorted(out.glob(f"{label}_*/bag")):
        with BagReader(bag) as reader:
            episodes = find_episodes(reader)
        done += sum(episode.success for episode in episodes)
        attempted += len(episodes)
    return done, attempted
