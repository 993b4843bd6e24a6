"""``bid reset`` and ``bid operator``: commands of a person to a running system."""

from __future__ import annotations

import argparse
from typing import Any

from bid_ros.commands.arguments import add_namespace_argument
from bid_ros.core.topics import check_namespace


def add_parser(verbs: Any) -> None:
    """Add the two verbs."""
    reset = verbs.add_parser(
        "reset",
        help="leave a latched stop",
        description="Leave a latched stop after you have looked at the robot. "
        "This is also the only way to the robot's error recovery.",
    )
    add_namespace_argument(reset)
    reset.set_defaults(run=run_reset)
    operator = verbs.add_parser(
        "operator", help="start and judge episodes at a robot", description="Ask for start and outcome of each episode."
    )
    add_namespace_argument(operator)
    operator.set_defaults(run=run_operator)


def run_reset(options: argparse.Namespace) -> int:
    """Reset arm, then safety."""
    from bid_ros.nodes.client import reset_stop

    return reset_stop(check_namespace(options.namespace))


def run_operator(options: argparse.Namespace) -> int:
    """Prompt the person at the robot."""
    from bid_ros.nodes.client import operate

    return operate(check_namespace(options.namespace))
