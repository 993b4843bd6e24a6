"""Policies trained for delays and decoders: the score at each delay, and the mean over all real delays.

Usage: delays-table FOLDER, the OUT of ``delays``. The last two columns pair the same episodes.
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
BESIDE: Final = ("vanilla", "bid")
"""Decoders of the plain policy with which all others are compared."""
Scores = dict[int, dict[tuple[int, int], float]]
"""Score of each episode (seed, number) by delay."""


def scores_of(folder: Path) -> dict[tuple[str, str], Scores]:
    """Return the scores by training and decoder."""
    found: dict[tuple[str, str], Scores] = {}
    for run, training in RUNS.items():
        if not (folder / f"runs_{run}").is_dir():
            continue
        for row in read_rows(folder / f"runs_{run}").values():
            cell = BenchCell(**row["cell"])
            by_delay = found.setdefault((training, cell.decoder), {})
            by_delay.setdefault(cell.delay, {})[row["seed"], row["episode"]] = row["score"]
    return found


def against(own: Scores, other: Scores) -> str:
    """Return the difference of the mean scores over the delays of 1 and more; the same episodes are paired."""
    if own is other:
        return "-"
    delays = sorted(delay for delay in own.keys() & other.keys() if delay)
    both = sorted(set.intersection(*({*own[delay]} & {*other[delay]} for delay in delays)))
    first, second = (
        np.array([np.mean([scores[delay][key] for delay in delays]) for key in both]) for scores in (own, other)
    )
    return format_interval(paired_difference(first, second), "+")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    scores = scores_of(parser.parse_args().folder)
    delays = sorted({delay for by_delay in scores.values() for delay in by_delay})
    plain = [scores["plain", decoder] for decoder in BESIDE]
    lines = [
        [
            training,
            decoder,
            *(f"{np.mean([*own[delay].values()]):.3f}".removeprefix("0") if delay in own else "" for delay in delays),
            *(against(own, other) for other in plain),
        ]
        for (training, decoder), own in scores.items()
    ]
    head = ("trained", "decoder", *map(str, delays), *(f"minus plain {decoder}" for decoder in BESIDE))
    print(markdown_table(head, lines))


if __name__ == "__main__":
    main()
