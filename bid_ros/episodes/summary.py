"""The result of a run: ``run.json`` and the table in the terminal."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from bid_ros.episodes.log import EpisodeResult, RunLog
from bid_ros.tasks.base import NOT_JUDGED


def write_run(path: str | Path, log: RunLog) -> None:
    """Write ``run.json`` atomically: a reader sees the old file or the whole new one, even after a power cut."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    with part.open("w") as file:
        json.dump(log.to_dict(), file, indent=2, allow_nan=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def format_summary(log: RunLog) -> str:
    """Return the summary as a compact table for the terminal."""
    run = log.to_dict()
    low, high = run["success_interval_95"]
    rate = f"{run['successes']} of {run['episodes']}"
    if run["episodes"]:
        rate += f" = {run['successes'] / run['episodes']:.0%}  (95 %: {low:.0%} to {high:.0%})"
    if log.results and all(item.outcome == NOT_JUDGED for item in log.results):
        rate = f"not judged: {run['episodes']} episodes timed out; this twin has no judge"
    scene = f"moving {run['moving'] * 100:g} cm/s" if run["moving"] else "static"
    horizon = f", {run['action_horizon']} actions a decision" if run["action_horizon"] > 1 else ""
    asked = run["decisions"] + run["missed"]
    missed = f"{run['missed']} of {asked}" + (f" = {run['missed'] / asked:.1%}" if asked else "")
    rows = [
        ("task", f"{run['task']}, scene {scene}, {run['hardware']}"),
        ("decoder", f"{run['decoder'] or '-'}, N = {run['samples']}{horizon}"),
        ("success", rate),
        *_failure_rows(log.results),
        ("decisions", f"{run['decisions']}, missed {missed}"),
        ("decision", _format_times(run["decision_ms"])),
        ("command age", _format_times(run["command_age_ms"])),
        ("safety stop", run["safety_stop"] or "none"),
    ]
    return "\n".join(f"{name:<12} {value}" for name, value in rows)


def _failure_rows(results: Iterable[EpisodeResult]) -> list[tuple[str, str]]:
    failures = [result for result in results if not result.success and result.outcome != NOT_JUDGED]
    shown = [("", f"episode {item.episode + 1}: {item.outcome} after {item.duration_s:.1f} s") for item in failures[:5]]
    if len(failures) > len(shown):
        shown.append(("", f"and {len(failures) - len(shown)} more"))
    return shown


def _format_times(times: dict[str, float | None]) -> str:
    parts = [f"{name} {value:.1f}" for name, value in times.items() if value is not None]
    return "  ".join(parts) + " ms" if parts else "not measured"
