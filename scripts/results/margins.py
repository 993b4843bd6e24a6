"""Gathers how near recorded runs came to the limits of the checks of robot, link and computer: a table, a picture.

A run is given as LABEL=BAG, such as ``ur5_pick=out/a/bag``. Runs of one label are added up.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import matplotlib.lines
import numpy as np

from bid_ros.core.margins import BINS
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
    mpl.use("Agg")
    from matplotlib import pyplot

    names = list(gathered(runs.values()))
    lines = -(-len(names) // COLUMNS)
    figure, panels = pyplot.subplots(lines, COLUMNS, figsize=(3.2 * COLUMNS, 1.9 * lines), squeeze=False, sharex=True)
    edges = np.arange(BINS + 2) / BINS
    for panel, name in zip(panels.flat, names, strict=False):
        for number, checks in enumerate(runs.values()):
            if name in checks:  # a label has one colour, also where another has no such check
                panel.stairs(checks[name].counts, edges, color=f"C{number}")
        panel.set_title(name, fontsize=8)
        panel.set_yscale("symlog")
        panel.axvline(0.5, color="grey", linestyle=":", linewidth=1)
        panel.axvline(1.0, color="red", linewidth=1)
    for panel in panels.flat[len(names) :]:
        panel.set_visible(False)
    lines_of_labels = [mpl.lines.Line2D([], [], color=f"C{number}") for number in range(len(runs))]
    figure.legend(lines_of_labels, list(runs), loc="lower right", fontsize=9)
    figure.supxlabel("measured / limit")
    figure.supylabel("comparisons")
    figure.tight_layout(rect=(0.02, 0.02, 1.0, 1.0))
    figure.savefig(path, dpi=90)


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
