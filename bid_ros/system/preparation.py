"""What every front end does before it starts the nodes of a system: check what can be checked, and make room."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from bid_ros.system.description import NodeSpec
from bid_ros.system.policy_check import check_policy

# What a run leaves in its folder, at the latest when its first node has started.
WRITTEN: Final = ("logs", "parameters", "bag", "run.json")


def prepare(specs: Iterable[NodeSpec], out: Path) -> None:
    """Check a system before any of its processes starts, and move an earlier run out of its folder.

    Raises:
        BidError: what the policy node would refuse; one of its subclasses says which part.
    """
    check_policy(specs)
    _set_aside(out)


def _set_aside(out: Path) -> None:
    """Move an earlier run out of the way, whether it ended well or in its start: nothing recorded is overwritten."""
    if not any((out / name).exists() for name in WRITTEN):
        return
    number = 1
    while (earlier := out.with_name(f"{out.name}.{number}")).exists():
        number += 1
    out.rename(earlier)
    print(f"moved the earlier run to {earlier}", file=sys.stderr)
