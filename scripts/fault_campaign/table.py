"""The table of a campaign, from the lines that its trials appended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from fault_campaign.fault import Fault

HEAD: Final = (
    "| fault | system | trials (twin too slow) | rest after the deadline, median, p99 and max | peak speed | way "
    "| first reason, after at most | missed | tried |\n|---|---|---|---|---|---|---|---|---|"
)
Row = Mapping[str, Any]
NOT_TRIED: Final = "not tried"
SIMULATED: Final = "simulated"
REAL_TIME: Final = 0.9  # of a twin; a slower one tells of the computer, not of the system


def table(faults: Sequence[Fault], tasks: Iterable[str], rows: Sequence[Row]) -> str:
    """Return a Markdown table with a line for each fault and system; random pairs of a system share one line.

    Trials whose twin was too slow are counted, and give the figures only where there are no others. Bars that they
    missed count, but for those of times and speeds.

    Args:
        faults: of the table, in order.
        tasks: systems.
        rows: of all trials.
    """
    lines, tasks = [HEAD], list(tasks)
    single = [fault for fault in faults if fault.group != "pairs"]
    for fault in single:
        for task in fault.tasks or tasks:
            own = [row for row in rows if row["fault"] == fault.name and row["task"] == task]
            lines.append(_line(fault.what, task, own))
    if len(single) < len(faults):
        for task in tasks:
            of = [row for row in rows if row["group"] == "pairs" and row["task"] == task]
            lines.append(_line("pairs at random", task, of))
    return "\n".join(lines)


def _line(what: str, task: str, rows: list[Row]) -> str:
    every = [row for row in rows if "problem" not in row]
    tried = [row for row in every if not is_slow(row)] or every
    slow = sum(map(is_slow, every))
    if not tried:
        return f"| {what} | {task} | 0 | | | | | | {NOT_TRIED} |"
    late = [row["rest_s"] - row["deadline_s"] for row in tried if None not in (row["rest_s"], row["deadline_s"])]
    rest = f"{np.median(late):.2f}, {np.quantile(late, 0.99):.2f}, {max(late):.2f} s" if late else "goes on"
    peak, far = max(row["peak"] for row in tried), max(row["far"] for row in tried)
    firsts = [min(_stops(row), key=lambda item: item["after_s"]) for row in tried if _stops(row)]
    reason = ""
    if firsts:
        latest = max(firsts, key=lambda item: item["after_s"])
        reason = f"`{shown(latest['text'])}` ({latest['where']}), {latest['after_s']:.2f} s"
    wrong: dict[str, int] = {}
    for row in every:
        for sentence in missed_bars(row):
            wrong[shown(sentence)] = wrong.get(shown(sentence), 0) + 1
    missed = "; ".join(f"{number} of {len(every)}: {sentence}" for sentence, number in wrong.items())
    cells = (
        what,
        task,
        f"{len(every)} ({slow})",
        rest,
        f"{peak:.2f} m/s",
        f"{1000 * far:.0f} mm",
        reason,
        missed,
        SIMULATED,
    )
    return f"| {' | '.join(cells)} |"


def is_slow(row: Row) -> bool:
    """Whether the twin of a trial did not keep real time, so that its figures are not those of the system."""
    return bool(row.get("real_time", 1.0) < REAL_TIME)


def missed_bars(row: Row) -> list[str]:
    """Return a sentence for each bar that a trial missed, whatever the pace of its twin."""
    excused = row.get("paced", ()) if is_slow(row) else ()
    return [sentence for sentence in row["wrong"] if sentence not in excused]


def _stops(row: Row) -> list[dict[str, Any]]:
    return [item for item in row["reasons"] if item["stopped"]]


def shown(text: str) -> str:
    """Return a sentence short enough for a table, without what would end a cell."""
    plain = text.replace("|", "/").replace("`", "'").split(": find what")[0]
    return plain if len(plain) <= 90 else f"{plain[:87]}..."
