"""Reports of ``bid accept``: a robot's beside its twin's, and the parameters that would make the twin alike."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

import yaml

from bid_ros.core.errors import BidError
from bid_ros.robots.descriptor import TrackedMotion
from bid_ros.robots.registry import ROBOTS

FILE: Final = "report.json"
PARAMETERS: Final = "twin.yaml"
MOST_DELAY_S: Final = 0.1  # that the twin's cameras take
MOST_LAG_S: Final = 0.3  # that the arm node makes up for


def read_report(folder: Path) -> dict[str, Any]:
    """Return the report in a folder of ``bid accept``. Raises BidError if there is none."""
    try:
        report: dict[str, Any] = json.loads((folder / FILE).read_text())
        _ = report["stages"], report["stops"], report["robot"], report["config"], report["robot_ip"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BidError(f"{folder} holds no report of bid accept; valid is a folder that its --out named") from error
    return report


def figures(report: Mapping[str, Any]) -> dict[str, float]:
    """Return what a report measured, by its name with the unit."""
    return {name: value for name, value in _figures(report) if value is not None}


def _figures(report: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    for stage in report["stages"]:
        where = f"stage {stage['stage']}"
        lag_s = stage.get("lag_s")
        yield f"{where} lag, ms", None if lag_s is None else 1e3 * lag_s
        for name, key in (("off, mm p99", "off_mm"), ("command age, ms p99", "command_age_ms")):
            yield f"{where} {name}", (stage.get(key) or {}).get("p99")
        yield f"{where} off at rest, mm p50", (stage.get("resting_mm") or {}).get("p50")
        yield f"{where} decision, ms p99", (stage.get("decision_ms") or {}).get("p99")
    for name, camera in cameras_of(report).items():
        yield f"{name} rate, Hz", camera["rate_hz"]
        yield f"{name} age, ms p50", camera["age_ms"]["p50"]
    for name, stop in report["stops"].items():
        for key, unit in (("noticed_s", "s"), ("rest_s", "s"), ("way_mm", "mm")):
            yield f"stop {name} {key.partition('_')[0]}, {unit}", stop.get(key)


def compared(report: Mapping[str, Any], twin: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of both side by side, as texts, and the ``parameters`` that would make the twin alike.

    The ``text`` of the parameters is YAML, by the file that each belongs to.

    Raises:
        BidError: the second report is of no twin, or of another robot; or one of them measured no lag.
    """
    if twin["robot_ip"] or twin["robot"] != report["robot"]:
        what = f"a robot at {twin['robot_ip']}" if twin["robot_ip"] else f"the twin of a {twin['robot']}"
        raise BidError(f"the report to compare with is of {what}; valid is the twin of a {report['robot']}")
    ours, theirs = figures(report), figures(twin)
    names = dict.fromkeys([*ours, *theirs])
    rows = [(name, *(f"{found[name]:.4g}" if name in found else "-" for found in (ours, theirs))) for name in names]
    parameters = alike(report, twin)
    text = yaml.safe_dump(parameters, sort_keys=False, default_flow_style=None)
    return {"rows": rows, "parameters": parameters, "text": text}


def alike(report: Mapping[str, Any], twin: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the twin's files, by their names, with which it would be as what a report measured."""
    robot, own = tracked(report), tracked(twin)
    ages_ms = [camera["age_ms"]["p50"] for camera in cameras_of(report).values()]
    cameras = {"twin_delay_s": round(min(max(ages_ms) / 1e3, MOST_DELAY_S), 3)} if ages_ms else {}
    nodes = {"arm": {"lookahead_s": round(min(robot.lag_s, MOST_LAG_S), 3)}, "camera": cameras}
    return {
        "robot.yaml": {"twin": dict(ROBOTS.find(report["robot"]).alike(robot, own))},
        "nodes.yaml": {name: {"ros__parameters": values} for name, values in nodes.items() if values},
    }


def tracked(report: Mapping[str, Any]) -> TrackedMotion:
    """Return how a robot followed: medians over its stages. Raises BidError if no stage tells a lag."""
    moved = [stage for stage in report["stages"] if stage.get("lag_s")]
    if not moved:
        raise BidError("a report has no stage that tells the lag of the tool; valid is one that passed stage 2")
    rests = [stage["resting_mm"]["p50"] for stage in moved if stage["resting_mm"]["p50"] is not None]
    return TrackedMotion(
        median(stage["lag_s"] for stage in moved), median(rests) / 1e3 if rests else 0.0, report["config"]
    )


def cameras_of(report: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the cameras of the last stage that recorded some."""
    return next((stage["cameras"] for stage in reversed(report["stages"]) if stage.get("cameras")), {})
