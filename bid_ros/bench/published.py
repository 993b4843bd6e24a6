"""Numbers that others published for Push-T, to stand beside ours.

Source: the README of the published code of Liu et al., "Bidirectional Decoding", ICLR 2025: Diffusion Policy on Push-T,
100 episodes, score. Ranges are over its versions.
"""

from typing import Any, Final

from bid_ros.bench.cell import Cell

_SCORES: Final[dict[tuple[str, int, float], str]] = {
    ("vanilla", 1, 0.0): ".846",
    ("vanilla", 8, 0.0): ".884",
    ("warmstart-clean", 8, 0.0): ".875",
    ("ema", 8, 0.0): ".860-.866",
    ("bid", 8, 0.0): ".916-.928",
    ("vanilla", 1, 1.0): ".805",
    ("vanilla", 8, 1.0): ".582",
    ("warmstart-clean", 1, 1.0): ".836",
    ("ema", 1, 1.0): ".822",
    ("bid", 1, 1.0): ".870-.889",
}

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


def published_score(cell: Cell, steps: int = STEPS) -> str:
    """Return what was published for a cell in episodes of this length, empty if nothing was.

    The published warm start begins from the clean previous decision, as ``warmstart-clean`` does.
    """
    if cell.drift or cell.delay or cell.jump or steps != STEPS:
        return ""
    if any(getattr(cell, name) not in (None, *valid) for name, valid in _SETTINGS.items()):
        return ""
    warm = cell.decoder == "warmstart" and cell.warm_start == "clean"
    return _SCORES.get(("warmstart-clean" if warm else cell.decoder, cell.horizon, cell.noise), "")
