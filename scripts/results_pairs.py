"""Print what differs between decoders on the very same episodes, as means with 95 % bootstrap intervals over them.

Usage: results_pairs.py OUT WHICH. OUT holds the folders 300 and 400 of pusht_results.sh; WHICH is ``undisturbed``
(BID as shipped against the others, then with one setting changed) or ``disturbed`` (drift, jump, delay).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bid_ros.bench.cell import Cell
from bid_ros.bench.results import read_rows
from bid_ros.episodes.confidence import paired_difference

SHIPPED: dict[str, Any] = {
    "noise": 0.0, "drift": 0.0, "delay": 0, "jump": 0.0, "samples": 16, "weak": True, "metric": "l2",
    "variant": "corrected", "terms": "bid", "decay": 0.5, "mode_size": 3, "ema_weight": 0.5, "warm_start": "renoise",
}  # fmt: skip
OTHERS = ("vanilla", "warmstart", "ema", "bid+ema", "bid+warmstart")
CHANGES: list[dict[str, Any]] = [
    {"variant": "paper", "trim": "previous"},
    {"variant": "paper", "trim": "nearest"},
    {"variant": "reference_v1"},
    {"variant": "reference_v2"},
    {"metric": "l1"},
    {"metric": "cosine"},
    {"terms": "backward"},
    {"terms": "positive"},
    {"terms": "negative"},
    {"terms": "contrast"},
]


@dataclass(frozen=True)
class Line:
    """A difference that is worth a line: settings of both, and the seeds that count (empty: all)."""

    name: str
    first: dict[str, Any]
    second: dict[str, Any]
    seeds: tuple[int, ...] = ()


class Scores:
    """Scores of a folder by cell, then seed and episode."""

    def __init__(self, folder: Path) -> None:
        self._found: dict[Cell, dict[tuple[int, int], float]] = {}
        for (_, seed, episode), row in read_rows(folder).items():
            self._found.setdefault(Cell(**row["cell"]), {})[seed, episode] = row["score"]

    def of(self, settings: dict[str, Any]) -> dict[tuple[int, int], float]:
        """Return the scores of the one cell with these settings and the shipped ones, where it reads them."""
        wanted = {**SHIPPED, **settings}
        if wanted["terms"] in ("backward", "positive"):
            del wanted["weak"]  # these ask for no weak samples
        cells = [cell for cell in self._found if all(getattr(cell, key) in (None, wanted[key]) for key in wanted)]
        if len(cells) != 1:
            raise SystemExit(f"error: {len(cells)} cells have the settings {settings}")
        return self._found[cells[0]]

    def row(self, line: Line) -> str:
        """Return a line of the table."""
        first, second = self.of(line.first), self.of(line.second)
        shared = sorted(key for key in first.keys() & second.keys() if not line.seeds or key[0] in line.seeds)
        values = (np.array([scores[key] for key in shared]) for scores in (first, second))
        mean, low, high = paired_difference(*values)
        return f"| {line.name} | {len(shared)} | {mean:+.3f} ({low:+.3f} to {high:+.3f}) |"


def undisturbed() -> Iterator[Line]:
    """BID as shipped against the other decoders, and against BID with one setting changed."""
    for noise in (0.0, 1.0):
        own = {"decoder": "bid", "horizon": 1, "noise": noise}
        place = f"h = 1, noise {noise:g}"
        for name in OTHERS:
            yield Line(f"BID minus {name}, {place}", own, {**own, "decoder": name})
        for name in ("vanilla", "ema"):
            yield Line(f"BID minus {name}, {place}, seeds 2 and 3 only", own, {**own, "decoder": name}, (2, 3))
        yield Line(f"BID, {place}, minus vanilla with h = 8", own, {**own, "decoder": "vanilla", "horizon": 8})
        best = 0.6 if noise == 0.0 else 0.4
        yield Line(
            f"BID minus EMA with its best lambda, {best:g}, {place}", own, {**own, "decoder": "ema", "ema_weight": best}
        )
        for change in CHANGES:
            said = " ".join(f"{key} {value}" for key, value in change.items())
            yield Line(f"BID minus BID with {said}, {place}", own, {**own, **change})
        paper = {**own, "variant": "paper"}
        name = f"paper: trim previous minus nearest, {place}"
        yield Line(name, {**paper, "trim": "previous"}, {**paper, "trim": "nearest"})
        positive, backward = ({**own, "terms": terms} for terms in ("positive", "backward"))
        yield Line(f"backward and positive minus backward alone, {place}", positive, backward)
    for noise in (0.0, 1.0):
        own = {"decoder": "bid", "horizon": 8, "noise": noise}
        for name in ("vanilla", "warmstart", "ema"):
            yield Line(f"BID minus {name}, h = 8, noise {noise:g}", own, {**own, "decoder": name})


def drift() -> Iterator[Line]:
    """On the moving block: BID with a decision every step against the rest."""
    for px in (1.0, 2.0):
        own = {"decoder": "bid", "horizon": 1, "drift": px}
        for name, horizon in (("vanilla", 1), ("vanilla", 8), ("vanilla", 15), ("ema", 1), ("bid", 8), ("bid", 15)):
            other = {**own, "decoder": name, "horizon": horizon}
            yield Line(f"drift {px:g} px: BID, h = 1, minus {name}, h = {horizon}", own, other)


def jump_and_delay() -> Iterator[Line]:
    """After the jump and with late decisions: against the rest, and what each loses."""
    own = {"decoder": "bid", "horizon": 1, "jump": 60.0}
    rest = (("vanilla", 1), ("vanilla", 8), ("ema", 1), ("bid", 8), ("bid+ema", 1), ("bid+warmstart", 1))
    for name, horizon in rest:
        other = {**own, "decoder": name, "horizon": horizon}
        yield Line(f"jump 60 px: BID, h = 1, minus {name}, h = {horizon}", own, other)
    for name in ("vanilla", "ema", "bid", "bid+ema", "bid+warmstart"):
        jumped = {**own, "decoder": name}
        yield Line(f"{name}, h = 1: jump 60 px minus none", jumped, {**jumped, "jump": 0.0})
    for steps in (2, 4):
        late = {"decoder": "bid", "horizon": 1, "delay": steps}
        yield Line(f"delay {steps} steps: BID minus vanilla", late, {**late, "decoder": "vanilla"})
        yield Line(f"delay {steps} steps: BID minus bid+delay", late, {**late, "decoder": "bid+delay"})
        yield Line(f"BID: delay {steps} steps minus none", late, {**late, "delay": 0})


def main() -> int:
    """Print the table."""
    out, which = Path(sys.argv[1]), sys.argv[2]
    usual = Scores(out / "300")
    lines = [usual.row(line) for line in (undisturbed() if which == "undisturbed" else jump_and_delay())]
    if which == "disturbed":
        moving = Scores(out / "400")
        lines = [*(moving.row(line) for line in drift()), *lines]
    print("| difference of the scores | episodes | mean, 95 % |\n|---|---|---|", *lines, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
