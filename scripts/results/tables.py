"""Put the summaries of docs/results/data/ as tables into the pages, between their markers, and draw the pictures.

``<!-- table NAME [KEY=VALUE ...] -->`` and ``<!-- end -->`` are a marker pair. The text between them is replaced by the
cells of NAME.json whose settings have these values. With --check nothing is
written, and the exit status is 1 if a page differs from its summaries.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from bid_ros.bench import plots
from bid_ros.bench.cell import BenchCell
from bid_ros.bench.summary import CellSummary, format_interval, format_optional
from results.vqbet_rates import published_vqbet, rate_bars

DOCS = Path(__file__).resolve().parents[2] / "docs"
DATA = DOCS / "results" / "data"
PAGES = ("results/pusht.md", "results/pusht-families.md", "reference/decoders.md")
TABLE = re.compile(r"(<!-- table (\w+)((?: \w+=\S+)*) -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = [
    "decoder",
    "episodes",
    "score, 95 %",
    "minus vanilla, paired 95 %",
    "switches/s",
    "jerk /s^3",
    "ms",
    "published",
]
REACTION = ["reaction s"]
# Tables of VQ-BeT: what was published is success, not score.
SUCCESS = ("vqbet", "vqbet_terms", "vqbet_samples", "absolute", "absolute_terms", "absolute_samples")
SUCCESS_HEAD = [*HEAD[:4], "full score %, 95 %", "paper %", "switches/s", "ms"]


def load(name: str) -> list[CellSummary]:
    """Read a summary."""
    cells = json.loads((DATA / f"{name}.json").read_text())["cells"]
    return [CellSummary(**{**cell, "cell": BenchCell(**cell["cell"])}) for cell in cells]


def table(name: str, wanted: dict[str, str]) -> str:
    """Return the table of a summary: one row for each cell with the wanted settings."""
    cells = [item for item in load(name) if all(str(getattr(item.cell, key)) == wanted[key] for key in wanted)]
    if not cells:
        raise SystemExit(f"error: {DATA / name}.json has no cell with {wanted}")
    if name in SUCCESS:
        rows = [_success_row(item, name.endswith("samples")) for item in cells]
        return "".join(f"|{'|'.join(line)}|\n" for line in [SUCCESS_HEAD, ["---"] * len(SUCCESS_HEAD), *rows])
    reacted = any(item.reaction_s is not None for item in cells)
    head = HEAD[:-2] + REACTION * reacted + HEAD[-2:]
    lines = [head, ["---"] * len(head), *(_row(item, reacted) for item in cells)]
    return "".join(f"|{'|'.join(line)}|\n" for line in lines)  # without spaces a line has at most 120 characters


def page(text: str) -> str:
    """Return a page with its tables filled in."""

    def fill(match: re.Match[str]) -> str:
        wanted = dict(item.split("=", 1) for item in match[3].split())
        return match[1] + table(match[2], wanted) + match[4]

    return TABLE.sub(fill, text)


def pictures() -> dict[str, bytes | None]:
    """Draw the pictures of the pages on Push-T, by file name."""
    samples = load("samples")
    rates = {f"pusht_{name}.png": load(name) for name in ("vqbet", "absolute") if (DATA / f"{name}.json").is_file()}
    drawn = {name: rate_bars(cells, published_vqbet) for name, cells in rates.items()}
    return drawn | {
        "pusht_published_tradeoff.png": plots.trade_off(load("published")),
        "pusht_samples.png": plots.score_curve(samples, "samples", "samples N"),
    }


def _row(item: CellSummary, reacted: bool) -> list[str]:
    values = [item.label, str(item.episodes), format_interval(item.score), format_interval(item.against, "+")]
    values += [format_optional(item.switches_per_s, ".2f"), f"{item.jerk:.2g}"]
    if reacted:
        values.append(format_optional(item.reaction_s, ".2f"))
    return [*values, format_optional(item.latency_ms, ".1f"), item.published or "-"]


def _success_row(item: CellSummary, by_samples: bool) -> list[str]:
    rate, low, high = (100 * value for value in item.rate)
    paper = format_optional(published_vqbet(item.cell, by_samples), ".1f")
    values = [item.label.removesuffix(", trim previous"), str(item.episodes), format_interval(item.score)]
    values += [format_interval(item.against, "+"), f"{rate:.0f} ({low:.0f} to {high:.0f})", paper]
    return [*values, format_optional(item.switches_per_s, ".2f"), format_optional(item.latency_ms, ".1f")]


def main() -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare the tables")
    check = parser.parse_args().check
    different = False
    for path in (DOCS / name for name in PAGES):
        before = path.read_text()
        after = page(before)
        if after != before:
            different = True
            print(path.relative_to(DOCS), file=sys.stderr)
            if not check:
                path.write_text(after)
    if check:
        return int(different)
    for name, image in pictures().items():
        if image is not None:
            (DOCS / "images" / name).write_bytes(image)
    return 0


if __name__ == "__main__":
    sys.exit(main())
