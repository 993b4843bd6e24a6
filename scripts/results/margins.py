"""Gathers how near recorded runs came to the limits of the checks of robot, link and computer: a table, a picture.

A run is given as LABEL=BAG, such as ``ur5_pick=out/a/bag``. Runs of one label are added up.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bid_ros.core.margins import BINS
from bid_ros.core.plot_style import COLORS, FAINT, LIMIT, clean, figure_of, save
from bid_ros.core.tables import markdown_table
from bid_ros.curation.shares import Checks, gathered, read_margins

COLUMNS = 4


def table(runs: Mapping[str, Checks]) -> str:
    """Return the largest share of each limit, of each label, with the number of comparisons, made and not possible."""
    names = gathered(runs.values())
    rows = []
    for name, all_of_it in names.items():
        shares = [f"{checks[name].largest:.2f}" if name in checks else "" for checks in runs.values()]
        rows.append([name, *shares, f"{all_of_it.total}", str(all_of_it.unjudged or "")])
    return markdown_table(["check", *runs, "comparisons", "not judged"], rows)


def draw(runs: Mapping[str, Checks], path: Path) -> None:
    """Draw a histogram of each check: measured over limit, beside the limit and half of it."""
    names = list(gathered(runs.values()))
    lines = -(-len(names) // COLUMNS)
    figure = figure_of(3.2 * COLUMNS, 1.9 * lines)
    panels = figure.subplots(lines, COLUMNS, squeeze=False, sharex=True)
    edges = np.arange(BINS + 2) / BINS
    for panel, name in zip(panels.flat, names, strict=False):
        for number, (label, checks) in enumerate(runs.items()):
            if name in checks:  # a label has one colour, also where another has no such check
                panel.stairs(checks[name].counts, edges, color=COLORS[number], label=label)
        panel.set(title=name, yscale="symlog")
        clean(panel, "")
        panel.axvline(0.5, color=FAINT, linestyle=":", linewidth=1)
        panel.axvline(1.0, color=LIMIT, linewidth=1)
    for panel in panels.flat[len(names) :]:
        panel.set_visible(False)
    keys = (zip(*panel.get_legend_handles_labels(), strict=True) for panel in panels.flat)
    found = {label: line for panel in keys for line, label in panel}
    figure.legend(found.values(), found.keys(), loc="outside upper center", ncols=len(found), frameon=False)
    figure.supxlabel("measured / limit")
    figure.supylabel("comparisons")
    save(figure, path)


def main() -> None:
    """Print the table, and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="LABEL=BAG", help="a recorded run")
    parser.add_argument("--plot", default="", help="PNG file to write")
    options = parser.parse_args()
    runs: dict[str, Checks] = {}
    for given in options.runs:
        label, found, bag = given.partition("=")
        if not found or not bag:
            parser.error(f"a run is {given!r}; valid is LABEL=BAG")
        runs[label] = gathered([runs.get(label, {}), read_margins(Path(bag))])
    print(table(runs))
    if options.plot:
        draw(runs, Path(options.plot))


if __name__ == "__main__":
    main()
