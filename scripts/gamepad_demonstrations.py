"""Record demonstrations that a controller drives through a virtual gamepad, and train a policy on them.

The controller (test/gamepad_pilot.py, held by test/gamepad_person.py) sees what a person sees of the cameras, late and
not exactly. It moves sticks and buttons of a gamepad on the topic `joy`, with the dead man's switch held. The system is
the Franka twin, the cup stands. What safety stops is begun again, with the next seed. Then a short training makes a
policy bundle.

Usage: gamepad_demonstrations.py FOLDER [EPISODES [STEPS]]; 20 episodes and 300 training steps unless told otherwise,
0 steps: no training.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test"))

from gamepad_person import sitting  # noqa: E402

SYSTEM, FIRST_SEED, ATTEMPTS = "franka_place", 3000, 8
BID = [sys.executable, "-m", "bid_ros.cli"]


def record(folder: Path, episodes: int) -> tuple[list[dict[str, object]], list[str]]:
    """Record episodes in a system; return their results, and why others were stopped, each followed by a new run."""
    results: list[dict[str, object]] = []
    stopped: list[str] = []
    for attempt in range(ATTEMPTS):
        if len(results) >= episodes:
            break
        out = folder / f"run_{attempt}"
        asked = f"up {SYSTEM} --driver joy --moving 0 --timeout 60 --episodes {episodes - len(results)}".split()
        seed = ["--seed", str(FIRST_SEED + len(results) + attempt)]
        run = subprocess.Popen([*BID, *asked, *seed, "--out", str(out)], stderr=(folder / f"{out.name}.log").open("w"))
        with sitting():
            run.wait()
        if (out / "run.json").exists():
            found = json.loads((out / "run.json").read_text())["results"]
            for row in found:
                broken = str(row["outcome"]).startswith(("aborted", "stopped"))
                stopped += [str(row["outcome"])] if broken else []
                results += [] if broken else [row]
    return results, stopped


def train(folder: Path, steps: int) -> None:
    """Make a data set of the bags, train a small policy for a moment, and export its bundle."""
    bags = [str(path) for path in sorted(folder.glob("run_*"))]
    data, training, bundle = (str(folder / name) for name in ("demonstrations.npz", "training", "bundle"))
    short = ["--steps", str(steps), "--batch", "32", "--set", "network.widths=[16,32]"]
    for words in (
        ["data", "build", *bags, "--out", data],
        ["train", data, "--out", training, *short],
        ["policy", "export", training, "--out", bundle],
    ):
        subprocess.run([*BID, *words], check=True)


def main(folder: str, episodes: str = "20", steps: str = "300") -> int:
    """Record, train and print what came of it; return 0 if there are as many episodes as asked for."""
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    results, stopped = record(out, int(episodes))
    placed = [row for row in results if row["success"]]
    durations = np.array([row["duration_s"] for row in placed], dtype=np.float64)
    print(f"{len(placed)} of {len(results)} episodes are a success; {[row['outcome'] for row in results]}")
    print(f"{len(stopped)} more were stopped: {stopped}")
    if placed:
        print(f"duration median {np.median(durations):.1f} s, {durations.min():.1f} to {durations.max():.1f} s")
    if placed and int(steps):
        train(out, int(steps))
    return 0 if len(results) >= int(episodes) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
