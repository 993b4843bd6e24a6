"""Decoders against each other over all cells of a bench together: the same episodes, horizons and noises.

Usage: pooled FOLDER, the --out of ``bid bench pusht``. The score of an episode is its mean over the cells.
Prints mean differences with 95 % bootstrap intervals over the episodes, over all cells and for each horizon.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bid_ros.bench.cell import BenchCell
from bid_ros.bench.results import read_rows
from bid_ros.episodes.comparison import paired_difference


def name_of(cell: BenchCell) -> str:
    """Return what a decoder is called in the table."""
    return f"{cell.decoder}, {cell.variant}" if cell.variant else cell.decoder


def pooled(rows: list[dict[str, Any]]) -> dict[str, dict[tuple[int, int], float]]:
    """Return the mean score of each decoder in each episode (seed, number)."""
    scores: dict[str, dict[tuple[int, int], list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        scores[name_of(BenchCell(**row["cell"]))][row["seed"], row["episode"]].append(row["score"])
    return {name: {key: float(np.mean(found)) for key, found in kept.items()} for name, kept in scores.items()}


def difference(first: NDArray[np.float64], second: NDArray[np.float64]) -> str:
    """Return the mean difference of the scores ``(K,)`` of the same episodes, with its interval."""
    return "{:+.3f} ({:+.3f} to {:+.3f})".format(*paired_difference(first, second))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    rows = list(read_rows(parser.parse_args().folder).values())
    horizons = sorted({row["cell"]["horizon"] for row in rows})
    print("|cells|decoder|score|minus vanilla, 95 %|minus EMA, 95 %|")
    print("|---|---|---|---|---|")
    for label, chosen in (("all", horizons), *((f"h {horizon}", [horizon]) for horizon in horizons)):
        scores = pooled([row for row in rows if row["cell"]["horizon"] in chosen])
        episodes = sorted(set.intersection(*(set(kept) for kept in scores.values())))
        values = {name: np.array([kept[key] for key in episodes]) for name, kept in sorted(scores.items())}
        for name, found in values.items():
            parts = [difference(found, values[other]) if other != name else "-" for other in ("vanilla", "ema")]
            print(f"|{label}|{name}|{found.mean():.3f}|{'|'.join(parts)}|")


if __name__ == "__main__":
    main()
