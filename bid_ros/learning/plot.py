"""The loss plot of a training run."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure


def plot_log(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Draw the losses of a log, training and held out, and the error of the guessed goal if there is one.

    Args:
        rows: lines of ``log.jsonl``.
        path: PNG file to write.
    """
    lines = list(rows)
    panels = 2 if any("val_goal_mm" in row for row in lines) else 1
    figure = Figure(figsize=(6 * panels, 4), dpi=100, layout="tight")
    axes = figure.subplots(1, panels, squeeze=False)
    left = axes[0, 0]
    for key, label in (("loss", "training"), ("val_loss", "held-out episodes, averaged weights")):
        _curve(left, lines, key, label)
    what = (
        "loss of codes and offsets" if any("code_loss" in row for row in lines) else "denoising loss, normalised units"
    )
    left.set(xlabel="step", ylabel=what, yscale="log")
    if panels == 2:
        _curve(axes[0, 1], lines, "val_goal_mm", "held-out episodes, averaged weights")
        axes[0, 1].set(xlabel="step", ylabel="error of the guessed goal, mm", yscale="log")
    for axis in axes[0]:
        axis.grid(alpha=0.3)
        if axis.lines:
            axis.legend()
    figure.savefig(path, format="png")


def _curve(axis: Any, rows: list[Mapping[str, Any]], key: str, label: str) -> None:
    points = [(row["step"], row[key]) for row in rows if key in row]
    if points:
        axis.plot(*zip(*points, strict=True), label=label)
