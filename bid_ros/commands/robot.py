"""``bid reset`` and ``bid operator``: what a person says to a running system."""

from __future__ import annotations

import argparse
from typing import Any


def add_parser(verbs: Any) -> None:
    """Add the two verbs."""
    reset = verbs.add_parser(
        "reset",
        help="leave a latched stop",
        description="Leave a latched stop after you have looked at the robot. "
        "This is also the only way to the robot's error recovery.",
    )
    reset.set_defaults(run=run_reset)
    operator = verbs.add_parser(
        "operator", help="start and judge episodes at a robot", description="Ask for start and outcome of each episode."
    )
    operator.set_defaults(run=run_operator)


def run_reset(_: argparse.Namespace) -> int:
    """Reset arm, then safety."""
    from bid_ros.nodes.client import reset_stop

    return reset_stop()


def run_operator(_: argparse.Namespace) -> int:
    """Prompt the person at the robot."""
    from bid_ros.nodes.client import operate

    return operate()
