"""Put the summaries of docs/results/*.json as tables into docs/results.md, between its markers.

A marker pair is ``<!-- table NAME -->`` and ``<!-- end -->``; what stands between is replaced. With --check nothing is
written, and the exit status is 1 if a table is not what its summary says.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
TABLE = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = "| decoder | episodes | score, 95 % | minus vanilla, paired 95 % | switches/s | jerk /s^3 | ms | published |\n"
RULE = "|---|---|---|---|---|---|---|---|\n"


def table(name: str) -> str:
    """Return the table of a summary, a row a cell."""
    cells = json.loads((DOCS / "results" / f"{name}.json").read_text())["cells"]
    reacted = any(cell["reaction_s"] is not None for cell in cells)
    head, rule = (HEAD.replace("| ms |", "| reaction s | ms |"), RULE + "") if reacted else (HEAD, RULE)
    rule = rule.replace("\n", "---|\n") if reacted else rule
    return head + rule + "".join(_row(cell, reacted) for cell in cells)


def _row(cell: dict[str, Any], reacted: bool) -> str:
    values = [cell["label"], str(cell["episodes"]), _interval(cell["score"]), _interval(cell["against"], "+")]
    values += [f"{cell['switches_per_s']:.2f}", f"{cell['jerk']:.2g}"]
    if reacted:
        values.append("-" if cell["reaction_s"] is None else f"{cell['reaction_s']:.1f}")
    values += ["-" if cell["latency_ms"] is None else f"{cell['latency_ms']:.1f}", cell["published"] or "-"]
    return "| " + " | ".join(values) + " |\n"


def _interval(value: list[float] | None, sign: str = "") -> str:
    if value is None:
        return "-"
    mean, low, high = (f"{number:{sign}.3f}" for number in value)
    return f"{mean} ({low} to {high})"


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    page = DOCS / "results.md"
    before = page.read_text()
    after = TABLE.sub(lambda match: match[1] + table(match[2]) + match[3], before)
    if parser.parse_args().check:
        return int(after != before)
    page.write_text(after)
    return 0


if __name__ == "__main__":
    sys.exit(main())
