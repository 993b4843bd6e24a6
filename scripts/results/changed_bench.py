"""``bid bench`` with a change, to find what causes a result.

Usage: changed-bench CHANGE TASK [OPTIONS of bid bench TASK]. Results go to runs/TASK_CHANGE unless --out names another
folder: one that holds those of the usual bench, too, would mix them.

unseen-motion  Each observed step is the newest one. Policies trained with ``augment.history`` know such observations.
               Does a policy stand still, or run away, because it copies its own motion?
white-noise    Each decision's action noise is drawn anew, where it usually keeps 0.9 of the last. Does BID gain because
               disturbances last? After many decisions the usual noise of strength z is as strong as white noise of
               strength 0.23 z: the root of 0.1^2 / (1 - 0.9^2).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

import bid_ros.bench.episode as episode
from bid_ros.cli import main as bid
from bid_ros.core.observation import Observation, ObservationBuffer

USUAL: Final = ObservationBuffer.assemble


def without_motion(buffer: ObservationBuffer, stamp_ns: int | None = None) -> Observation:
    """Return the observation with the newest value at each of its steps."""
    found = USUAL(buffer, stamp_ns)
    return replace(found, values={name: np.repeat(rows[-1:], len(rows), axis=0) for name, rows in found.values.items()})


def show_no_motion() -> None:
    """Let no policy see motion."""
    ObservationBuffer.assemble = without_motion  # type: ignore[method-assign]  # only here


def draw_anew() -> None:
    """Let action noise keep nothing of the last decision's."""
    episode._KEPT = 0.0  # only here


CHANGES: Final[dict[str, Callable[[], None]]] = {"unseen-motion": show_no_motion, "white-noise": draw_anew}


def main() -> int:
    """Run the bench. With --workers 1 it runs in this process, the only one that is changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("change", choices=list(CHANGES))
    parser.add_argument("task")
    options, others = parser.parse_known_args()
    CHANGES[options.change]()
    out = f"runs/{options.task}_{options.change}"
    return bid(["bench", options.task, "--out", out, *others, "--workers", "1"])


if __name__ == "__main__":
    raise SystemExit(main())
