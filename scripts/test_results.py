#!/usr/bin/env python3
"""Write the results of ``scripts/test_all.sh`` into the page of the tests. Usage: test_results.py FOLDER PAGE."""

from __future__ import annotations

import datetime
import os
import re
import sys
from pathlib import Path

BEGIN, END = "<!-- results: scripts/test_all.sh writes them -->\n", "<!-- end of results -->\n"
RESULT = re.compile(r"([a-z-]+): (passed|failed), (.+)\n")


def table(folder: Path) -> str:
    """Return the table of the results in a folder whose name is the commit; the oldest lane first."""
    files = sorted((path for path in folder.iterdir() if path.suffix != ".log"), key=lambda path: path.stat().st_mtime)
    found = [match for path in files if (match := RESULT.match(path.read_text()))]
    rows = [f"| {name} | {result} | {time} |" for name, result, time in (match.groups() for match in found)]
    day = datetime.date.today().isoformat()
    cores = len(os.sched_getaffinity(0))
    said = (
        f"Commit {folder.name.rstrip('+')}{' with changes' if folder.name.endswith('+') else ''}, {day}, {cores} cores:"
    )
    return "\n".join([said, "", "| lane | result | time |", "|---|---|---|", *rows, ""])


def write(folder: Path, page: Path) -> None:
    """Replace the results of a page."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{table(folder)}\n{END}{after}")


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
