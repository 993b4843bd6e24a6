"""Numbers that others published for Push-T, to stand beside ours.

Sources: Diffusion Policy, 100 episodes, score: the README of the published code of Liu et al., "Bidirectional
Decoding", ICLR 2025; ranges are over its versions. VQ-BeT, success in per cent: the paper itself.
"""

from typing import Any, Final

from bid_ros.bench.cell import BenchCell

CLEAN: Final = "warmstart:warm_start=clean"  # the published warm start begins from the clean previous decision
_SCORES: Final[dict[tuple[str, int, float], str]] = {
    ("vanilla", 1, 0.0): ".846",
    ("vanilla", 8, 0.0): ".884",
    (CLEAN, 8, 0.0): ".875",
    ("ema", 8, 0.0): ".860-.866",
    ("bid", 8, 0.0): ".916-.928",
    ("vanilla", 1, 1.0): ".805",
    ("vanilla", 8, 1.0): ".582",
    (CLEAN, 1, 1.0): ".836",
    ("ema", 1, 1.0): ".822",
    ("bid", 1, 1.0): ".870-.889",
}

_PARTS: Final = ("vanilla", "ema", "backward", "positive", "negative", "bid")
# Per cent of each of these parts, by whether all of a chunk is executed, and by the noise.
_VQBET: Final[dict[tuple[bool, float], tuple[float, ...]]] = {
    (False, 0.0): (48.9, 52.6, 52.7, 53.8, 53.0, 54.4),
    (False, 1.0): (38.3, 35.7, 42.0, 44.1, 44.3, 45.3),
    (False, 1.5): (29.5, 18.4, 29.4, 30.4, 30.8, 31.7),
    (True, 0.0): (64.0, 64.1, 64.0, 65.6, 65.1, 66.1),
    (True, 1.0): (26.9, 27.6, 27.6, 29.7, 26.6, 31.4),
    (True, 1.5): (13.0, 12.9, 13.4, 15.7, 14.8, 16.0),
}
_VQBET_SAMPLES: Final = {1: 49.1, 8: 52.9, 16: 54.2, 32: 54.4}  # BID, one action a decision, no noise

STEPS: Final = 300  # longest duration of an episode there
# What that code was run with; its variants and their correction stand beside the same numbers.
_SETTINGS: Final[dict[str, tuple[Any, ...]]] = {
    "samples": (16,),
    "weak": (True,),
    "metric": ("l2",),
    "variant": ("reference_v1", "reference_v2", "corrected"),
    "terms": ("bid",),
    "mode_size": (3,),
    "decay": (0.5,),
    "ema_weight": (0.5,),
}


def published_score(cell: BenchCell, steps: int = STEPS) -> str:
    """Return what was published for a cell in episodes of this length, empty if nothing was."""
    if cell.drift or cell.delay or cell.jump or steps != STEPS:
        return ""
    if any(getattr(cell, name) not in (None, *valid) for name, valid in _SETTINGS.items()):
        return ""
    warm = cell.decoder == "warmstart" and cell.warm_start == "clean"
    return _SCORES.get((CLEAN if warm else cell.decoder, cell.horizon, cell.noise), "")


def published_vqbet(cell: BenchCell, by_samples: bool = False) -> float | None:
    """Return the success of VQ-BeT on Push-T in the paper, per cent; None if it has no such cell.

    Args:
        cell: of any variant, with a horizon of 1 or of all five actions.
        by_samples: as the paper's comparison of numbers of samples says. Its N = 16 differs from the main table's.
    """
    if cell.drift or cell.delay or cell.jump:
        return None
    if by_samples and cell.decoder == "bid":
        known = cell.horizon == 1 and not cell.noise and cell.terms in (None, "bid")
        return _VQBET_SAMPLES.get(cell.samples or 0) if known else None
    part = (cell.terms or "bid") if cell.decoder == "bid" else cell.decoder
    row = _VQBET.get((cell.horizon > 1, cell.noise))
    return row[_PARTS.index(part)] if row and part in _PARTS else None
