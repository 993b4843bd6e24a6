"""Paths of shared files: in the source tree of a checkout, or in the share folder once installed."""

import os
import sys
from pathlib import Path

from bid_ros.core.errors import BidError


def share(*parts: str) -> Path:
    """Return the path of an installed file or folder, for example ``share("config", "franka_place", "task.yaml")``.

    Looks in the checkout this package is imported from, then in every ament prefix.

    Raises:
        BidError: the file is in none of them.
    """
    roots = [Path(__file__).resolve().parents[2]]
    prefixes = [*os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep), sys.prefix]
    roots += [Path(prefix) / "share" / "bid_ros" for prefix in prefixes if prefix]
    for root in roots:
        path = root.joinpath(*parts)
        if path.exists():
            return path
    raise BidError(f"{'/'.join(parts)} was not found under {', '.join(str(root) for root in roots)}")
