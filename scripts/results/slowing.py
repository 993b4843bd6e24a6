"""Compares what slowing does to success: chunks above a limit of motion are slowed down, or stop the episode.

A cell is a rehearsal of one decoder, with the same seeds in every cell: the shipped limits, or half of acceleration and
jerk; and ``limits: above`` at ``scale`` or ``stop``. A cell whose file is there is not run again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

import yaml

from bid_ros.core.tables import markdown_table

ROOT: Final = Path(__file__).resolve().parents[2]
SPEEDS: Final = {"franka_place": ("0.03", "0.06"), "ur5_pick": ("0.02",)}  # of what moves, m/s
DECODERS: Final = ("vanilla", "warmstart", "ema", "bid", "bid+lead", "bid+ema")
SHARES: Final = (1.0, 0.5)  # of the shipped limits of acceleration and jerk
RULES: Final = ("speed", "acceleration", "jerk", "turn_rate", "turn_acceleration", "joint_speed", "joint_acceleration")
Cell = tuple[str, str, str, float, str]  # system, speed, decoder, share, response


def cells() -> Iterator[Cell]:
    """Yield every cell; those that differ in the response alone follow each other."""
    for system, speeds in SPEEDS.items():
        for speed, share, decoder in product(speeds, SHARES, DECODERS):
            for response in ("scale", "stop"):
                yield system, speed, decoder, share, response


def system_folder(out: Path, system: str, share: float, response: str) -> Path:
    """Return a copy of a shipped system with other limits."""
    folder = out / "systems" / f"{system}_{share:g}_{response}"
    if not folder.is_dir():
        shutil.copytree(ROOT / "config" / system, folder)
        task = yaml.safe_load((folder / "task.yaml").read_text())
        limits = task["limits"]
        for name in ("max_acceleration", "max_jerk"):
            limits[name] *= share
        limits["above"] = dict.fromkeys(RULES, response)
        (folder / "task.yaml").write_text(yaml.safe_dump(task, sort_keys=False))
    return folder


def measured(out: Path, cell: Cell, episodes: int, seed: int) -> dict[str, Any]:
    """Return the ``run.json`` of a cell. Rehearse it if it is not there."""
    system, speed, decoder, share, response = cell
    path = out / f"{'_'.join(map(str, cell))}.json"
    if not path.is_file():
        folder = system_folder(out, system, share, response)
        command = [str(Path(sys.executable).with_name("bid")), "rehearse", str(folder), "--decoder", decoder]
        command += ["--moving", speed, "--episodes", str(episodes), "--seed", str(seed), "--json"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        path.write_text(done.stdout)
        print(f"{' '.join(map(str, cell))}: {json.loads(done.stdout)['successes']} of {episodes}", file=sys.stderr)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def table(runs: dict[Cell, dict[str, Any]]) -> str:
    """Return one line for each pair of cells: success with 95 % interval, and how many episodes safety stopped."""
    rows = []
    for (system, speed, decoder, share, response), run in runs.items():
        if response == "scale":
            pair = run, runs[system, speed, decoder, share, "stop"]
            rows.append([system, f"{100 * float(speed):g} cm/s", f"{share:g}", decoder, *map(_success, pair)])
    return markdown_table(["system", "target", "share of limits", "decoder", "`scale`", "`stop`"], rows)


def _success(run: dict[str, Any]) -> str:
    low, high = run["success_interval_95"]
    stopped = sum(run["outcomes"]["safety"].values())
    return f"{run['successes']} ({low:.0%} to {high:.0%})" + (f", {stopped} stopped" if stopped else "")


def main() -> None:
    """Rehearse what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="folder of the cells")
    parser.add_argument("--episodes", type=int, default=30, help="of each cell (default 30)")
    parser.add_argument("--seed", type=int, default=6000, help="of the first episode (default 6000)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    print(table({cell: measured(options.out, cell, options.episodes, options.seed) for cell in cells()}))


if __name__ == "__main__":
    main()
