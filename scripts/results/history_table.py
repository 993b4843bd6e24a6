"""The table and the picture of policies that look back 1 to 10 steps, in docs/results/pusht-families.md.

Usage: history-table [FOLDER], the out folder of ``history``: its summaries become
docs/results/data/history.json first. Writes the table into the page, and docs/images/pusht_history.png.
``scripts/results history-table --check`` only compares the page: exit status 1 if it is another one.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bid_ros.core.plot_style import COLORS, MARKS, clean, figure_of, legend, save
from bid_ros.core.tables import markdown_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
DATA: Final = DOCS / "results" / "data" / "history.json"
NAME: Final = re.compile(r"runs_h(\d+)_c(\d+)")
TABLE: Final = re.compile(r"(<!-- history -->\n).*?(<!-- end -->)", re.DOTALL)


def collected(folder: Path) -> list[dict[str, Any]]:
    """Return a row for each history, chunk and action horizon in the folder of the runs."""
    rows = []
    for file in folder.glob("runs_h*_c*/summary.json"):
        history, chunk = (int(number) for number in NAME.fullmatch(file.parent.name).groups())  # type: ignore[union-attr]
        for cell in json.loads(file.read_text())["cells"]:
            kept = {name: cell[name] for name in ("episodes", "score", "rate")}
            rows.append({"history": history, "chunk": chunk, "horizon": cell["cell"]["horizon"], **kept})
    return sorted(rows, key=lambda row: (row["chunk"], row["horizon"], row["history"]))


def table(rows: list[dict[str, Any]]) -> str:
    """Return a line for each length of history and a column for each chunk and action horizon."""
    kinds = sorted({(row["chunk"], row["horizon"]) for row in rows})
    head = ("observed steps", *(f"chunk {chunk}, executed {horizon}" for chunk, horizon in kinds))
    lines = []
    for history in sorted({row["history"] for row in rows}):
        found = {(row["chunk"], row["horizon"]): row["score"] for row in rows if row["history"] == history}
        cells = ["{:.3f} ({:.3f} to {:.3f})".format(*found[kind]) if kind in found else "-" for kind in kinds]
        lines.append((history, *cells))
    return markdown_table(head, lines) + "\n"


def picture(rows: list[dict[str, Any]]) -> Figure:
    """Draw the score over the length of the history, a line for each chunk and action horizon."""
    figure = figure_of(6.4, 3.6)
    axes = figure.add_subplot()
    for place, kind in enumerate(sorted({(row["chunk"], row["horizon"]) for row in rows})):
        line = [row for row in rows if (row["chunk"], row["horizon"]) == kind]
        middle = [row["score"][0] for row in line]
        low, high = ([abs(row["score"][end] - row["score"][0]) for row in line] for end in (1, 2))
        at = [row["history"] + 0.08 * (place - 1.5) for row in line]
        name = f"chunk of {kind[0]}, {kind[1]} executed"
        axes.errorbar(at, middle, yerr=[low, high], color=COLORS[place], marker=MARKS[place], capsize=3, label=name)
    axes.set(xlabel="observed steps (0.1 s each)", ylabel="score, 95 % over episodes", ylim=(0, 1))
    axes.set_xticks(sorted({row["history"] for row in rows}))
    clean(axes)
    legend(figure, axes, 2)
    return figure


def main() -> int:
    """Write data, table and picture."""
    check = sys.argv[1:] == ["--check"]
    if len(sys.argv) > 1 and not check:
        found = collected(Path(sys.argv[1]))
        if not found:
            print(f"error: {sys.argv[1]} has no runs_hN_cM/summary.json", file=sys.stderr)
            return 2
        DATA.write_text(json.dumps(found, indent=1) + "\n")
    rows = json.loads(DATA.read_text())
    page = DOCS / "results" / "pusht-families.md"
    before = page.read_text()
    after = TABLE.sub(lambda match: match[1] + table(rows) + match[2], before)
    if check:
        return int(before != after)
    page.write_text(after)
    save(picture(rows), DOCS / "images" / "pusht_history.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
