"""``bid bench`` with white action noise: each decision's noise is drawn anew, where it usually keeps 0.9 of the last.

Usage: white-noise TASK [OPTIONS of bid bench TASK]. Does BID gain because disturbances last? After many decisions the
usual noise of strength z is as strong as white noise of strength 0.23 z: the root of 0.1^2 / (1 - 0.9^2).
"""

from __future__ import annotations

import sys

import bid_ros.bench.episode as bench
from bid_ros.cli import main as bid


def main() -> int:
    """Run the bench. With --workers 1 it runs in this process, the only one that is changed."""
    if not sys.argv[1:] or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0
    bench._KEPT = 0.0  # only here
    return bid(["bench", *sys.argv[1:], "--workers", "1"])


if __name__ == "__main__":
    raise SystemExit(main())
