"""``bid bench`` with a policy that sees no motion: each observed step is the newest one.

Usage: unseen-motion TASK [OPTIONS of bid bench TASK]. Policies trained with ``augment.history`` know such observations.
Does a policy stand still, or run away, because it copies its own motion?
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from bid_ros.cli import main as bid
from bid_ros.core.observation import Observation, ObservationBuffer

USUAL = ObservationBuffer.assemble


def without_motion(buffer: ObservationBuffer, stamp_ns: int | None = None) -> Observation:
    """Return the observation with the newest value at each of its steps."""
    found = USUAL(buffer, stamp_ns)
    return replace(found, values={name: np.repeat(rows[-1:], len(rows), axis=0) for name, rows in found.values.items()})


def main() -> int:
    """Run the bench. With --workers 1 it runs in this process, the only one that is changed."""
    if not sys.argv[1:] or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0
    ObservationBuffer.assemble = without_motion  # type: ignore[method-assign]  # only here
    return bid(["bench", *sys.argv[1:], "--workers", "1"])


if __name__ == "__main__":
    raise SystemExit(main())
