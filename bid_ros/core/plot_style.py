"""How every plot looks: white paper, one colour for a decoder in all of them, told apart in print and without colour.

A white ground stays readable on a dark page. The colours differ in lightness; lines differ in their marks as well.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bid_ros.core.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK: Final = "#22272e"
MUTED: Final = "#8b93a0"
GRID: Final = "#dde1e7"
FAINT: Final = "#b8bec8"  # what is there for comparison
LIMIT: Final = "#c0302b"
DPI: Final = 120
BLUE, GREY, ORANGE, PURPLE, GREEN, SAND, RED, TEAL, PINK, NAVY = COLORS = (
    *("#1f6fc4", "#6f7784", "#ee9420", "#7c3fb0", "#37a565", "#c9b13a", "#d2473d", "#0f8d96", "#e07fb4", "#20305e"),
)
DECODERS: Final = {
    "bid": BLUE,
    "vanilla": GREY,
    "ema": ORANGE,
    "bid+ema": PURPLE,
    "bid+lead": GREEN,
    "warmstart": SAND,
    "rtc": RED,
    "bid+warmstart": TEAL,
    "keystone": PINK,
    "vanilla+lead": NAVY,
}
MARKS: Final = ("o", "s", "^", "D", "v", "P", "X", "*")  # of lines, by their order


def decoder_colors(names: Sequence[str]) -> dict[str, str]:
    """Return the colour of each decoder: its own in every plot; names without one have those that these leave.

    Args:
        names: of decoders; what follows a colon or a comma (settings, N) is no part of it.
    """
    bare = {name: name.split(":")[0].split(",")[0] for name in names}
    known = {name for name in bare.values() if name in DECODERS}
    left = cycle([color for color in COLORS if color not in {DECODERS[name] for name in known}] or COLORS)
    others = {name: next(left) for name in sorted(set(bare.values()) - known)}
    return {name: (DECODERS | others)[own] for name, own in bare.items()}


def lighter(color: str, share: float) -> str:
    """Return a colour mixed with white: ``share`` 0 is the colour, 1 is white."""
    parts = [int(color[place : place + 2], 16) for place in (1, 3, 5)]
    return "#" + "".join(f"{round(part + share * (255 - part)):02x}" for part in parts)


def figure_of(width: float, height: float) -> Figure:
    """Return an empty figure; width and height in inches."""
    from matplotlib.figure import Figure  # takes half a second to import, and only a plot needs it

    return Figure(figsize=(width, height), dpi=DPI, layout="constrained")


def clean(axes: Axes, grid: Any = "both") -> None:
    """Give axes the look of all plots.

    Args:
        axes: to change.
        grid: lines of which axis: ``x``, ``y`` or ``both``; empty: none.
    """
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    axes.tick_params(labelsize=9, colors=INK)
    for text in (axes.xaxis.label, axes.yaxis.label, axes.title):
        text.set(color=INK, fontsize=10)
    axes.set_axisbelow(True)
    if grid:
        axes.grid(axis=grid, color=GRID, linewidth=0.8)


def legend(figure: Figure, axes: Axes, columns: int = 4) -> None:
    """Put the legend of axes above the whole plot, where it covers nothing."""
    handles, labels = axes.get_legend_handles_labels()
    look: dict[str, Any] = {"frameon": False, "fontsize": 9, "labelcolor": INK}
    figure.legend(handles, labels, loc="outside upper center", ncols=min(columns, max(1, len(labels))), **look)


def png_of(figure: Figure) -> bytes:
    """Return the figure as PNG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def save(figure: Figure, path: str | Path) -> None:
    """Write the figure as the PNG of a path, whole or not at all; its folder is made."""
    with replacing(Path(path)) as part:
        part.write_bytes(png_of(figure))
