"""The measured distances beside the published ones."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from bid_ros.bench.diagnostic.experiment import DiagnosticCell, Result

# Liu et al., ICLR 2025, Table 3 (appendix A.1): noise -> horizon -> distance. Horizon 2 is in the figure only.
PUBLISHED: Final[Mapping[float, Mapping[int, float]]] = {
    0.0: {1: 4.03, 3: 2.07, 5: 1.54, 7: 1.06, 10: 0.00},
    0.2: {1: 1.43, 3: 0.94, 5: 0.39, 7: 0.71, 10: 1.32},
    0.4: {1: 0.36, 3: 0.42, 5: 0.59, 7: 0.835, 10: 1.11},
}


def published(cell: DiagnosticCell) -> float | None:
    """Return the paper's number for a cell, None where it has none."""
    return PUBLISHED.get(cell.noise, {}).get(cell.horizon)


def published_best(noise: float) -> int | None:
    """Return the horizon of the paper's smallest distance, None for a noise level it does not have."""
    row = PUBLISHED.get(noise)
    return None if row is None else min(row, key=lambda horizon: row[horizon])


def mean_difference(result: Result) -> float | None:
    """Return the mean absolute difference to the published numbers, None if no cell has one."""
    pairs = [(cell.distance, published(cell)) for cell in result.cells]
    differences = [abs(ours - theirs) for ours, theirs in pairs if theirs is not None]
    return float(np.mean(differences)) if differences else None


def markdown(result: Result) -> str:
    """Return the table: a row for each noise level, measured (published) in each column."""
    reading = result.reading
    lines = [
        f"Pause {', '.join(map(str, reading.pauses))} idle actions; {reading.steps} steps; counted: {reading.count}; "
        f"distance: {reading.distance}; {result.repeats} x {result.episodes} rollouts, seed {result.seed}.",
        "Measured +- half the 95 % interval over the repeats (published).",
        "",
        "| noise | " + " | ".join(f"h={horizon}" for horizon in result.horizons) + " | best h (published) |",
        "|---|" + "---|" * (len(result.horizons) + 1),
    ]
    for noise in result.noises:
        cells = [_entry(result.cell(noise, horizon)) for horizon in result.horizons]
        theirs = published_best(noise)
        best = f"{result.best(noise)} ({'-' if theirs is None else theirs})"
        lines.append(f"| {noise:g} | " + " | ".join(cells) + f" | {best} |")
    difference = mean_difference(result)
    if difference is not None:
        lines += ["", f"Mean absolute difference to the published numbers: {difference:.2f}."]
    return "\n".join(lines) + "\n"


def numbers(result: Result) -> dict[str, Any]:
    """Return everything as plain values for JSON."""
    reading = result.reading
    return {
        "settings": {
            **asdict(reading),
            **{name: getattr(result, name) for name in ("episodes", "repeats", "seed")},
        },
        "best": [
            {"noise": noise, "horizon": result.best(noise), "published": published_best(noise)}
            for noise in result.noises
        ],
        "mean_difference_to_published": mean_difference(result),
        "cells": [
            {
                "noise": cell.noise,
                "pause": reading.pause(result.noises.index(cell.noise)),
                "horizon": cell.horizon,
                "distance": cell.distance,
                "interval_95": [cell.low, cell.high],
                "published": published(cell),
                "learner": cell.learner.tolist(),
                "demonstrator": cell.demonstrator.tolist(),
            }
            for cell in result.cells
        ],
    }


def _entry(cell: DiagnosticCell) -> str:
    theirs = published(cell)
    ours = f"{cell.distance:.2f} +- {cell.high - cell.distance:.2f}"
    return ours if theirs is None else f"{ours} ({theirs:g})"
