"""Success of VQ-BeT on Push-T beside the paper's: Liu et al., "Bidirectional Decoding", ICLR 2025, in per cent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bid_ros.bench.cell import BenchCell
from bid_ros.bench.plots import errors_of
from bid_ros.bench.summary import CellSummary, Interval
from bid_ros.core.plot_style import INK, clean, decoder_colors, figure_of, legend, lighter, png_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PARTS: Final = ("vanilla", "ema", "backward", "positive", "negative", "bid")
# Per cent of each of these parts, by whether all of a chunk is executed, and by the noise.
_VQBET: Final[dict[tuple[bool, float], tuple[float, ...]]] = {
    (False, 0.0): (48.9, 52.6, 52.7, 53.8, 53.0, 54.4),
    (False, 1.0): (38.3, 35.7, 42.0, 44.1, 44.3, 45.3),
    (False, 1.5): (29.5, 18.4, 29.4, 30.4, 30.8, 31.7),
    (True, 0.0): (64.0, 64.1, 64.0, 65.6, 65.1, 66.1),
    (True, 1.0): (26.9, 27.6, 27.6, 29.7, 26.6, 31.4),
    (True, 1.5): (13.0, 12.9, 13.4, 15.7, 14.8, 16.0),
}
_VQBET_SAMPLES: Final = {1: 49.1, 8: 52.9, 16: 54.2, 32: 54.4}  # BID, one action a decision, no noise


def published_vqbet(cell: BenchCell, by_samples: bool = False) -> float | None:
    """Return the success of VQ-BeT on Push-T in the paper, per cent; None if it has no such cell.

    Args:
        cell: of any variant, with a horizon of 1 or of all five actions.
        by_samples: as the paper's comparison of numbers of samples says. Its N = 16 differs from the main table's.
    """
    if cell.drift or cell.delay or cell.jump:
        return None
    if by_samples and cell.decoder == "bid":
        known = cell.horizon == 1 and not cell.noise and cell.terms in (None, "bid")
        return _VQBET_SAMPLES.get(cell.samples or 0) if known else None
    part = (cell.terms or "bid") if cell.decoder == "bid" else cell.decoder
    row = _VQBET.get((cell.horizon > 1, cell.noise))
    return row[_PARTS.index(part)] if row and part in _PARTS else None


def rate_bars(summaries: Sequence[CellSummary], published: Callable[[BenchCell], float | None]) -> bytes | None:
    """Score, and share of full scores below it, with intervals: a column of panels for each horizon.

    In each panel there is a group of bars for each strength of the action noise.

    Args:
        summaries: of all cells.
        published: from a cell to the per cent of full scores that others reported, drawn as a line across the bar.
    """
    if not summaries:
        return None
    horizons = sorted({item.cell.horizon for item in summaries})
    figure = figure_of(5.2 * len(horizons), 6.2)
    for place, horizon in enumerate(horizons, 1):
        cells = [item for item in summaries if item.cell.horizon == horizon]
        title = f"actions executed a decision: {horizon}"
        above = figure.add_subplot(2, len(horizons), place, ylabel="score, %", title=title)
        _bars(above, cells, lambda item: item.score, lambda cell: None)
        below = figure.add_subplot(2, len(horizons), len(horizons) + place, ylabel="episodes with full score, %")
        _bars(below, cells, lambda item: item.rate, published)
    below.hlines([], 0, 0, color=INK, lw=2, label="published")
    legend(figure, below, 5)
    return png_of(figure)


def _bars(
    axes: Axes,
    cells: Sequence[CellSummary],
    value: Callable[[CellSummary], Interval],
    published: Callable[[BenchCell], float | None],
) -> None:
    names = list(dict.fromkeys(_kind(item.cell) for item in cells))
    noises, width = sorted({item.cell.noise for item in cells}), 0.8 / len(names)
    for index, (name, color) in enumerate(zip(names, _colors(names), strict=True)):
        own = [item for item in cells if _kind(item.cell) == name]
        x = np.array([noises.index(item.cell.noise) + (index - (len(names) - 1) / 2) * width for item in own])
        shares = 100 * np.array([value(item) for item in own])
        look: dict[str, Any] = {"color": color, "ecolor": INK, "capsize": 2, "label": name}
        axes.bar(x, shares[:, 0], 0.92 * width, yerr=errors_of(shares), **look)
        for at, item in zip(x, own, strict=True):
            if (known := published(item.cell)) is not None:
                axes.hlines(known, at - width / 2, at + width / 2, color=INK, lw=2)
    axes.set_xticks(range(len(noises)), [f"noise {noise:g}" for noise in noises])
    axes.set_ylim(0, 100)
    clean(axes, "y")


def _colors(names: Sequence[str]) -> list[str]:
    """Return each decoder's colour; the second way to run one has a lighter one, and so on."""
    own, seen = decoder_colors(names), [name.split(",")[0] for name in names]
    return [lighter(own[name], 0.45 * seen[:place].count(seen[place])) for place, name in enumerate(names)]


def _kind(cell: BenchCell) -> str:
    return cell.label(["terms", "variant"]).replace("terms ", "").replace("bid, bid", "bid").replace("variant ", "")
