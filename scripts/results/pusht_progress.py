"""When the block of Push-T first covers so much of its mark, and how long the agent rests, from the paths of a bench.

Usage: pusht-progress FOLDER, the --out of ``bid bench pusht``. Prints a row for each cell.

The agent rests in a step in which it moves less than a pixel. ``standing`` counts whole seconds, by the robot's own
spread of positions: there a robot's tool trembles, and tasks of different sizes are compared. Here every table has the
same size, the agent is a point without tremor, and a rest may be shorter than a second. So the two shares differ.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from shapely.geometry import Polygon
from shapely.ops import unary_union

from bid_ros.bench.cell import BenchCell, varying
from bid_ros.bench.episode import EpisodePath
from bid_ros.bench.pusht.env import BAR, GOAL, STEM, to_table
from bid_ros.bench.results import load_trace, read_rows

SHARES: Final = (0.8, 0.9)  # of the mark
EVERY: Final = 2  # steps
REST_PX: Final = 1.0  # a step that the agent moves less in is a rest


def block_shape(pose: NDArray[np.float64]) -> Any:
    """Return the block at a pose ``(3,)`` as a polygon, px."""
    return unary_union([Polygon(to_table(part, pose)) for part in (BAR, STEM)])


def progress(traces: Iterable[EpisodePath]) -> list[str]:
    """Return the numbers of a cell: median step and number of episodes for each share, share of steps at rest."""
    mark = block_shape(np.array(GOAL))
    firsts, rests = [], []
    for trace in traces:
        poses = trace.blocks[::EVERY].astype(np.float64)
        covered = np.array([block_shape(pose).intersection(mark).area / mark.area for pose in poses])
        firsts.append([np.argmax(covered >= share) * EVERY if covered.max() >= share else np.inf for share in SHARES])
        rests.append(float((np.linalg.norm(np.diff(trace.agents, axis=0), axis=1) < REST_PX).mean()))
    found = np.array(firsts)
    reached = [f"{np.isfinite(column).sum()} of {len(column)}" for column in found.T]
    middle = [f"{step:g}" if np.isfinite(step) else "never" for step in np.median(found, axis=0)]
    shares = [f"{step} ({count})" for step, count in zip(middle, reached, strict=True)]
    return [*shares, f"{100 * np.mean(rests):.0f} %"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    rows = list(read_rows(folder).values())
    cells = {row["key"]: BenchCell(**row["cell"]) for row in rows}
    shown = varying(cells.values())
    print("|decoder|" + "|".join(f"step of {share:.0%}" for share in SHARES) + "|at rest|")
    print("|---" * (len(SHARES) + 2) + "|")
    for key, cell in cells.items():
        traces = (load_trace(folder, row) for row in rows if row["key"] == key)
        print(f"|{cell.label(shown)}|{'|'.join(progress(traces))}|", flush=True)


if __name__ == "__main__":
    main()
