"""The table of a campaign, from the lines that its trials appended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from fault_campaign.fault import Fault

HEAD: Final = (
    "| fault | system | trials | rest after the deadline, median and max | peak speed | way "
    "| first reason, after at most | missed | tried |\n|---|---|---|---|---|---|---|---|---|"
)
Row = Mapping[str, Any]
NOT_TRIED: Final = "not tried"
SIMULATED: Final = "simulated"


def table(faults: Sequence[Fault], tasks: Iterable[str], rows: Sequence[Row]) -> str:
    """Return a Markdown table with a line for each fault and system; random pairs of a system share one line.

    Args:
        faults: of the table, in order.
        tasks: systems.
        rows: of all trials.
    """
    lines, tasks = [HEAD], list(tasks)
    single = [fault for fault in faults if fault.group != "pairs"]
    for fault in single:
        for task in tasks:
            lines.append(
                _line(fault.what, task, [row for row in rows if row["fault"] == fault.name and row["task"] == task])
            )
    if len(single) < len(faults):
        for task in tasks:
            of = [row for row in rows if row["group"] == "pairs" and row["task"] == task]
            lines.append(_line("pairs at random", task, of))
    return "\n".join(lines)


def _line(what: str, task: str, rows: list[Row]) -> str:
    tried = [row for row in rows if "problem" not in row]
    if not tried:
        return f"| {what} | {task} | 0 | | | | | | {NOT_TRIED} |"
    late = [row["rest_s"] - row["deadline_s"] for row in tried if None not in (row["rest_s"], row["deadline_s"])]
    rest = f"{np.median(late):.2f}, {max(late):.2f} s" if late else "goes on"
    peak, far = max(row["peak"] for row in tried), max(row["far"] for row in tried)
    firsts = [min(_stops(row), key=lambda item: item["after_s"]) for row in tried if _stops(row)]
    reason = ""
    if firsts:
        latest = max(firsts, key=lambda item: item["after_s"])
        reason = f"`{shown(latest['text'])}` ({latest['where']}), {latest['after_s']:.2f} s"
    wrong: dict[str, int] = {}
    for row in tried:
        for sentence in row["wrong"]:
            wrong[shown(sentence)] = wrong.get(shown(sentence), 0) + 1
    missed = "; ".join(f"{number} of {len(tried)}: {sentence}" for sentence, number in wrong.items())
    return (
        f"| {what} | {task} | {len(tried)} | {rest} | {peak:.2f} m/s | {1000 * far:.0f} mm | {reason} | {missed} "
        f"| {SIMULATED} |"
    )


def _stops(row: Row) -> list[dict[str, Any]]:
    return [item for item in row["reasons"] if item["stopped"]]


def shown(text: str) -> str:
    """Return a sentence short enough for a table, without what would end a cell."""
    plain = text.replace("|", "/").replace("`", "'").split(": find what")[0]
    return plain if len(plain) <= 90 else f"{plain[:87]}..."
