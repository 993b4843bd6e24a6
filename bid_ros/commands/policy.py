"""``bid policy``: bundles of policies: import, export, distil and compile."""

from typing import Any

from bid_ros.commands.policy_compile import add_compile
from bid_ros.commands.policy_correct import add_correct
from bid_ros.commands.policy_distill import add_distill
from bid_ros.commands.policy_export import add_export
from bid_ros.commands.policy_import import add_import


def add_parser(verbs: Any) -> None:
    """Add ``policy`` and its parts."""
    policy = verbs.add_parser(
        "policy",
        help="import, export, distil or compile a policy",
        description="A policy that decides is a bundle: a folder with its networks and what they observe.",
    )
    parts = policy.add_subparsers(title="actions", dest="part", required=True, metavar="ACTION")
    add_import(parts)
    add_export(parts)
    add_distill(parts)
    add_correct(parts)
    add_compile(parts)
