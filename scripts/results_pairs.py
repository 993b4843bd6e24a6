"""Print what differs between decoders on the very same episodes: BID against the others, and its variants.

Usage: results_pairs.py FOLDER, one that bid bench pusht wrote. Means with 95 % bootstrap intervals over the episodes
that both have.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from bid_ros.evaluation.bench.cell import Cell
from bid_ros.evaluation.bench.results import read_rows
from bid_ros.evaluation.confidence import paired_difference

Scores = dict[Cell, dict[tuple[int, int], float]]
OTHERS = ("vanilla", "warmstart", "ema", "bid+ema", "bid+warmstart")
CHANGES = {
    "variant": ("paper", "reference_v1", "reference_v2"),
    "metric": ("l1", "cosine"),
    "terms": ("backward", "positive", "negative", "contrast"),
}


def scores(folder: Path) -> Scores:
    """Return score by cell, seed and episode."""
    found: Scores = {}
    for (_, seed, episode), row in read_rows(folder).items():
        found.setdefault(Cell(**row["cell"]), {})[seed, episode] = row["score"]
    return found


def pairs(found: Scores) -> Iterator[tuple[str, Cell, Cell]]:
    """Return (name, cell, cell) of the differences that are worth a line."""
    undisturbed = [cell for cell in found if not (cell.drift or cell.delay or cell.jump)]
    shipped = [
        cell for cell in undisturbed if cell.decoder == "bid" and len(found[cell]) == max(map(len, found.values()))
    ]
    for own in sorted(shipped, key=lambda cell: (cell.horizon, cell.noise)):
        place = f"h = {own.horizon}, noise {own.noise:g}"
        for name in OTHERS:
            alike = [c for c in undisturbed if (c.decoder, c.horizon, c.noise) == (name, own.horizon, own.noise)]
            if alike:
                yield f"BID minus {name}, {place}", own, max(alike, key=lambda cell: len(found[cell]))
        for setting, values in CHANGES.items():
            for value in values:
                for other in undisturbed:
                    if replace(other, trim=own.trim, weak=own.weak) == replace(own, **{setting: value}):
                        trim = f", trim {other.trim}" if other.trim else ""
                        yield f"BID minus BID with {setting} {value}{trim}, {place}", own, other


def main() -> int:
    """Print the table."""
    found = scores(Path(sys.argv[1]))
    print("| difference of the scores | episodes | mean, 95 % |\n|---|---|---|")
    for name, first, second in pairs(found):
        shared = sorted(found[first].keys() & found[second].keys())
        values = (np.array([found[cell][key] for key in shared]) for cell in (first, second))
        mean, low, high = paired_difference(*values)
        print(f"| {name} | {len(shared)} | {mean:+.3f} ({low:+.3f} to {high:+.3f}) |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
