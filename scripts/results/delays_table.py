"""Policies trained for delays and decoders at each delay, beside vanilla of the plain policy.

Usage: delays-table FOLDER, the OUT of ``delays``. The same episodes are paired.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

import numpy as np

from bid_ros.bench.cell import BenchCell
from bid_ros.bench.results import read_rows
from bid_ros.bench.summary import format_interval
from bid_ros.core.tables import markdown_table
from bid_ros.episodes.comparison import paired_difference

RUNS: Final = {
    "flow": "plain",
    "rtc": "plain",
    "head": "plain, with a head",
    "prefix": "rows given",
    "roll": "state rolled forward",
}
"""Runs of a folder, and how their policy was trained."""
HEAD: Final = ("delay", "trained", "decoder", "episodes", "score, 95 %", "minus vanilla, paired 95 %")
Scores = dict[tuple[int, int], float]


def scores_of(folder: Path) -> dict[tuple[str, str, int], Scores]:
    """Return the scores of each episode (seed, number) by training, decoder and delay."""
    found: dict[tuple[str, str, int], Scores] = {}
    for run, training in RUNS.items():
        if not (folder / f"runs_{run}").is_dir():
            continue
        for row in read_rows(folder / f"runs_{run}").values():
            cell = BenchCell(**row["cell"])
            found.setdefault((training, cell.decoder, cell.delay), {})[row["seed"], row["episode"]] = row["score"]
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    scores = scores_of(parser.parse_args().folder)
    delays = sorted({delay for _, _, delay in scores})
    lines = []
    for delay in delays:
        plain = scores["plain", "vanilla", delay]
        for training, decoder, of in scores:
            if of != delay:
                continue
            own = scores[training, decoder, delay]
            both = sorted(own.keys() & plain.keys())
            first, second = (np.array([found[key] for key in both]) for found in (own, plain))
            against = None if own is plain else paired_difference(first, second)
            score = format_interval(paired_difference(first, np.zeros(len(first))))
            lines.append([delay, training, decoder, len(both), score, format_interval(against, "+")])
    print(markdown_table(HEAD, lines))


if __name__ == "__main__":
    main()
