"""How long the robot is at rest in the episodes of a bench, how many failed episodes end so, and how far commands lead.

Usage: standing FOLDER [FOLDER ...], each the --out of ``bid bench TASK``. A robot is at rest in a second in which it
gets nowhere further than 2 % from where it began: of the length of the standard deviation of its positions in all
episodes of the folder. Positions are the tool's, m, where the task commands poses, else all joints. An episode is stuck
if it failed and the robot was at rest in its last three seconds. Lead: distance from the robot to its command, median
and 99th percentile over all steps. Where it is larger than in demonstrations, the robot presses against something.

``pusht-progress`` says how long an agent rests by another rule, and why; numbers of the two are not comparable.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Final

import numpy as np

from bid_ros.bench.cell import BenchCell, varying
from bid_ros.bench.results import HEADER, load_trace, read_rows
from bid_ros.commands.tasks import task_path
from bid_ros.core.chunk import NANOSECONDS
from bid_ros.core.rotation import Array
from bid_ros.core.tables import markdown_table
from bid_ros.core.task import load_task

STILL: Final = 0.02
LAST: Final = 3  # s


def still_seconds(positions: Array, steps: int, least: float) -> list[bool]:
    """Return for each whole second of an episode whether the robot was at rest.

    Args:
        positions: ``(T + 1, D)`` of the robot, before each step and after the last one.
        steps: steps a second.
        least: distance that a robot which moves gets away from where it was, within a second.
    """
    parts = (positions[first : first + steps + 1] for first in range(0, len(positions) - steps, steps))
    return [bool(np.linalg.norm(part - part[0], axis=1).max() < least) for part in parts]


def standing(paths: list[Array], full: list[bool], steps: int, spread: float) -> tuple[float, int, int]:
    """Return the share of seconds at rest, the number of failed episodes, and how many of these were stuck.

    Args:
        paths: ``(T + 1, D)`` positions of the robot in each episode.
        full: whether an episode has full score.
        steps: steps a second.
        spread: length of the standard deviation of the positions.
    """
    found = [still_seconds(path, steps, STILL * spread) for path in paths]
    ends = [seconds[-LAST:] for seconds, done in zip(found, full, strict=True) if not done]
    stuck = sum(len(seconds) == LAST and all(seconds) for seconds in ends)
    return float(np.mean([second for seconds in found for second in seconds])), len(ends), stuck


def lines(folder: Path) -> list[list[Any]]:
    """Return a row for each cell of a folder."""
    rows = list(read_rows(folder).values())
    scene = json.loads((folder / HEADER).read_text())["scene"]
    task = load_task(task_path(scene))
    steps, columns = round(NANOSECONDS / task.dt_ns), task.columns("position") or slice(None)
    cells = {row["key"]: BenchCell(**row["cell"]) for row in rows}
    paths, leads = dict[str, list[Array]](), dict[str, list[Array]]()
    for row in rows:
        trace = load_trace(folder, row)
        agents, commands = (part[:, columns].astype(np.float64) for part in (trace.agents, trace.commands))
        paths.setdefault(row["key"], []).append(agents)
        leads.setdefault(row["key"], []).append(np.linalg.norm(commands - agents[:-1], axis=1))
    spread = float(np.linalg.norm(np.concatenate([path for found in paths.values() for path in found]).std(axis=0)))
    made = []
    for key, cell in cells.items():
        own = [row for row in rows if row["key"] == key]
        share, failed, stuck = standing(paths[key], [row["success"] for row in own], steps, spread)
        score = float(np.mean([row["score"] for row in own]))
        name = cell.label(varying(cells.values()))
        lead = ", ".join(f"{value:.3g}" for value in np.percentile(np.concatenate(leads[key]), [50, 99]))
        made.append([scene, name, len(own), f"{score:.3f}", f"{100 * share:.0f} %", f"{stuck} of {failed}", lead])
    return made


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="+")
    rows = [line for folder in parser.parse_args().folder for line in lines(folder)]
    print(
        markdown_table(("task", "decoder", "episodes", "score", "at rest", "failed and stuck", "lead p50, p99"), rows)
    )


if __name__ == "__main__":
    main()
