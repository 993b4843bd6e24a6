#!/usr/bin/env python3
"""What mutmut found, for scripts/mutation.sh.

``forget FOLDER`` makes mutmut try again what was not killed. ``report FOLDER`` prints a table by module and the mutants
that survived, and exits with 1 if less than 90 % were killed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

LEAST = 0.9
# Exit codes of a mutant's tests: failed, or out of time. An endless loop is noticed too.
KILLED = (1, 3, 24, 36, 152, 255, -24)


def results(folder: Path) -> dict[Path, dict[str, int | None]]:
    """Return the exit code of every mutant of every module that has mutants; None: not tried."""
    found = {path: json.loads(path.read_text())["exit_code_by_key"] for path in sorted(folder.rglob("*.py.meta"))}
    return {path: codes for path, codes in found.items() if codes}


def forget(folder: Path) -> None:
    """Forget the results of mutants that were not killed."""
    for path, codes in results(folder).items():
        kept = {name: code if code in KILLED else None for name, code in codes.items()}
        path.write_text(json.dumps(json.loads(path.read_text()) | {"exit_code_by_key": kept}, indent=4))


def report(folder: Path) -> int:
    """Print the table and the survivors. Return the exit status."""
    counts: dict[str, tuple[int, int]] = {}
    survivors: list[str] = []
    for path, codes in results(folder).items():
        alive = [name for name, code in codes.items() if code not in KILLED]
        counts[str(path.relative_to(folder)).removesuffix(".meta")] = len(codes), len(codes) - len(alive)
        survivors += alive
    counts["all"] = sum(total for total, _ in counts.values()), sum(killed for _, killed in counts.values())
    print("| module | mutants | killed | survived | share |")
    print("|---|---|---|---|---|")
    for module, (total, killed) in counts.items():
        print(f"| {module} | {total} | {killed} | {total - killed} | {killed / max(total, 1):.1%} |")
    print("\nSurvived; to see one: cd .build/mutation/tree && ../venv/bin/mutmut show NAME")
    print("\n".join(survivors))
    total, killed = counts["all"]
    return int(killed < LEAST * total or not total)


if __name__ == "__main__":
    if sys.argv[1] == "forget":
        forget(Path(sys.argv[2]))
    else:
        sys.exit(report(Path(sys.argv[2])))
