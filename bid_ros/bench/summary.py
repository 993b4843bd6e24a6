"""From rows to what a cell is worth: means, 95 % intervals and differences, beside what others published for Push-T.

Sources: Diffusion Policy, 100 episodes, score: the README of the published code of Liu et al., "Bidirectional
Decoding", ICLR 2025; ranges are over its versions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from bid_ros.bench.cell import NEWER, BenchCell, varying
from bid_ros.bench.results import Key, load_trace
from bid_ros.bench.smoothness import reaction_steps
from bid_ros.core.tables import markdown_table
from bid_ros.episodes.comparison import paired_difference, wilson_interval

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
    newer = any(getattr(cell, name) is not None for name in NEWER)
    if cell.drift or cell.delay or cell.jump or newer or steps != STEPS:
        return ""
    if any(getattr(cell, name) not in (None, *valid) for name, valid in _SETTINGS.items()):
        return ""
    warm = cell.decoder == "warmstart" and cell.warm_start == "clean"
    return _SCORES.get((CLEAN if warm else cell.decoder, cell.horizon, cell.noise), "")


REFERENCE: Final = "vanilla"
Interval = tuple[float, float, float]
"""(mean, low, high)"""
Rows = Mapping[Key, Mapping[str, Any]]


@dataclass(frozen=True)
class CellSummary:
    """What the episodes of a cell came to.

    Attributes:
        cell: its settings.
        label: name that tells it from the other cells.
        episodes: number of them.
        score: mean, bootstrap interval over episodes.
        full: episodes that reached full score; their rate with the Wilson interval in ``rate``.
        against: score minus that of vanilla, paired over the same episodes; None for vanilla itself or without it.
        overlap_px: distance of consecutive decisions; None if none overlap.
        switches_per_s: changes of strategy; None if no decisions overlap.
        jerk: of the executed actions, units/s^3.
        reaction_s: mean time to react to the jump, None without one or if fewer than half reacted.
        reacted: share of the jumps that were reacted to, None without one.
        batch_ms: time of a decision in the bench, shared calls divided by decisions.
        latency_ms: time of a decision on its own, as on a robot; None if it was not measured.
        world_ms: time of a simulated step.
        published: the published score, empty if there is none.
    """

    cell: BenchCell
    label: str
    episodes: int
    score: Interval
    full: int
    rate: Interval
    against: Interval | None
    overlap_px: float | None
    switches_per_s: float | None
    jerk: float
    reaction_s: float | None
    reacted: float | None
    batch_ms: float
    latency_ms: float | None
    world_ms: float
    published: str


def summarise(
    cells: Sequence[BenchCell],
    rows: Rows,
    folder: Path,
    dt: float,
    latency: Mapping[str, float] | None = None,
    steps: int = STEPS,
) -> list[CellSummary]:
    """Summarise the cells that have rows.

    Args:
        cells: in the order wanted.
        rows: of all of them.
        folder: where the paths of the episodes lie.
        dt: s a step.
        latency: per cell key, ms.
        steps: longest duration of an episode; 0: nothing was published for this policy.
    """
    groups = {cell: _rows_of(cell, rows) for cell in cells}
    groups = {cell: group for cell, group in groups.items() if group}
    shown = varying(groups)

    def summary(cell: BenchCell) -> CellSummary:
        group = groups[cell]
        values = list(group.values())
        scores = np.array([row["score"] for row in values])
        full = sum(bool(row["success"]) for row in values)
        overlaps = [row["overlap_px"] for row in values if row["overlap_px"] is not None]
        reaction_s, reacted = _reaction(cell, groups, folder, dt)
        return CellSummary(
            cell=cell,
            label=cell.label(shown),
            episodes=len(values),
            score=paired_difference(scores, np.zeros_like(scores)),
            full=full,
            rate=(full / len(values), *wilson_interval(full, len(values))),
            against=_against(cell, groups),
            overlap_px=float(np.mean(overlaps)) if overlaps else None,
            switches_per_s=_mean(values, "switches_per_s") if overlaps else None,
            jerk=_mean(values, "jerk"),
            reaction_s=reaction_s,
            reacted=reacted,
            batch_ms=sum(_mean(values, f"{part}_ms") for part in ("encode", "sample", "choose")),
            latency_ms=(latency or {}).get(cell.key),
            world_ms=_mean(values, "world_ms"),
            published=published_score(cell, steps),
        )

    return [summary(cell) for cell in groups]


def _rows_of(cell: BenchCell, rows: Rows) -> dict[tuple[int, int], Mapping[str, Any]]:
    key = cell.key
    return {(seed, episode): rows[name, seed, episode] for name, seed, episode in sorted(rows) if name == key}


Groups = Mapping[BenchCell, Mapping[tuple[int, int], Mapping[str, Any]]]


def _mean(values: Sequence[Mapping[str, Any]], name: str) -> float:
    return float(np.mean([row[name] for row in values]))


def conditions(cell: BenchCell) -> tuple[Any, ...]:
    """Return what is asked of a decoder, whatever it is: its horizon and the disturbances."""
    return cell.horizon, cell.noise, cell.drift, cell.delay, cell.jump


def _against(cell: BenchCell, groups: Groups) -> Interval | None:
    others = [item for item in groups if item.decoder == REFERENCE and conditions(item) == conditions(cell)]
    if cell.decoder == REFERENCE or not others:
        return None
    own, other = groups[cell], groups[others[0]]
    pairs = sorted(set(own) & set(other))
    if not pairs:
        return None
    return paired_difference([own[pair]["score"] for pair in pairs], [other[pair]["score"] for pair in pairs])


def _reaction(cell: BenchCell, groups: Groups, folder: Path, dt: float) -> tuple[float | None, float | None]:
    still = groups.get(replace(cell, jump=0.0))
    if not cell.jump or still is None:
        return None, None
    times = []
    for pair, row in groups[cell].items():
        # An episode that ended before the jump says nothing about it.
        if pair in still and min(row["steps"], still[pair]["steps"]) > row["jump_step"]:
            commands, without = load_trace(folder, row).commands, load_trace(folder, still[pair]).commands
            steps = reaction_steps(commands, without, row["jump_step"], cell.jump)
            times.append(np.inf if steps is None else steps * dt)
    if not times:
        return None, None
    reacted = np.isfinite(times)
    mean = float(np.mean(np.array(times)[reacted])) if reacted.mean() >= 0.5 else None
    return mean, float(reacted.mean())


def markdown(summaries: Sequence[CellSummary]) -> str:
    """Return a table with a row per cell."""
    head = (
        *("decoder", "episodes", "score, 95 %", "minus vanilla, paired 95 %", "full score", "switches/s", "overlap"),
        *("jerk /s^3", "reaction s", "ms a decision", "published"),
    )
    rows = [
        (
            item.label,
            item.episodes,
            format_interval(item.score, alone=item.episodes == 1),
            format_interval(item.against, sign="+", alone=item.episodes == 1),
            "{:.0%} ({:.0%} to {:.0%})".format(*item.rate),
            format_optional(item.switches_per_s, ".2f"),
            format_optional(item.overlap_px, ".1f"),
            f"{item.jerk:.3g}",
            format_optional(item.reaction_s, ".2f"),
            format_optional(item.latency_ms, ".1f"),
            item.published or "-",
        )
        for item in summaries
    ]
    return markdown_table(head, rows)


def format_interval(value: Interval | None, sign: str = "", alone: bool = False) -> str:
    """Return ``mean (low to high)`` for a table, ``-`` for None.

    Args:
        value: mean and interval.
        sign: ``+`` shows that of positive numbers too.
        alone: of one episode, which gives no interval.
    """
    if value is None:
        return "-"
    mean, low, high = (f"{number:{sign}.3f}" for number in value)
    return mean if alone else f"{mean} ({low} to {high})"


def format_optional(value: float | None, form: str) -> str:
    """Return a number in a format for a table, ``-`` for None."""
    return "-" if value is None else f"{value:{form}}"
