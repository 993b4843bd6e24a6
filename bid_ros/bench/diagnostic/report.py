"""The measured distances beside the published ones, as a table, as JSON and as histograms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bid_ros.bench.diagnostic.experiment import DiagnosticCell, Result
from bid_ros.core.plot_style import FAINT, clean, figure_of, legend, lighter, save
from bid_ros.core.tables import markdown_table

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
    ]
    rows = []
    for noise in result.noises:
        cells = [_entry(result.cell(noise, horizon)) for horizon in result.horizons]
        theirs = published_best(noise)
        best = f"{result.best(noise)} ({'-' if theirs is None else theirs})"
        rows.append((f"{noise:g}", *cells, best))
    head = ("noise", *(f"h={horizon}" for horizon in result.horizons), "best h (published)")
    lines.append(markdown_table(head, rows))
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


if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What is rarer than this at the right end is left out of the picture.
_RARE: Final = 0.002
_LABELS: Final = {
    "idle": "idle actions",
    "idle-s5": "idle actions in s5",
    "stay": "steps without progress",
    "stay-s5": "steps without progress in s5",
}


def draw_histograms(result: Result, folder: Path) -> list[Path]:
    """Write ``histogram_noise_<level>.png`` for each noise level into an existing folder and return their paths."""
    paths = []
    for noise in result.noises:
        path = folder / f"histogram_noise_{noise:g}.png"
        figure = _figure([result.cell(noise, horizon) for horizon in result.horizons], result)
        save(figure, path)
        paths.append(path)
    return paths


def _figure(row: list[DiagnosticCell], result: Result) -> Figure:
    shares = [row[0].demonstrator, *(cell.learner for cell in row)]
    last = max(int(np.flatnonzero(share > _RARE)[-1]) for share in shares)
    figure = figure_of(9, 4.5)
    axes = figure.subplots()
    places, width = np.arange(last + 1), 0.8 / len(row)
    axes.bar(places, shares[0][: last + 1], 0.94, color=lighter(FAINT, 0.4), label="demonstrator")
    for index, cell in enumerate(row):
        shade = 0.1 + 0.75 * index / max(1, len(row) - 1)
        offset = (index - (len(row) - 1) / 2) * width
        label = f"h = {cell.horizon}: distance {cell.distance:.2f}"
        axes.bar(places + offset, cell.learner[: last + 1], width, color=_shade(shade), label=label)
    pause = result.reading.pause(result.noises.index(row[0].noise))
    title = f"noise {row[0].noise:g}, pause of {pause} idle actions"
    axes.set(title=title, xlabel=_LABELS[result.reading.count], ylabel="share of rollouts")
    clean(axes, "y")
    legend(figure, axes)
    return figure


def _shade(level: float) -> tuple[float, float, float]:
    """Blue for short horizons to orange for long ones, told apart also without colour vision."""
    return (0.05 + 0.95 * level, 0.25 + 0.35 * level, 0.75 - 0.70 * level)
