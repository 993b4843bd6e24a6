"""One histogram a noise level: how idle the demonstrator is, and each learner."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bid_ros.bench.diagnostic.experiment import DiagnosticCell, Result

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
        figure.savefig(path, format="png")
        paths.append(path)
    return paths


def _figure(row: list[DiagnosticCell], result: Result) -> Figure:
    from matplotlib.figure import Figure  # takes half a second to import, and only the pictures need it

    shares = [row[0].demonstrator, *(cell.learner for cell in row)]
    last = max(int(np.flatnonzero(share > _RARE)[-1]) for share in shares)
    figure = Figure(figsize=(9, 4.5), dpi=120, layout="constrained")
    axes = figure.subplots()
    places, width = np.arange(last + 1), 0.8 / len(row)
    axes.bar(places, shares[0][: last + 1], 0.94, color="0.85", label="demonstrator")
    for index, cell in enumerate(row):
        shade = 0.1 + 0.75 * index / max(1, len(row) - 1)
        offset = (index - (len(row) - 1) / 2) * width
        label = f"h = {cell.horizon}: distance {cell.distance:.2f}"
        axes.bar(places + offset, cell.learner[: last + 1], width, color=_shade(shade), label=label)
    pause = result.reading.pause(result.noises.index(row[0].noise))
    title = f"noise {row[0].noise:g}, pause of {pause} idle actions"
    axes.set(title=title, xlabel=_LABELS[result.reading.count], ylabel="share of rollouts")
    axes.legend()
    return figure


def _shade(level: float) -> tuple[float, float, float]:
    """Blue for short horizons to orange for long ones, told apart also without colour vision."""
    return (0.05 + 0.95 * level, 0.25 + 0.35 * level, 0.75 - 0.70 * level)
