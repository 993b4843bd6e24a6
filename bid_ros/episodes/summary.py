"""The result of a run: ``run.json``, the table in the terminal, and the comparison of several runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from bid_ros.episodes.comparison import collect, draw_chart, markdown
from bid_ros.episodes.confidence import wilson_interval
from bid_ros.tasks.base import NOT_JUDGED

_DIGITS: Final = 3


def percentiles(values: ArrayLike) -> dict[str, float | None]:
    """Return ``p50``, ``p99`` and ``max`` of the finite values, rounded to 0.001; None without any."""
    array = np.asarray(values, dtype=np.float64)
    array = array[np.isfinite(array)]
    if array.size == 0:
        return {"p50": None, "p99": None, "max": None}
    p50, p99 = np.percentile(array, [50, 99])
    return {
        "p50": round(float(p50), _DIGITS),
        "p99": round(float(p99), _DIGITS),
        "max": round(float(array.max()), _DIGITS),
    }


@dataclass(frozen=True)
class EpisodeResult:
    """The result of one episode.

    Attributes:
        episode: index in the run, from 0.
        seed: seed of its scene.
        success: whether the task was done.
        outcome: ``success``, ``timeout``, ``not judged``, ``dropped``, ``stopped: <reason>`` or ``aborted: <reason>``.
        duration_s: s from start to end.
        label: kind of episode, for example ``clean``.
    """

    episode: int
    seed: int
    success: bool
    outcome: str
    duration_s: float
    label: str = ""


@dataclass(frozen=True)
class RunSummary:
    """The content of ``run.json``.

    Attributes:
        task, decoder: names.
        samples: N strong candidates per decision.
        bundle_sha256: hash of the policy bundle, empty without a policy.
        moving: speed of the cup in m/s, 0 = static.
        seed: seed of the first episode.
        hardware: ``twin`` or the name of the robot.
        results: results of the episodes, in order.
        decision_ms: ms from the complete observation to the published chunk, for each decision.
        command_age_ms: age in ms of the observation behind the command, for each arm status while tracking.
        missed: number of decisions that were skipped because they would have started late.
        safety_stop: reason of the latched stop that ended the run; empty if none did.
        action_horizon: actions executed per decision; 1 = closed loop.
        system: folder of the system; empty for a rehearsal.
    """

    task: str
    decoder: str
    samples: int
    bundle_sha256: str
    moving: float
    seed: int
    hardware: str
    results: tuple[EpisodeResult, ...]
    decision_ms: tuple[float, ...]
    command_age_ms: tuple[float, ...]
    missed: int
    safety_stop: str = ""
    action_horizon: int = 1
    system: str = ""

    @property
    def successes(self) -> int:
        """Number of successful episodes."""
        return sum(result.success for result in self.results)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of ``run.json``: times in ms, 95 % interval, null where nothing was measured."""
        age = percentiles(self.command_age_ms)
        low, high = wilson_interval(self.successes, len(self.results))
        given = "task system decoder samples action_horizon bundle_sha256 hardware moving seed"
        return {
            **{name: getattr(self, name) for name in given.split()},
            "episodes": len(self.results),
            "successes": self.successes,
            "success_interval_95": [round(low, 4), round(high, 4)],
            "decisions": len(self.decision_ms),
            "missed": self.missed,
            "decision_ms": percentiles(self.decision_ms),
            "command_age_ms": {"p50": age["p50"], "p99": age["p99"]},
            "safety_stops": int(bool(self.safety_stop)),
            "safety_stop": self.safety_stop,
            "results": [{**asdict(item), "duration_s": round(item.duration_s, _DIGITS)} for item in self.results],
        }


def write_run(path: str | Path, summary: RunSummary) -> None:
    """Write ``run.json`` atomically: a reader sees the old file or the whole new one, even after a power cut."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    with part.open("w") as file:
        json.dump(summary.to_dict(), file, indent=2, allow_nan=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def format_summary(summary: RunSummary) -> str:
    """Return the summary as a compact table for the terminal."""
    run = summary.to_dict()
    low, high = run["success_interval_95"]
    rate = f"{run['successes']} of {run['episodes']}"
    if run["episodes"]:
        rate += f" = {run['successes'] / run['episodes']:.0%}  (95 %: {low:.0%} to {high:.0%})"
    if summary.results and all(item.outcome == NOT_JUDGED for item in summary.results):
        rate = f"not judged: {run['episodes']} episodes timed out; this twin has no judge"
    scene = f"moving {run['moving'] * 100:g} cm/s" if run["moving"] else "static"
    horizon = f", {run['action_horizon']} actions a decision" if run["action_horizon"] > 1 else ""
    asked = run["decisions"] + run["missed"]
    missed = f"{run['missed']} of {asked}" + (f" = {run['missed'] / asked:.1%}" if asked else "")
    rows = [
        ("task", f"{run['task']}, scene {scene}, {run['hardware']}"),
        ("decoder", f"{run['decoder'] or '-'}, N = {run['samples']}{horizon}"),
        ("success", rate),
        *_failure_rows(summary.results),
        ("decisions", f"{run['decisions']}, missed {missed}"),
        ("decision", _format_times(run["decision_ms"])),
        ("command age", _format_times(run["command_age_ms"])),
        ("safety stop", run["safety_stop"] or "none"),
    ]
    return "\n".join(f"{name:<12} {value}" for name, value in rows)


def success_table(runs: Sequence[str | Path], plot: str | Path | None = None) -> str:
    """Return a Markdown table of success by decoder and speed of the cup. With ``plot``, write a bar chart too.

    Runs of the same decoder, N, action horizon and speed are added up. Each rate has its 95 % Wilson interval. The last
    column compares with ``bid`` on the episodes that both have (same speed and seed).

    Args:
        runs: paths of ``run.json`` files.
        plot: PNG file to write.

    Raises:
        BidError: a file is missing or is not a ``run.json``.
    """
    cells = collect(runs)
    if plot is not None:
        draw_chart(cells, plot)
    return markdown(cells)


def _failure_rows(results: Iterable[EpisodeResult]) -> list[tuple[str, str]]:
    failures = [result for result in results if not result.success and result.outcome != NOT_JUDGED]
    shown = [("", f"episode {item.episode + 1}: {item.outcome} after {item.duration_s:.1f} s") for item in failures[:5]]
    if len(failures) > len(shown):
        shown.append(("", f"and {len(failures) - len(shown)} more"))
    return shown


def _format_times(times: dict[str, float | None]) -> str:
    parts = [f"{name} {value:.1f}" for name, value in times.items() if value is not None]
    return "  ".join(parts) + " ms" if parts else "not measured"
