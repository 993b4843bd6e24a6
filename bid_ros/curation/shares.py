"""How near a run came to the limits of the checks of robot, link and computer: from the diagnostics in its bag."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bid_ros.core.margins import SAID, Shares, read_shares
from bid_ros.core.tables import aligned
from bid_ros.core.topics import DIAGNOSTICS
from bid_ros.recording.reader import BagReader

Checks = dict[str, Shares]
"""By ``node check``, such as ``arm course``."""


def read_margins(bag: Path) -> Checks:
    """Return how near each check of a bag's nodes came to its limit; empty for a bag of an earlier version.

    A node says them once a second, so the last second is missing. One that began anew counts together with the one
    before it.

    Raises:
        RecordingError: the bag cannot be read.
    """
    done: list[Checks] = []
    newest: dict[tuple[str, str], Shares] = {}
    with BagReader(bag) as reader:
        for item in reader.messages([DIAGNOSTICS]):
            for node, check, found in _said(item.message):
                before = newest.get((node, check))
                if before is not None and (found.total < before.total or found.unjudged < before.unjudged):
                    done.append({_named(node, check): before})
                newest[node, check] = found
    return gathered([*done, *({_named(*key): found} for key, found in newest.items())])


def _said(message: Any) -> Iterable[tuple[str, str, Shares]]:
    for status in message.status:
        for pair in status.values:
            if pair.key == SAID:
                with suppress(ValueError):  # of another version
                    yield from ((status.name, check, shares) for check, shares in read_shares(pair.value).items())


def _named(node: str, check: str) -> str:
    """Return the name of a check of a node whose diagnostics have a name such as ``bid_ros: left/arm``."""
    return f"{node.rpartition('/')[2].rpartition(' ')[2]} {check}"


def gathered(runs: Iterable[Checks]) -> Checks:
    """Return the checks of several runs together."""
    found: Checks = {}
    for checks in runs:
        for name, shares in checks.items():
            found.setdefault(name, Shares()).add(shares)
    return dict(sorted(found.items(), key=lambda item: -item[1].largest))


def margins_report(checks: Mapping[str, Shares]) -> dict[str, dict[str, object]]:
    """Return the checks as plain values: the largest share of each limit, how many comparisons, and the histogram.

    ``not_judged`` is how often there was nothing to compare.
    """
    return {
        name: {
            "largest_share": round(item.largest, 4),
            "comparisons": item.total,
            "not_judged": item.unjudged,
            "counts": item.counts,
        }
        for name, item in checks.items()
    }


def margins_table(checks: Mapping[str, Shares]) -> str:
    """Return the checks as a table, the one that came nearest to its limit first; empty without any."""
    if not checks:
        return ""
    rows = [("check", "largest share of its limit", "comparisons", "not judged")]
    for name, item in checks.items():
        share = f"{item.largest:.3f}" if item.total else "-"
        rows.append((name, share, str(item.total), str(item.unjudged or "")))
    return aligned(rows)
