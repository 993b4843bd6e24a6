"""The plots of a report, each as the bytes of a PNG, None where there is nothing to compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from bid_ros.bench.cell import BenchCell
from bid_ros.bench.episode import EpisodePath
from bid_ros.bench.summary import CellSummary, Interval, conditions
from bid_ros.core.plot_style import COLORS, INK, MARKS, MUTED, clean, decoder_colors, figure_of, legend, png_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMED: Final = 16  # points with their name beside them; more would cover each other
_NAME_WIDTH, _NAME_HEIGHT = 0.22, 0.036  # of the plot


def score_bars(summaries: Sequence[CellSummary]) -> bytes | None:
    """Mean score of every cell with its interval."""
    if not summaries:
        return None
    figure = figure_of(8.0, 1.0 + 0.32 * len(summaries))
    axes = figure.add_subplot()
    scores = np.array([item.score for item in summaries])
    places = np.arange(len(summaries))[::-1]
    colors = decoder_colors([item.cell.decoder for item in summaries])
    axes.barh(places, scores[:, 0], 0.7, color=[colors[item.cell.decoder] for item in summaries])
    axes.errorbar(scores[:, 0], places, xerr=errors_of(scores), fmt="none", ecolor=INK, capsize=3)
    axes.set_yticks(places, [item.label for item in summaries])
    axes.set(xlim=(0, 1), xlabel="score, 95 % interval over episodes")
    clean(axes, "x")
    return png_of(figure)


def score_curve(summaries: Sequence[CellSummary], name: str, label: str) -> bytes | None:
    """Score over a numeric setting: a line for all cells that differ in nothing else; None if none do.

    Args:
        summaries: of all cells.
        name: the setting, for example ``samples``.
        label: of the axis.
    """
    return _curve(summaries, name, (label, "score"), lambda item: item.score)


def latency_curve(summaries: Sequence[CellSummary]) -> bytes | None:
    """Time of a decision over N, as :func:`score_curve`."""
    timed = [item for item in summaries if item.latency_ms is not None]
    return _curve(timed, "samples", ("samples N", "ms a decision"), lambda item: (item.latency_ms or 0.0,) * 3)


def _curve(
    summaries: Sequence[CellSummary], name: str, labels: tuple[str, str], value: Callable[[CellSummary], Interval]
) -> bytes | None:
    lines = _lines(summaries, name)
    if not lines:
        return None
    figure = figure_of(7.0, 4.2)
    axes = figure.add_subplot(xlabel=labels[0], ylabel=labels[1])
    own = decoder_colors([line[-1].cell.decoder for line in lines])
    one_each = len(own) == len(lines)  # lines of one decoder need colours of their own
    for index, line in enumerate(lines):
        color, mark = own[line[-1].cell.decoder] if one_each else COLORS[index % 10], MARKS[index % 8]
        x, y = [getattr(item.cell, name) for item in line], np.array([value(item) for item in line])
        text = _without(line[-1].label, line[-1].cell, name)
        axes.errorbar(x, y[:, 0], errors_of(y), marker=mark, capsize=3, color=color, label=text)
    clean(axes)
    legend(figure, axes, 2)
    return png_of(figure)


def _lines(summaries: Sequence[CellSummary], name: str) -> list[list[CellSummary]]:
    """Return groups of two cells or more that differ only in a setting, sorted by it."""
    groups: dict[tuple[Any, ...], list[CellSummary]] = {}
    singles = []
    for item in summaries:
        if name == "samples" and item.cell.samples == 1:
            singles.append(item)  # selects nothing, so it begins the line of every way to select
        elif getattr(item.cell, name) is not None:
            groups.setdefault(_but(item.cell, name), []).append(item)
    for item in singles:
        for group in groups.values():
            if group[0].cell.decoder == item.cell.decoder and conditions(group[0].cell) == conditions(item.cell):
                group.append(item)
    return [sorted(group, key=lambda item: getattr(item.cell, name)) for group in groups.values() if len(group) > 1]


def trade_off(summaries: Sequence[CellSummary]) -> bytes | None:
    """Score over changes of strategy a second, every cell a point whose area grows with its jerk.

    Cells whose decisions never overlap have no changes and are left out. Where the block jumped, a second panel has
    the time to react to it in place of the score.
    """
    summaries = [item for item in summaries if item.switches_per_s is not None]
    if len(summaries) < 2:
        return None
    reacting = [item for item in summaries if item.reaction_s is not None]
    panels = 2 if len(reacting) > 1 else 1
    figure = figure_of(7.5 * panels, 4.6)
    _points(figure.add_subplot(1, panels, 1, ylabel="score"), summaries, lambda item: item.score[0])
    if panels == 2:
        axes = figure.add_subplot(1, 2, 2, ylabel="reaction to the jump, s")
        _points(axes, reacting, lambda item: item.reaction_s or 0.0)
    return png_of(figure)


def _points(axes: Axes, summaries: Sequence[CellSummary], value: Callable[[CellSummary], float]) -> None:
    largest = max(item.jerk for item in summaries) or 1.0
    colors = decoder_colors([item.cell.decoder for item in summaries])
    for decoder, color in colors.items():
        own = [item for item in summaries if item.cell.decoder == decoder]
        sizes = [25 + 160 * item.jerk / largest for item in own]
        x, y = [item.switches_per_s or 0.0 for item in own], [value(item) for item in own]
        axes.scatter(x, y, sizes, color=color, alpha=0.85, edgecolors="white", linewidths=0.6, label=decoder)
    axes.margins(0.14)  # room for the names
    axes.set_xlabel("changes of strategy a second (area: jerk)")
    clean(axes)
    if len(summaries) <= _MOST_NAMED:
        _name(axes, summaries, value)
    else:
        axes.legend(fontsize=8, markerscale=0.6, frameon=False, labelcolor=INK)


def _name(axes: Axes, summaries: Sequence[CellSummary], value: Callable[[CellSummary], float]) -> None:
    """Write the names beside their points, from the lowest up, each above those that it would cover."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    placed: list[tuple[float, float]] = []
    for item in sorted(summaries, key=lambda item: (value(item), item.switches_per_s)):
        across, up = ((item.switches_per_s or 0.0) - left) / (right - left), (value(item) - low) / (high - low)
        place = up
        while any(abs(across - other) < _NAME_WIDTH and abs(up - at) < _NAME_HEIGHT for other, at in placed):
            up += _NAME_HEIGHT / 8
        placed.append((across, up))
        side, shift = ("left", 8) if across < 1 - _NAME_WIDTH else ("right", -8)
        if up - place > _NAME_HEIGHT / 2:  # the name is not beside its point
            ends = [across, across + 0.01 * (1 if shift > 0 else -1)], [place, up]
            axes.plot(*ends, transform=axes.transAxes, color=MUTED, linewidth=0.8, zorder=1)
        text = axes.annotate(item.label, (across, up), (shift, -2), "axes fraction", "offset points")
        text.set(fontsize=8, ha=side, color=INK)


def paths(traces: Sequence[tuple[str, EpisodePath]], title: str) -> bytes | None:
    """Paths of agent (thin) and block (thick) of the same episode under several decoders."""
    if not traces:
        return None
    figure = figure_of(4.4, 4.4)
    axes = figure.add_subplot(aspect="equal")
    for index, (label, trace) in enumerate(traces):
        color = COLORS[index % 10]
        axes.plot(*trace.agents[:, :2].T, color=color, lw=0.8, alpha=0.8)
        axes.plot(*trace.blocks[:, :2].T, color=color, lw=2.6, label=label)
    axes.plot(*traces[0][1].blocks[0, :2], "ks", ms=6)
    axes.invert_yaxis()  # px, y down as in the pictures
    axes.set_title(title)
    clean(axes, "")
    axes.legend(fontsize=8, labelcolor=INK)
    return png_of(figure)


def _but(cell: BenchCell, name: str) -> tuple[Any, ...]:
    # K follows N in a sweep over N, so it is no reason to start another line.
    hidden = {name, "mode_size"} if name == "samples" else {name}
    return tuple(getattr(cell, item.name) for item in fields(BenchCell) if item.name not in hidden)


def _without(label: str, cell: BenchCell, name: str) -> str:
    """Leave out of a label the part that belongs to the setting of the axis."""
    own = {replace(cell, mode_size=None).label([name])[len(cell.decoder) + 2 :]}
    if name == "samples" and cell.mode_size is not None:
        own.add(f"K {cell.mode_size}")
    return ", ".join(part for part in label.split(", ") if part not in own)


def errors_of(intervals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distances ``(2, K)`` of the ends of intervals ``(K, 3)`` from their means."""
    return np.abs(intervals[:, 1:] - intervals[:, :1]).T
