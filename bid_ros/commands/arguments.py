"""Arguments that several verbs share."""

from __future__ import annotations

import argparse

from bid_ros.bringup import SYSTEMS, UpArguments


def add_run_arguments(parser: argparse.ArgumentParser, episodes: int, seed: int) -> None:
    """Add what every run of a policy is told: how chunks are chosen, for which episodes, and how it is reported.

    Args:
        parser: of the verb.
        episodes: default number of episodes.
        seed: default seed of the first one.
    """
    defaults = UpArguments()
    parser.add_argument("--decoder", default=defaults.decoder, help="how chunks are chosen (default bid)")
    parser.add_argument(
        "--samples", type=int, default=defaults.samples, help="N strong and N weak samples (default 16)"
    )
    parser.add_argument("--action-horizon", type=int, default=1, help="actions a decision; 15 = open loop")
    speeds = ", ".join(f"{system.moving:g} in {name}" for name, system in SYSTEMS.items())
    parser.add_argument("--moving", type=float, help=f"cup speed in m/s, 0 = static (default {speeds})")
    parser.add_argument("--episodes", type=int, default=episodes, help=f"how many (default {episodes})")
    parser.add_argument("--seed", type=int, default=seed, help=f"seed of the first episode (default {seed})")
    parser.add_argument("--bundle", default="", help="policy bundle (default: the one shipped for the system)")
    parser.add_argument("--json", action="store_true", help="print run.json on standard output")
