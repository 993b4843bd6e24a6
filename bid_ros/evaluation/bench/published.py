"""Numbers that others published for Push-T, to stand beside ours.

Source: the README of the published code of Liu et al., "Bidirectional Decoding", ICLR 2025: Diffusion Policy on Push-T,
100 episodes, score. Ranges are over its versions.
"""

from __future__ import annotations

from typing import Final

from bid_ros.evaluation.bench.cell import Cell

_SCORES: Final[dict[tuple[str, int, float], str]] = {
    ("vanilla", 1, 0.0): ".846",
    ("vanilla", 8, 0.0): ".884",
    ("warmstart", 8, 0.0): ".875",
    ("ema", 8, 0.0): ".860-.866",
    ("bid", 8, 0.0): ".916-.928",
    ("vanilla", 1, 1.0): ".805",
    ("vanilla", 8, 1.0): ".582",
    ("warmstart", 1, 1.0): ".836",
    ("ema", 1, 1.0): ".822",
    ("bid", 1, 1.0): ".870-.889",
}


def published_score(cell: Cell) -> str:
    """Return what was published for a cell, empty if nothing was."""
    if cell.drift or cell.delay or cell.jump or cell.samples not in (None, 16):
        return ""
    return _SCORES.get((cell.decoder, cell.horizon, cell.noise), "")
