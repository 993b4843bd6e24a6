"""How near honest values come to the limits of checks: the largest share of each limit, and a histogram."""

import json
from dataclasses import dataclass, field
from typing import Final

BINS: Final = 20
"""Bins of a histogram of shares, from 0 to 1. One more counts what is at the limit or over it."""
SAID: Final = "shares"
"""The key of a node's diagnostics that holds the text of its margins."""
UNJUDGED: Final = "not judged"
"""The key of that text that holds what could not be compared; no check has this name."""


class Margins(dict[str, float]):
    """Largest share of each limit that was used so far, by the limit's name; above 1 is over it.

    Attributes:
        counts: how often a share fell into each bin, ``(BINS + 1,)`` by the limit's name.
        unjudged: how often there was nothing to compare, by the limit's name.
    """

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, list[int]] = {}
        self.unjudged: dict[str, int] = {}

    def skip(self, name: str) -> None:
        """Note that a limit could not be judged, as what is compared with it is not known."""
        self.unjudged[name] = self.unjudged.get(name, 0) + 1

    def over(self, name: str, value: float, limit: float) -> bool:
        """Note that ``value`` was compared with ``limit``; return whether it is over it, as NaN is."""
        share = value / limit
        over = not share <= 1.0
        counts = self.counts.get(name)
        if counts is None:
            counts = self.counts[name] = [0] * (BINS + 1)
            self[name] = 0.0
        counts[BINS if over else max(0, int(share * BINS))] += 1
        if share > self[name]:
            self[name] = share
        return over

    def joined(self, other: "Margins") -> "Margins":
        """Return these and those of other checks. Either may still be written to."""
        found = Margins()
        for part in (self, other):
            found.update(part.copy())
            found.counts.update(part.counts.copy())
            found.unjudged.update(part.unjudged.copy())
        return found

    def text(self) -> str:
        """Return all of it as JSON: by name the largest share, then the counts without the zeros at their end."""
        counts, unjudged = self.counts.copy(), self.unjudged.copy()
        found: dict[str, object] = {name: [round(self[name], 4), *_cut(numbers)] for name, numbers in counts.items()}
        return json.dumps(found | ({UNJUDGED: unjudged} if unjudged else {}))


def _cut(counts: list[int]) -> list[int]:
    used = [number for number, count in enumerate(counts) if count]
    return counts[: used[-1] + 1] if used else []


@dataclass
class Shares:
    """What one check has compared.

    Attributes:
        largest: largest share of the limit.
        counts: ``(BINS + 1,)``, how often a share fell into each bin.
        unjudged: how often there was nothing to compare.
    """

    largest: float = 0.0
    counts: list[int] = field(default_factory=lambda: [0] * (BINS + 1))
    unjudged: int = 0

    @property
    def total(self) -> int:
        """Number of comparisons."""
        return sum(self.counts)

    def add(self, other: "Shares") -> None:
        """Add what the same check has compared elsewhere."""
        self.largest = max(self.largest, other.largest)
        self.counts = [own + more for own, more in zip(self.counts, other.counts, strict=True)]
        self.unjudged += other.unjudged


def read_shares(text: str) -> dict[str, Shares]:
    """Return what :meth:`Margins.text` wrote, by the check's name. Raises ValueError for another text."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"margins are {text[:40]!r}; valid is a mapping")
    unjudged, shares = found.pop(UNJUDGED, {}), {}
    for name, (largest, *counts) in found.items():
        shares[name] = Shares(float(largest), [*map(int, counts), *[0] * (BINS + 1 - len(counts))])
    for name, count in unjudged.items():
        shares.setdefault(name, Shares()).unjudged = int(count)
    return shares
