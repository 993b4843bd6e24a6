"""``bid reset`` and ``bid operator``: commands of a person to a running system."""

import argparse
from typing import Any

from bid_ros.core.topics import check_namespace

NAMESPACE = "namespace of the system, such as /left (default: the root)"
RESET = (
    "Leave a latched stop after you have looked at the robot. This is also the only way to the robot's error recovery."
)
OPERATOR = "Ask for start and outcome of each episode."


def add_parser(verbs: Any) -> None:
    """Add the two verbs."""
    reset = verbs.add_parser("reset", help="leave a latched stop", description=RESET)
    operator = verbs.add_parser("operator", help="start and judge episodes at a robot", description=OPERATOR)
    for parser in (reset, operator):
        parser.add_argument("--namespace", default="", help=NAMESPACE)
        parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Reset arm, then safety; or prompt the person at the robot."""
    from bid_ros.nodes.client import operate, reset_stop

    return (reset_stop if options.verb == "reset" else operate)(check_namespace(options.namespace))
