"""``bid demos``: record demonstrations with the scripted teleoperator on the real nodes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bid_ros.bringup import SYSTEMS, UpArguments
from bid_ros.commands.up import start
from bid_ros.errors import BidError
from bid_ros.teleop import STYLES, check_styles, find_demonstrator

FIRST_SEED = {"clean": 100_000, "diverse": 200_000, "recover": 250_000}


def add_parser(verbs: Any) -> None:
    """Add ``demos``."""
    parser = verbs.add_parser(
        "demos",
        help="record demonstrations",
        description="Record demonstrations with the scripted teleoperator, cup static. Running the command again "
        "continues where it stopped, until there are as many successful episodes as asked for.",
    )
    parser.add_argument("system", choices=sorted(SYSTEMS))
    parser.add_argument("--clean", type=int, help="clean, consistent demonstrations (default 50)")
    parser.add_argument("--diverse", type=int, help="diverse in speed, pauses and path (default 100)")
    parser.add_argument(
        "--recover", type=int, help="diverse, beginning after a grasp that went wrong (ur5_pick only, default 60)"
    )
    parser.add_argument("--out", default="", help="folder of the bags (default data/demos/SYSTEM)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Record what is missing; return 0 when complete."""
    out = Path(options.out or f"data/demos/{options.system}")
    for label, wanted in _wanted(options).items():
        done, attempted = _count(out, label)
        attempts_left = 3
        while done < wanted and attempts_left:
            print(f"{label}: {done} of {wanted} demonstrations", file=sys.stderr)
            batch = out / f"{label}_{len(list(out.glob(f'{label}_*'))):03d}"
            arguments = UpArguments(
                moving=0.0,
                episodes=wanted - done,
                seed=FIRST_SEED[label] + attempted,
                out=str(batch),
                teleop=(label,),
            )
            start(options.system, arguments)
            before, (done, attempted) = done, _count(out, label)
            attempts_left = 3 if done > before else attempts_left - 1
        if done < wanted:
            raise BidError(f"only {done} of {wanted} {label} demonstrations were recorded; see the logs below {out}")
    print(f"demonstrations are in {out}", file=sys.stderr)
    return 0


def _wanted(options: argparse.Namespace) -> Mapping[str, int]:
    """How many demonstrations of each style; raises BidError for a style that the system does not have."""
    asked = {style: getattr(options, style) for style in STYLES if getattr(options, style) is not None}
    check_styles(options.system, asked)
    return {**find_demonstrator(options.system).styles, **asked}


def _count(out: Path, label: str) -> tuple[int, int]:
    """Successful and attempted episodes of a label over all its bags."""
    from bid_ros.recording.episodes import find_episodes
    from bid_ros.recording.reader import BagReader

    done = attempted = 0
    for bag in sorted(out.glob(f"{label}_*/bag")):
        with BagReader(bag) as reader:
            episodes = find_episodes(reader)
        done += sum(episode.success for episode in episodes)
        attempted += len(episodes)
    return done, attempted
