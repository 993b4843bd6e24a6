"""The result of a run as a table for the terminal."""

from collections.abc import Iterable, Mapping
from typing import Any

from bid_ros.core.outcome import INFRASTRUCTURE, SAFETY
from bid_ros.episodes.causes import COMPUTER
from bid_ros.episodes.log import REHEARSAL, EpisodeResult, RunLog
from bid_ros.safety.shadow import shadow_table
from bid_ros.tasks.base import NOT_JUDGED


def format_summary(log: RunLog) -> str:
    """Return the summary as a compact table for the terminal."""
    run = log.to_dict()
    scene = f"moving {run['moving'] * 100:g} cm/s" if run["moving"] else "static"
    rate = f", {run['action_horizon']} actions a decision" if run["action_horizon"] > 1 else ""
    rate += f", {run['decision_rate_hz']:g} decisions a second" if run["decision_rate_hz"] else ""
    asked = run["decisions"] + run["missed"]
    missed = f"{run['missed']} of {asked}" + (f" = {run['missed'] / asked:.1%}" if asked else "")
    timing = [
        ("decisions", f"{run['decisions']}, missed {missed}"),
        ("decision", _format_times(run["decision_ms"])),
        ("command age", _format_times(run["command_age_ms"])),
    ]
    rows = [
        ("task", f"{run['task']}, scene {scene}, {run['hardware']}"),
        *([("decoder", f"{run['decoder']}, N = {run['samples']}{rate}")] if run["decoder"] else []),
        ("success", _rate(log, run)),
        *_left_out(run),
        *_failure_rows(log.results),
        *(timing if run["decoder"] and run["hardware"] != REHEARSAL else []),  # else nobody decides, or not in time
        ("safety stop", _stopped(log, run)),
    ]
    rows += [] if log.shadow is None else shadow_table(log.shadow)
    rows += [("pauses", str(log.pauses))] if log.pauses.found else []
    rows += [("ended early", log.ended.text)] if log.ended is not None else []
    return "\n".join(f"{name:<12} {value}" for name, value in rows)


def _rate(log: RunLog, run: Mapping[str, Any]) -> str:
    """Return the successes among the episodes that count, with their rate and its interval."""
    if log.shadow is not None:
        return f"not judged: {run['episodes']} episodes in shadow mode"
    if log.results and all(item.outcome == NOT_JUDGED for item in log.results):
        return f"not judged: {run['episodes']} episodes timed out; this twin has no judge"
    low, high = run["success_interval_95"]
    rate = f"{run['successes']} of {run['counted']}"
    if run["counted"]:
        rate += f" = {run['successes'] / run['counted']:.0%}  (95 %: {low:.0%} to {high:.0%})"
    return rate


def _left_out(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the row of the episodes that do not count, if there are any: what failed, and how often."""
    failed = run["outcomes"][INFRASTRUCTURE]
    parts = ", ".join(f"{part} {count}" for part, count in sorted(failed.items()))
    good = f"; with success: {run['not_counted_successes']}" if run["not_counted_successes"] else ""
    if not failed:
        return []
    busy = [("", "computer: it was too busy or too slow; end other work on it, and run again")]
    left_out = f"{sum(failed.values())} of {run['episodes']} episodes: {parts}{good}"
    return [("not counted", left_out), *(busy if COMPUTER in failed else [])]


def _stopped(log: RunLog, run: Mapping[str, Any]) -> str:
    number, last = run["safety_stops"], run["safety_stop"] or "none"
    if run["hardware"] == REHEARSAL:  # nothing latches there: a stop is how an episode ended
        said = [item.outcome.removeprefix("stopped: ") for item in log.results if item.outcome_class == SAFETY]
        number, last = len(said), said[-1] if said else "none"
    return f"{number}, the last: {last}" if number > 1 else str(last)


def _failure_rows(results: Iterable[EpisodeResult]) -> list[tuple[str, str]]:
    failures = [result for result in results if not result.success and result.outcome != NOT_JUDGED]
    shown = [("", f"episode {item.episode + 1}: {item.outcome} after {item.duration_s:.1f} s") for item in failures[:5]]
    return shown + ([("", f"and {len(failures) - len(shown)} more")] if len(failures) > len(shown) else [])


def _format_times(times: dict[str, float | None]) -> str:
    parts = [f"{name} {value:.1f}" for name, value in times.items() if value is not None]
    return "  ".join(parts) + " ms" if parts else "not measured"
